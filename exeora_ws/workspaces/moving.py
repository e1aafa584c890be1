"""Move uncommitted changes from one checkout to a new workspace at the same commit; at no instant are they nowhere.

They are a commit first, then in the new workspace and compared tree by tree, and only then taken out of the source,
if that has not changed meanwhile. Taking them out is an operation of its own, written down as the workspace is
registered: one that is cut short is completed by the next command, if both sides are still what they were.
"""

import logging
import secrets
from dataclasses import dataclass

import msgspec

from exeora_ws.errors import ToolFailed
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Repository, Snapshot, Status
from exeora_ws.workspaces import resolve
from exeora_ws.workspaces.create import MOVING
from exeora_ws.workspaces.place import Place, Project, Workspace
from exeora_ws.workspaces.registry import Registry, Unfinished, decode_facts, encode_facts, end_operation

_LOG = logging.getLogger("exeora")
_PASSING = frozenset({"busy", "disk_full", "timeout"})
"""Reasons for which clearing the source is tried again later: somebody else's lock, no room."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved: how many files of each kind. `source_kept` says why the source still has them too, if so."""

    staged: int
    unstaged: int
    untracked: int
    source_kept: str | None = None


class MovingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What completing a move needs to know: whose checkouts, by workspace id, and the changes."""

    source: str
    target: str
    commit: str
    head: str
    index: str
    files: str
    untracked: str | None

    @property
    def snapshot(self) -> Snapshot:
        """The changes."""
        return Snapshot(self.commit, self.head, self.index, self.files, self.untracked)

    @property
    def ref(self) -> str:
        """The reference that keeps them until the move is over."""
        return MOVING + self.target


class Move:
    """One move out of a source. Use: make it, have `bring` fill the new workspace, then `finish`."""

    def __init__(self, source: Place) -> None:
        self._source = source
        self._checkout = open_repository(source.workspace.worktree)
        self._status = _require_movable(self._checkout)
        self._operation: Unfinished | None = None

    def bring(self, target: Workspace) -> Unfinished:
        """Bring the changes into a clean new worktree at the same commit, and compare; gives what is left to do.

        Raises:
            ToolFailed: reason `changes_differ`, when they do not arrive as they were; what Git says. The source is
                untouched then.
        """
        snapshot = self._checkout.take_snapshot(MOVING + target.id)
        checkout = open_repository(target.worktree)
        checkout.apply_snapshot(snapshot, self._source.workspace.worktree)
        if not _holds(checkout, snapshot, MOVING + target.id):
            raise ToolFailed("the changes did not arrive as they were", reason="changes_differ")
        facts = MovingFacts(
            source=self._source.workspace.id,
            target=target.id,
            commit=snapshot.commit,
            head=snapshot.head,
            index=snapshot.index,
            files=snapshot.files,
            untracked=snapshot.untracked,
        )
        project = self._source.project
        self._operation = Unfinished(
            secrets.token_hex(8), "move", project.id, resolve.require_repository_dir(project), encode_facts(facts)
        )
        return self._operation

    def finish(self, registry: Registry) -> Moved:
        """Take the changes out of the source, unless it has changed meanwhile."""
        if self._operation is None:
            raise AssertionError("nothing was brought anywhere")
        kept = complete_move(registry, self._source.project, self._operation)
        status = self._status
        return Moved(len(status.staged), len(status.unstaged), len(status.untracked), kept)


def complete_move(registry: Registry, project: Project | None, operation: Unfinished) -> str | None:
    """Take out of the source what is in the target, if both are still what they were. Safe to repeat.

    Returns:
        Why the source still has some of it, if so. What passes (a lock, a full disk) leaves the operation on record,
        so that the next command tries again; anything else ends it, with the changes in both.
    """
    facts: MovingFacts = decode_facts(operation.facts, MovingFacts)
    repository = open_repository(operation.common_dir)
    try:
        kept = _clear(registry, project, facts)
    except ToolFailed as error:
        if error.reason in _PASSING:
            _LOG.warning("the changes that moved along cannot be taken out of their source yet: %s", error)
            return f"{error.message}; the next command tries again"
        kept = error.message
    repository.drop_ref(facts.ref)
    with registry.change() as connection:
        end_operation(connection, operation.id)
    return kept


def _clear(registry: Registry, project: Project | None, facts: MovingFacts) -> str | None:
    source, target = (_find_checkout(registry, project, each) for each in (facts.source, facts.target))
    if source is None or target is None:
        return "one of the two workspaces is gone"
    if not _holds(target, facts.snapshot, facts.ref):
        return "the new workspace changed meanwhile"
    check = f"{facts.ref}-check"
    try:
        if not source.has_rest_of(facts.snapshot, check):
            return "it changed meanwhile"
    finally:
        source.drop_ref(check)
    if target.checkout is None or not source.discard_changes(facts.snapshot, target.checkout):
        return "some of it is not what the new workspace has, byte by byte"
    return None if source.status().clean else "some of them could not be taken out"


def _holds(checkout: Repository, snapshot: Snapshot, ref: str) -> bool:
    check = f"{ref}-check"
    try:
        return checkout.has_changes_of(snapshot, check)
    finally:
        checkout.drop_ref(check)


def _find_checkout(registry: Registry, project: Project | None, workspace_id: str) -> Repository | None:
    workspace = registry.find_workspace(project.id, workspace_id) if project is not None else None
    if project is None or workspace is None or resolve.find_fault(project, workspace) is not None:
        return None
    return open_repository(workspace.worktree)


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
