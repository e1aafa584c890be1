"""status: where one is, and where things are kept."""

from typing import TYPE_CHECKING, Any

import typer
from exeora_ws import __version__

from exeora_cli.commands.projects import describe_project
from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Session, Shown, session_of

if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Place

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
        "path}` or null, `paths{config, data, database, managedRoot, log}`, `versions{…}`, `counts{projects, "
        "workspaces}`."
    ),
)
def status(ctx: typer.Context) -> None:
    """Show where a command would act, and where things are kept."""
    from importlib.metadata import version

    session = session_of(ctx)
    inventory = session.app.inventory
    project = session.find_project()
    place = _find_place(session)
    facts = {
        "project": None if project is None else describe_project(project),
        "workspace": None if place is None else _describe_place(session, place),
        "paths": _list_paths(session),
        "versions": {"exeora": __version__, **{name: version(name) for name in ("mcp", "pygit2")}},
        "counts": {
            "projects": len(inventory.list_projects()),
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


def _list_paths(session: Session) -> dict[str, str]:
    places = session.app.places
    return {
        "config": str(places.config_file),
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
    rows.append(("counts", f"{counts['workspaces']} workspaces here, {counts['projects']} projects"))
    rows += [(name, show_text(path)) for name, path in facts["paths"].items()]
    rows.append(("versions", ", ".join(f"{name} {number}" for name, number in facts["versions"].items())))
    notes = ["this directory is in no project: exeora create BRANCH starts one"] if project is None else []
    return Shown(align(rows), notes)
