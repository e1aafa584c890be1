"""status: where one is, what runs, and where things are kept."""

import os
from typing import TYPE_CHECKING, Any

import typer
from exeora_ws import __version__
from exeora_ws.errors import ToolFailed

from exeora_cli.commands.projects import describe_project
from exeora_cli.commands.upstreams import list_configured
from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Session, Shown, session_of
from exeora_cli.times import write_time

if TYPE_CHECKING:
    from exeora_ws.serve.running import RunningServer
    from exeora_ws.workspaces.place import Place, Project

group = Group("Workspaces")


@group.command(
    "status",
    """
    exeora status
    exeora status --json
    exeora -w feature-login status
    """,
    (
        "`project{id, slug, root}` or null, `workspace{id, slug, name, branch, managed, available, fault, "
        "path}` or null, `projects[{id, slug, root, urls}]` (where HTTP serves each), `servers[{pid, face, url, "
        "version, started}]` (those that run; `url` is null for `stdio`), `upstreams{servers, warnings}` as of "
        "`upstream list`, with `fault` in their place where mcp.json cannot be read; `paths{config, mcp, data, "
        "database, managedRoot, log}`, `versions{…}`, `counts{projects, workspaces}`."
    ),
)
def status(ctx: typer.Context) -> None:
    """Show where a command would act, which servers run, and where things are kept. Nothing is started."""
    from importlib.metadata import version

    from exeora_ws.serve.running import list_servers

    session = session_of(ctx)
    inventory = session.app.inventory
    project = session.find_project()
    place = _find_place(session)
    servers, projects = list_servers(session.app.places), inventory.list_projects()
    facts = {
        "project": None if project is None else describe_project(project),
        "workspace": None if place is None else _describe_place(session, place),
        "projects": [_describe_endpoints(each, servers) for each in projects],
        "servers": [_describe_server(server) for server in servers],
        "upstreams": _describe_upstreams(session, project),
        "paths": _list_paths(session),
        "versions": {"exeora": __version__, **{name: version(name) for name in ("mcp", "pygit2")}},
        "counts": {
            "projects": len(projects),
            "workspaces": 0 if project is None else len(inventory.list_workspaces(project)),
        },
    }
    session.show(facts, _show)


def _find_place(session: Session) -> "Place | None":
    """Give the workspace a command would act in, if there is one; one that is named must resolve."""
    project = session.find_project()
    if project is None:
        return None
    if session.options.workspace is not None:
        return session.app.inventory.require_place(project, session.resolve(project, session.options.workspace))
    around = session.find_around()
    return around if around is not None and around.project.id == project.id else None


def _describe_place(session: Session, place: "Place") -> dict[str, Any]:
    fault = session.app.inventory.find_fault(place.project, place.workspace)
    listed = session.app.inventory.list_workspaces(place.project)
    current = next((w for w in listed if w.id == place.workspace.id), place.workspace)
    return {
        "id": current.id,
        "slug": current.slug,
        "name": current.name,
        "branch": current.branch,
        "managed": current.managed,
        "available": fault is None,
        "fault": fault,
        "path": str(current.path),
    }


def _describe_endpoints(project: "Project", servers: "list[RunningServer]") -> dict[str, Any]:
    urls = [f"{server.url}/p/{project.slug}/mcp" for server in servers if server.url is not None]
    return {**describe_project(project), "urls": urls}


def _describe_server(server: "RunningServer") -> dict[str, Any]:
    return {
        "pid": server.pid,
        "face": server.face,
        "url": server.url,
        "version": server.version,
        "started": write_time(server.started),
    }


def _describe_upstreams(session: Session, project: "Project | None") -> dict[str, Any]:
    """Give the upstream servers as configured; whether one works is not known without starting it."""
    root = None if project is None else project.root
    files = [session.app.places.mcp_file, *([] if root is None else [root / "exeora.toml"])]
    if not any(os.path.lexists(file) for file in files):
        return {"servers": [], "warnings": []}
    try:
        return list_configured(session, root)
    except ToolFailed as error:
        return {"fault": error.message}


def _list_paths(session: Session) -> dict[str, str]:
    places = session.app.places
    return {
        "config": str(places.config_file),
        "mcp": str(places.mcp_file),
        "data": str(places.data),
        "database": str(places.database),
        "managedRoot": str(session.app.services.settings().managed_root(places)),
        "log": str(places.log),
    }


def _show(facts: dict[str, Any]) -> Shown:
    project, workspace, counts = facts["project"], facts["workspace"], facts["counts"]
    rows = [("project", "none here" if project is None else f"{project['slug']}  {show_text(project['root'])}")]
    if workspace is None:
        rows.append(("workspace", "none here"))
    else:
        fault = "" if workspace["available"] else f"  (unavailable: {workspace['fault']})"
        rows.append(("workspace", workspace["slug"] + fault))
        rows.append(("branch", show_text(workspace["branch"]) if workspace["branch"] else "-"))
        rows.append(("path", show_text(workspace["path"])))
    rows += _show_servers(facts)
    rows.append(("counts", f"{counts['workspaces']} workspaces here, {counts['projects']} projects"))
    rows += [(name, show_text(path)) for name, path in facts["paths"].items()]
    rows.append(("versions", ", ".join(f"{name} {number}" for name, number in facts["versions"].items())))
    notes = list(facts["upstreams"].get("warnings", []))
    notes += ["this directory is in no project: exeora create BRANCH starts one"] if project is None else []
    return Shown(align(rows), notes)


def _show_servers(facts: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("server", _word_server(server)) for server in facts["servers"]] or [("server", "none runs")]
    here = facts["project"]["id"] if facts["project"] is not None else None
    rows += [("url", url) for project in facts["projects"] if project["id"] == here for url in project["urls"]]
    upstreams = facts["upstreams"]
    if "fault" in upstreams:
        rows.append(("upstreams", upstreams["fault"]))
    elif upstreams["servers"]:
        listed = ", ".join(f"{show_text(server['name'])} ({server['state']})" for server in upstreams["servers"])
        rows.append(("upstreams", listed))
    return rows


def _word_server(server: dict[str, Any]) -> str:
    where = "stdio" if server["url"] is None else f"{server['url']}/mcp"
    return f"{where}  since {server['started']}, process {server['pid']}, version {server['version']}"
