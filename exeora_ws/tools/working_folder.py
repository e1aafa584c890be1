"""Where a command starts: a folder of the workspace, or one under `~/.agents/skills` (contract, section 5).

The folder is reached as any path is, by the confined walk of `files/`, and the command starts in what was opened: a
link that is swapped meanwhile cannot lead it out.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import ExeoraError, PathEscape, PathNotFound, WorkspaceUnavailable
from exeora_ws.files.reach import Reach


@dataclass(frozen=True, slots=True)
class WorkingFolder:
    """An open folder to start in. The descriptor is closed at the end of the `with` block."""

    path: str
    """Absolute and real."""
    descriptor: int


@contextmanager
def open_working_folder(root: Path, home: Path, cwd: str | None) -> Iterator[WorkingFolder]:
    """Open a command's `cwd`.

    Args:
        root: the workspace's root, absolute and real.
        home: the user's home folder.
        cwd: relative to the root, or under `~/.agents/skills`; None for the root itself.

    Raises:
        PathEscape: it leads out, as written or through a link.
        PathNotFound: no such folder, or reason `not_a_folder`, or the root itself is gone (`cwd_gone`).
        InvalidArguments: a NUL or half a character in it.
        ToolFailed: `link_loop`, `permission_denied`.
    """
    with ExitStack() as opened:
        try:
            spot = opened.enter_context(Reach(root, home).locate_for_reading(cwd or "."))
            descriptor = spot.enter_folder()
        except WorkspaceUnavailable as error:
            raise PathNotFound("cwd: the workspace's folder is gone", reason="cwd_gone") from error
        except ExeoraError as error:
            raise _about_cwd(error) from error
        opened.callback(os.close, descriptor)
        yield WorkingFolder(spot.real_path, descriptor)


def _about_cwd(error: ExeoraError) -> ExeoraError:
    """Name the argument that is wrong, and where a command may start."""
    hint = error.hint
    if isinstance(error, PathEscape):
        hint = "use a path relative to the workspace, or ~/.agents/skills/…"
    message = error.message.removeprefix("path: ")
    return type(error)(f"cwd: {message}", reason=error.reason, hint=hint, data=error.data)
