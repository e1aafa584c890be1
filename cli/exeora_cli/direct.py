"""Run what is asked of the core beside the tools, as tools run: interruptible, and shown when it takes long."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import typer
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ExeoraError

from exeora_cli import answer
from exeora_cli.interrupt import cancel_on_signals
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
    cancellation = Cancellation()
    failure: BaseException
    with cancel_on_signals(cancellation) as interruption, showing_progress(what):
        try:
            return action(cancellation)
        except (ExeoraError, KeyboardInterrupt) as error:
            if interruption.signal is None:
                raise
            failure = error
    answer.print_error(Cancelled("interrupted: it was cancelled"), json=session.options.json)
    raise typer.Exit(answer.SIGNALLED + interruption.signal) from failure


def require_place(session: Session, workspace: str | None) -> "Place":
    """Give the workspace that is named, as an argument or with -w; else the one around the current directory."""
    if workspace is not None:
        session.options.take("workspace", workspace)
    project = session.require_project()
    return session.app.inventory.require_place(project, session.choose_workspace(project))
