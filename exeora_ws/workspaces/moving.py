"""Move uncommitted changes from one checkout to a new workspace at the same commit; at no instant are they nowhere.

They are a commit first, then in the new workspace and compared tree by tree, and only then taken out of the source,
if that has not changed meanwhile.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import ToolFailed
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Repository, Snapshot, Status

MOVING = "refs/exeora/moving/"


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved: how many files of each kind. `source_kept` says why the source still has them too, if so."""

    staged: int
    unstaged: int
    untracked: int
    source_kept: str | None = None


class Move:
    """One move out of a source checkout. Use: make it, `bring` into the new worktree, then `finish`; always `close`."""

    def __init__(self, source: Path) -> None:
        self._source = open_repository(source)
        self._status = _require_movable(self._source)
        self._ref = MOVING + secrets.token_hex(6)
        self._snapshot: Snapshot = self._source.take_snapshot(self._ref)

    def bring(self, worktree: Path) -> None:
        """Bring the changes into a clean worktree at the same commit, and compare.

        Raises:
            ToolFailed: reason `changes_differ`, when they do not arrive as they were; what Git says. The source is
                untouched then.
        """
        target = open_repository(worktree)
        target.apply_snapshot(self._snapshot)
        self._require_equal(target)

    def _require_equal(self, target: Repository) -> None:
        check = f"{self._ref}-check"
        try:
            if not target.has_changes_of(self._snapshot, check):
                raise ToolFailed("the changes did not arrive as they were", reason="changes_differ")
        finally:
            target.drop_ref(check)

    def finish(self) -> Moved:
        """Take the changes out of the source, unless it has changed meanwhile."""
        try:
            self._require_equal(self._source)
            self._source.discard_changes(self._snapshot)
            kept = None if self._source.status().clean else "some of them could not be taken out"
        except ToolFailed as error:
            kept = "it changed meanwhile" if error.reason == "changes_differ" else error.message
        status = self._status
        return Moved(len(status.staged), len(status.unstaged), len(status.untracked), kept)

    def close(self) -> None:
        """Let go of the commit that held the changes: they are in one of the two checkouts."""
        self._source.drop_ref(self._ref)


def _require_movable(source: Repository) -> Status:
    status = source.status()
    if status.conflicted:
        raise ToolFailed(
            "the source has unresolved conflicts, which cannot be moved", reason="conflicted", hint="resolve them first"
        )
    if status.submodules:
        raise ToolFailed(
            "the source has submodules with changes, which cannot be moved",
            reason="dirty_submodules",
            hint=f"commit in them first: {', '.join(status.submodules[:5])}",
        )
    here = source.checkout
    worktree = next((w for w in source.list_worktrees() if w.path == here), None)
    if worktree is not None and worktree.operation is not None:
        raise ToolFailed(f"the source is in the middle of a {worktree.operation}", reason="operation_in_progress")
    if status.clean:
        raise ToolFailed("the source has no uncommitted changes", reason="nothing_to_move", hint="leave the option out")
    return status
