"""Run what is asked of the core beside the tools: as a call that policy judges and the record has, or just shown."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from exeora_ws.cancellation import Cancellation

from exeora_cli.progress import showing_progress
from exeora_cli.session import Session

if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Place, Project

T = TypeVar("T")


def run_direct(session: Session, what: str, action: Callable[[Cancellation], T]) -> T:
    """Run an action of the core that is no call: it changes no project.

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


def run_deed(
    session: Session,
    name: str,
    where: "Place | Project | None",
    action: Callable[[Cancellation], T],
    *,
    arguments: Mapping[str, Any] | None = None,
    changes: bool = True,
    listed_as: tuple[str, ...] = (),
) -> T:
    """Run an action of the core as a call: judged by the project's policy, confirmed where that asks, recorded.

    Args:
        session: the command's.
        name: in the record, snake_case.
        where: the workspace, or the project, that it is about; None for neither.
        action: takes the cancellation that a signal to end trips.
        arguments: what a person who is asked gets to see, but for what is None or False.
        changes: see `exeora_ws.tools.shell.deeds.make_deed`.
        listed_as: likewise.

    Raises:
        ExeoraError: what policy or the action says.
        Exit: interrupted, with the signal's code.
    """
    from exeora_ws.tools.shell.deeds import make_deed
    from exeora_ws.tools.spec import Needs
    from exeora_ws.workspaces.place import Place

    kept: list[T] = []
    given = {key: value for key, value in (arguments or {}).items() if value not in (None, False)}
    needs, project = Needs.PROJECT, where
    if isinstance(where, Place):
        needs, project, given["workspace"] = Needs.RECORD, where.project, where.workspace.id
    elif where is None:
        needs = Needs.NOTHING
    tool = make_deed(name, lambda c: kept.append(action(c)), needs, changes=changes, listed_as=listed_as)
    session.make(tool, given, project)  # type: ignore[arg-type]  # by now it is a project or None
    return kept[0]


def require_place(session: Session, workspace: str | None) -> "Place":
    """Give the workspace that is named, as an argument or with -w; else the one around the current directory."""
    if workspace is not None:
        session.options.take("workspace", workspace)
    project = session.require_project()
    return session.app.inventory.require_place(project, session.choose_workspace(project))
