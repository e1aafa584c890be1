"""Filling a new worktree from a checkout that has most of its files already, where that writes what git would.

Here is decided whether; `copier.py` is the program that does it, and git writes whatever is left.
"""

import os
import sys
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.git import copier, gitfiles
from exeora_ws.git.command import WORKERS, Git, Output
from exeora_ws.git.port import Checkout
from exeora_ws.limits import COPYING_PROCESSES, SEED_INDEX_BYTES

_HOOKS = ("post-checkout", "post-index-change")
_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from exeora_ws.git.copier import main; main()"


def can_seed(git: Git, checkout: Checkout) -> bool:
    """Whether files of this checkout may be copied into a new worktree that `git`, at its own place, adds.

    Not where hooks want to see git do it, or where objects are replaced. A small worktree git has written before
    Python has started.
    """
    return (
        bool(sys.executable)
        and checkout.top is not None
        and _measure(f"{checkout.git_dir}/index") >= SEED_INDEX_BYTES
        and not _has_replacements(str(checkout.common_dir))
        and not copier.is_converting(settings := git.change("config", "--list", "-z").out)
        and not _has_hooks(git, checkout, settings)
    )


def _measure(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _has_replacements(common_dir: str) -> bool:
    if os.path.isdir(common_dir + "/refs/replace") or os.path.isdir(common_dir + "/reftable"):
        return True
    try:
        with open(common_dir + "/packed-refs", "rb") as stream:
            return b" refs/replace/" in stream.read()
    except FileNotFoundError:
        return False


def _has_hooks(git: Git, checkout: Checkout, settings: bytes) -> bool:
    folder = f"{checkout.common_dir}/hooks"
    if b"\0core.hookspath\n" in b"\0" + settings:
        folder = os.path.join(git.folder, git.change("rev-parse", "--git-path", "hooks").text)
    return any(os.path.lexists(f"{folder}/{name}") for name in _HOOKS)


def fill(source: Path, top: Path, commit: str, cancellation: Cancellation | None) -> Output | None:
    """Fill a worktree that was added without files; gives what git said in the end, None when git had nothing to do.

    Raises:
        ToolFailed: reason `disk_full`, `timeout`.
        Cancelled: the call was taken back.
    """
    git_dir = gitfiles.read_git_link(f"{top}/.git")
    if git_dir is None:
        raise ToolFailed("the new worktree has no link to its repository", reason="git_failed")
    git = Git(top, Path(git_dir))
    words = (str(source), str(top), git_dir, commit, str(_count_processes()))
    done = git.populate_by(_command(words), cancellation=cancellation)
    if done.code == copier.COMPLETE:
        return None
    if done.code == copier.NO_ROOM:
        raise ToolFailed("the disk has too little room for the worktree", reason="disk_full")
    return git.populate(*WORKERS, "reset", "--hard", "--no-recurse-submodules", cancellation=cancellation)


def _command(words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT, *words]


def _count_processes() -> int:
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:
        usable = os.cpu_count() or 1
    return min(usable, COPYING_PROCESSES)
