"""What names a workspace on the command line: slug, id, exact branch, `-` for the previous one, `@` for the one here.

All of it becomes a slug before a call is built. What does not resolve is an error; nothing here answers with main.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from exeora_ws.errors import UnknownWorkspace

from exeora_cli.previous import load_previous

if TYPE_CHECKING:
    from exeora_ws.app import App
    from exeora_ws.workspaces.place import Project

HERE = "@"
PREVIOUS = "-"


def resolve_selector(app: "App", project: "Project", selector: str, folder: Callable[[], Path]) -> str:
    """Give the slug of the workspace that a selector names.

    Args:
        app: the core.
        project: where to look.
        selector: as typed.
        folder: gives the current directory, which may be gone, for `@`.

    Raises:
        UnknownWorkspace: it names none, or more than one.
    """
    if selector == HERE:
        return _here(app, project, folder())
    if selector == PREVIOUS:
        return _previous(app, project)
    workspaces = app.inventory.list_workspaces(project)
    if not any(selector in (w.slug, w.id) for w in workspaces):
        on_branch = [w.slug for w in workspaces if w.branch == selector]
        if len(on_branch) > 1:
            raise UnknownWorkspace(
                f"branch {selector!r} is checked out in more than one workspace",
                reason="ambiguous_branch",
                hint=f"name one: {', '.join(on_branch)}",
            )
        if on_branch:
            return on_branch[0]
    return app.inventory.require_place(project, selector).workspace.slug


def _here(app: "App", project: "Project", folder: Path) -> str:
    around = app.inventory.find_around(folder)
    if around is None or around.project.id != project.id:
        raise UnknownWorkspace(
            f"the current directory is in no workspace of project {project.slug!r}",
            reason="not_in_workspace",
            hint="exeora list",
        )
    return around.workspace.slug


def _previous(app: "App", project: "Project") -> str:
    identity = load_previous(app.places, project.id)
    found = next((w for w in app.inventory.list_workspaces(project) if w.id == identity), None)
    if found is None:
        raise UnknownWorkspace(
            f"there is no previous workspace in project {project.slug!r}", reason="no_previous", hint="exeora list"
        )
    return found.slug
