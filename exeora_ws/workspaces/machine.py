"""What is wrong with this machine: programs that are missing or old, folders that others may read or nobody write."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from exeora_ws.errors import ToolFailed
from exeora_ws.git import links
from exeora_ws.git.version import OLDEST, read_git_version
from exeora_ws.settings import Places
from exeora_ws.workspaces.doctor import Problem

_MACHINE = "this machine"
_OTHERS = 0o077


def examine_machine(places: Places, managed_root: Path, find_ripgrep: Callable[[], str]) -> Iterator[Problem]:
    """Look at the programs and folders that everything needs."""
    yield from _examine_programs(find_ripgrep)
    for path, mode in ((places.data, 0o700), (places.database, 0o600)):
        yield from _examine_mode(path, mode)
    yield from _examine_root(managed_root)


def _examine_programs(find_ripgrep: Callable[[], str]) -> Iterator[Problem]:
    version = read_git_version()
    oldest = ".".join(map(str, OLDEST))
    if version is None:
        yield Problem("git_missing", _MACHINE, "there is no git on PATH", f"install git {oldest} or newer")
    elif version < OLDEST:
        said = f"git {'.'.join(map(str, version))} is too old for merge and for finding squashed branches"
        yield Problem("git_old", _MACHINE, said, f"install git {oldest} or newer")
    try:
        find_ripgrep()
    except ToolFailed as error:
        yield Problem("ripgrep_missing", _MACHINE, error.message, error.hint or "install ripgrep")


def _examine_mode(path: Path, mode: int) -> Iterator[Problem]:
    try:
        found = path.stat()
    except OSError:
        return
    if found.st_uid != os.geteuid():
        yield Problem("foreign_owner", _MACHINE, f"{path.name} belongs to another user", "set EXEORA_DATA_DIR")
    elif found.st_mode & _OTHERS:

        def repair() -> None:
            path.chmod(mode)

        said = f"others may read {path.name}"
        yield Problem("too_open", _MACHINE, said, f"chmod {mode:o} on it, or exeora doctor --fix", repair)


def _examine_root(managed_root: Path) -> Iterator[Problem]:
    nearest = managed_root
    while not nearest.is_dir():
        nearest = nearest.parent
    hint = "exeora config set worktree-root PATH"
    if not os.access(nearest, os.W_OK | os.X_OK):
        yield Problem("root_unwritable", _MACHINE, "the managed root cannot be written", hint)
    try:
        inside = links.find_checkout(nearest) is not None
    except ToolFailed:
        inside = True
    if inside:
        yield Problem("root_inside_checkout", _MACHINE, "the managed root lies inside a repository", hint)
