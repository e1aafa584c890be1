"""project add, list, remove."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exeora_cli.completion import complete_project
from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Shown, session_of

if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Project

group = Group("Set-up", "project", "Say which folders are projects.")


@group.command(
    "add",
    """
    exeora project add
    exeora project add ~/src/app
    exeora project add packages/api --slug api
    """,
    "`project{id, slug, root}`, `created`.",
)
def add(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The project's root.")] = ".",
    slug: Annotated[
        str | None, typer.Option("--slug", help="Selector of the project; derived from the folder.")
    ] = None,
) -> None:
    """Register a folder as a project, and its root as workspace main.

    Inside a repository the folder itself is the root, so that a part of a large repository can be a project.
    """
    session = session_of(ctx)
    session.refuse_globals("project add")
    folder = Path(session.folder / os.path.expanduser(path))
    project, created = session.app.inventory.register_project(folder, exact=True, slug=slug)
    session.show({"project": describe_project(project), "created": created}, _show_added)


@group.command(
    "list",
    """
    exeora project list
    exeora project list --json
    """,
    "The result of `list_projects`, each with its `root`: `projects[{id, slug, name, root}]`.",
)
def list_(ctx: typer.Context) -> None:
    """List the registered projects."""
    session = session_of(ctx)
    session.refuse_globals("project list")
    roots = {p.id: str(p.root) for p in session.app.inventory.list_projects()}
    listed = session.make("list_projects", {}, None)["projects"]
    projects = [{**project, "root": roots[project["id"]]} for project in listed if project["id"] in roots]
    session.show({"projects": projects}, _show_projects)


@group.command(
    "remove",
    """
    exeora project remove app
    exeora project remove app --force
    """,
    "`project{id, slug, root}`, `removed`.",
)
def remove(
    ctx: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Slug or id.", autocompletion=complete_project)],
    force: Annotated[
        bool, typer.Option("--force", help="Also while it has workspaces; their folders stay where they are.")
    ] = False,
) -> None:
    """Forget a project. Nothing on disk changes."""
    session = session_of(ctx)
    session.refuse_globals("project remove")
    found = session.app.inventory.require_project(project)
    session.app.inventory.remove_project(found, force=force)
    session.show(
        {"project": describe_project(found), "removed": True},
        lambda result: Shown([f"forgot {result['project']['slug']}"], ["nothing on disk was changed"]),
    )


def describe_project(project: "Project") -> dict[str, Any]:
    """Give a project as documents show it."""
    return {"id": project.id, "slug": project.slug, "root": str(project.root)}


def _show_added(result: dict[str, Any]) -> Shown:
    project = result["project"]
    note = "registered" if result["created"] else "was registered already"
    return Shown([project["slug"]], [f"project {project['slug']!r} {note}, at {project['root']}"])


def _show_projects(result: dict[str, Any]) -> Shown:
    projects = result["projects"]
    if not projects:
        return Shown([], ["there is no project yet: exeora project add PATH"])
    return Shown(align([(p["slug"], show_text(p["root"])) for p in projects]))
