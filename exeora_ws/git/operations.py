"""What a worktree is in the middle of, read off the files that Git leaves in its Git folder meanwhile."""

import os
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.git import gitfiles
from exeora_ws.git.port import Operation
from exeora_ws.git.refnames import is_commit_id, short_branch

_SINGLE = (
    ("MERGE_HEAD", Operation.MERGE),
    ("CHERRY_PICK_HEAD", Operation.CHERRY_PICK),
    ("REVERT_HEAD", Operation.REVERT),
)


@dataclass(frozen=True, slots=True)
class InProgress:
    """An operation, and the branches that are kept for it though HEAD does not name them."""

    operation: Operation | None
    held_branch: str | None = None
    also_held: tuple[str, ...] = ()


def read_operation(git_dir: Path) -> InProgress:
    """Read what is going on in the worktree with this Git folder."""
    for folder in ("rebase-merge", "rebase-apply"):
        state = git_dir / folder
        if state.is_dir():
            if (state / "applying").exists():
                return InProgress(Operation.AM)
            held = short_branch(gitfiles.read_path(f"{state}/head-name"))
            return InProgress(Operation.REBASE, held, _read_updated(state))
    if (git_dir / "BISECT_LOG").exists():
        return InProgress(Operation.BISECT, _read_bisected(git_dir))
    for name, operation in _SINGLE:
        if os.path.lexists(git_dir / name):
            return InProgress(operation)
    return InProgress(_read_sequence(git_dir))


def _read_updated(state: Path) -> tuple[str, ...]:
    """Read the branches of `rebase --update-refs`: the first of every three lines."""
    lines = (gitfiles.read_text(f"{state}/update-refs") or "").splitlines()
    return tuple(sorted(filter(None, map(short_branch, lines[::3]))))


def _read_bisected(git_dir: Path) -> str | None:
    start = gitfiles.read_path(f"{git_dir}/BISECT_START")
    if start is None or is_commit_id(start):
        return None
    return start.removeprefix("refs/heads/")


def _read_sequence(git_dir: Path) -> Operation | None:
    """Tell a cherry-pick or revert of several commits that stands between two of them."""
    todo = gitfiles.read_text(f"{git_dir}/sequencer/todo") or ""
    first = todo.split(maxsplit=1)[0] if todo.strip() else ""
    return {"pick": Operation.CHERRY_PICK, "revert": Operation.REVERT}.get(first)
