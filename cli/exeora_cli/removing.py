"""Removing a workspace as the command line has it: for the command, and for its short way (`hot_remove.py`)."""

from typing import TYPE_CHECKING

from exeora_ws.errors import InvalidArguments

from exeora_cli import render
from exeora_cli.directive import leave_if_gone
from exeora_cli.session import Session

if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Project


def remove(
    session: Session, workspace: str | None, *, force: bool = False, delete_branch: bool = False, now: bool = False
) -> None:
    """Remove the workspace that is named, say so, and take a shell that stands in it to main.

    Raises:
        ExeoraError: it was not removed.
    """
    project, slug = require_named(session, "remove", workspace)
    around = session.find_around_quietly()
    arguments = {"workspace": slug, "force": force, "deleteBranch": delete_branch}
    result = session.make("remove_workspace", arguments, project)
    if now:
        session.app.upkeep.give_up(result["workspace"]["id"])
        result.pop("restorableUntil", None)
    session.show(result, render.show_removed)
    leave_if_gone(session, around)


def require_named(session: Session, command: str, workspace: str | None) -> "tuple[Project, str]":
    """Give project and slug for a command that never means the current directory's workspace by itself.

    Raises:
        InvalidArguments: none is named; reason `missing_workspace`.
    """
    if workspace is not None:
        session.options.take("workspace", workspace)
    if session.options.workspace is None:
        raise InvalidArguments(
            f"{command} needs a workspace to be named",
            reason="missing_workspace",
            hint=f"exeora {command} WORKSPACE; exeora list names them",
        )
    project = session.require_project()
    return project, session.resolve(project, session.options.workspace)
