"""What a worktree is in the middle of, read off the files that Git leaves in its Git folder meanwhile."""

import os
from collections.abc import Collection
from dataclasses import dataclass

from exeora_ws.git import gitfiles
from exeora_ws.git.port import Operation
from exeora_ws.git.refnames import is_commit_id, short_branch

_SINGLE = (
    ("MERGE_HEAD", Operation.MERGE),
    ("CHERRY_PICK_HEAD", Operation.CHERRY_PICK),
    ("REVERT_HEAD", Operation.REVERT),
)
STATES = frozenset(("rebase-merge", "rebase-apply", "BISECT_LOG"))
"""What lies in the Git folder of a worktree that may hold branches other than the one on its HEAD."""


@dataclass(frozen=True, slots=True)
class InProgress:
    """An operation, and the branches that are kept for it though HEAD does not name them."""

    operation: Operation | None
    held_branch: str | None = None
    also_held: tuple[str, ...] = ()


def read_operation(git_dir: str, files: Collection[str]) -> InProgress:
    """Read what is going on in the worktree with this Git folder; `files` is what lies in it."""
    for folder in ("rebase-merge", "rebase-apply"):
        if folder in files:
            return _read_rebase(f"{git_dir}/{folder}")
    if "BISECT_LOG" in files:
        return InProgress(Operation.BISECT, _read_bisected(git_dir))
    for name, operation in _SINGLE:
        if name in files:
            return InProgress(operation)
    return InProgress(_read_sequence(git_dir) if "sequencer" in files else None)


def _read_rebase(state: str) -> InProgress:
    if os.path.exists(state + "/applying"):
        return InProgress(Operation.AM)
    held = short_branch(gitfiles.read_path(state + "/head-name"))
    # `rebase --update-refs` keeps three lines for each branch that it will move; the first is its name.
    lines = (gitfiles.read_text(state + "/update-refs") or "").splitlines()
    return InProgress(Operation.REBASE, held, tuple(sorted(filter(None, map(short_branch, lines[::3])))))


def _read_bisected(git_dir: str) -> str | None:
    start = gitfiles.read_path(git_dir + "/BISECT_START")
    if start is None or is_commit_id(start):
        return None
    return start.removeprefix("refs/heads/")


def _read_sequence(git_dir: str) -> Operation | None:
    """Tell a cherry-pick or revert of several commits that stands between two of them."""
    todo = gitfiles.read_text(git_dir + "/sequencer/todo") or ""
    first = todo.split(maxsplit=1)[0] if todo.strip() else ""
    return {"pick": Operation.CHERRY_PICK, "revert": Operation.REVERT}.get(first)
