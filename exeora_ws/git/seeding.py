"""Filling a new worktree from a checkout that has most of its files already, where that writes what git would.

Here is decided whether; `copier.py` is the program that does it, and git writes whatever is left.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.git import copier, gitfiles
from exeora_ws.git.command import WORKERS, Git, Output
from exeora_ws.git.port import Addition, Checkout
from exeora_ws.limits import COPYING_PROCESSES, SEED_INDEX_BYTES

_HOOKS = ("post-checkout", "post-index-change")
_ROOT = str(Path(__file__).parents[2])
# Last on the path: what is installed beside us may be named like a module of Python's own.
_PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from exeora_ws.git.copier import main; main()"


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
    if b"\0hook." in b"\0" + settings:  # newer gits take hooks out of the configuration
        return True
    folder = f"{checkout.common_dir}/hooks"
    if b"\0core.hookspath\n" in b"\0" + settings:
        folder = os.path.join(git.folder, git.change("rev-parse", "--git-path", "hooks").text)
    return any(os.path.lexists(f"{folder}/{name}") for name in _HOOKS)


def make(git: Git, source: Checkout, addition: Addition, add: Sequence[str], cancellation: Cancellation | None) -> int:
    """Have the program add the worktree and fill it.

    Args:
        git: at the place that the worktree is added from.
        source: the checkout to copy from.
        addition: what is wanted.
        add: what git is told, to add it without files.
        cancellation: ends all of it.

    Returns:
        One of the exit codes of `copier.py`, or any other when it came to nothing that can be said.

    Raises:
        ToolFailed: reason `disk_full`, `timeout`.
        Cancelled: the call was taken back.
    """
    facts = (str(source.top), f"{source.git_dir}/index", str(addition.path), addition.commit, str(_count_processes()))
    program = [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT, *facts, *add, ""]
    code = git.populate_by(program, cancellation=cancellation).code
    if code == copier.NO_ROOM:
        raise ToolFailed("the disk has too little room for the worktree", reason="disk_full")
    return code


def write_rest(top: Path, cancellation: Cancellation | None) -> Output:
    """Have git write what a worktree lacks."""
    git_dir = gitfiles.read_git_link(f"{top}/.git")
    if git_dir is None:
        raise ToolFailed("the new worktree has no link to its repository", reason="git_failed")
    words = (*WORKERS, "reset", "--hard", "--no-recurse-submodules")
    return Git(top, Path(git_dir)).populate(*words, cancellation=cancellation)


def _count_processes() -> int:
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:
        usable = os.cpu_count() or 1
    return min(usable, COPYING_PROCESSES)
