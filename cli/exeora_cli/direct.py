"""Run what is asked of the core beside the tools, as tools run: interruptible, and shown when it takes long."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from exeora_ws.cancellation import Cancellation

from exeora_cli.progress import showing_progress
from exeora_cli.session import Session

if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Place

T = TypeVar("T")


def run_direct(session: Session, what: str, action: Callable[[Cancellation], T]) -> T:
    """Run an action of the core.

    Args:
        session: the command's.
        what: shown while it takes long.
        action: takes the cancellation that a signal to end trips.

    Raises:
        ExeoraError: what the action says.
        Exit: interrupted, with the signal's code.
    """
    with session.interruptible("it") as cancellation, showing_progress(what):
        result = action(cancellation)
    return result  # noqa: RET504  inside the block mypy holds that it might not be reached


def require_place(session: Session, workspace: str | None) -> "Place":
    """Give the workspace that is named, as an argument or with -w; else the one around the current directory."""
    if workspace is not None:
        session.options.take("workspace", workspace)
    project = session.require_project()
    return session.app.inventory.require_place(project, session.choose_workspace(project))
