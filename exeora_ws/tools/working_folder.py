"""Where a command starts: a folder of the workspace, or one under `~/.agents/skills` (contract, section 5).

It starts in the folder that was opened, so a link that is swapped meanwhile cannot lead it out.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import ExeoraError
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
        PathNotFound: no such folder, or reason `not_a_folder`.
        WorkspaceUnavailable: reason `folder_missing`, the root itself is gone.
        InvalidArguments: the path is malformed.
    """
    with _named(cwd or "."), Reach(root, home).locate_for_reading(cwd or ".") as spot:
        folder = WorkingFolder(os.path.join(spot.root.path, *spot.real), spot.open_folder())
    try:
        yield folder
    finally:
        os.close(folder.descriptor)


@contextmanager
def _named(cwd: str) -> Iterator[None]:
    """Say in every refusal which argument it is about."""
    try:
        yield
    except ExeoraError as error:
        about = error.message.removeprefix("path: ")
        shown = "" if cwd in about else f"{cwd[:200]!r}: "
        raise type(error)(f"cwd: {shown}{about}", reason=error.reason, hint=error.hint, data=error.data) from error
