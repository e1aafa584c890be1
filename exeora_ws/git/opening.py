"""Opening a repository at exactly one place, with the engine that fits it."""

import os
import sys
from pathlib import Path

from exeora_ws.errors import ToolFailed
from exeora_ws.git import status
from exeora_ws.git.command import Git, find_git
from exeora_ws.git.executable import ExecutableRepository
from exeora_ws.git.links import read_checkout
from exeora_ws.git.port import Checkout, Repository, Status


def open_repository(path: Path) -> Repository:
    """Open the repository at `path`: a worktree's top folder, or a bare or shared Git folder. Never walks up.

    Where git is installed it populates, tells the status and removes. It reads too until libgit2 has been loaded:
    loading that takes a short command longer (100 ms) than all its questions to git together (2 ms each). A process
    that stays calls `load_libgit2` once.

    Raises:
        ToolFailed: reason `not_a_repository`, `broken_link`; `git_missing` when only git could open it.
    """
    place = require_checkout(path)
    git = ExecutableRepository(place) if find_git() is not None else None
    if git is not None and "pygit2" not in sys.modules:
        return git
    from exeora_ws.git.libgit2 import Libgit2Repository, open_libgit2  # noqa: PLC0415  see above

    if open_libgit2(place) is not None:
        return Libgit2Repository(place, git)
    if git is not None:
        return git
    raise ToolFailed(
        "this repository's format or ownership needs the git executable, and there is none on PATH",
        reason="git_missing",
    )


def load_shown_status(path: Path) -> Status:
    """Give what `git status` shows at the top of a worktree: what a list tells, for half of what removing has to know.

    Git is asked where there is one, also while libgit2 is being loaded.

    Raises:
        ToolFailed: as `open_repository`, and what git says.
    """
    place = require_checkout(path)
    if find_git() is None or place.top is None:
        return open_repository(path).status()
    return status.load_shown_status(Git(place.top, place.git_dir))


def require_checkout(path: Path) -> Checkout:
    """Read what is at exactly `path`.

    Raises:
        ToolFailed: reason `not_a_repository`, `broken_link`.
    """
    found = read_checkout(os.path.realpath(path))
    if found is None:
        raise ToolFailed("this folder is neither the top of a worktree nor a Git folder", reason="not_a_repository")
    return found


def load_libgit2() -> None:
    """Load libgit2 now, so that every repository opened from here on is read without a process."""
    import pygit2  # noqa: F401, PLC0415  loading it is the point
