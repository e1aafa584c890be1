"""Remove a workspace: refuse what would lose something, then rename into the trash, so that it can be brought back.

The rename is the instant at which the workspace is gone. An operation cut short before it is undone, one cut short
after it is completed (`recover.py`).
"""

import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from exeora_ws.errors import ToolFailed
from exeora_ws.git.holding import find_pointers
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import BranchDeletion, Repository, Status, Worktree
from exeora_ws.limits import TRASH_DAYS
from exeora_ws.names import WorkspaceId, show_bytes
from exeora_ws.storage import make_private_folder
from exeora_ws.workspaces import folders, resolve, trash
from exeora_ws.workspaces.place import Place, Project, Workspace
from exeora_ws.workspaces.registry import (
    Registry,
    Unfinished,
    decode_facts,
    delete_workspace,
    encode_facts,
    end_operation,
)
from exeora_ws.workspaces.setup import Prepared
from exeora_ws.workspaces.trash import RemovalFacts
from exeora_ws.workspaces.undoing import all_or_nothing

_NAMED_FILES = 20
StopProcesses = Callable[[WorkspaceId], Sequence[str]]
"""Ends what runs in a workspace, whoever started it; names what was ended."""
TearDown = Callable[[], Prepared]
"""Runs the teardown commands."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What a removal did. `ignored` are the ignored files that went with it (at most 20 of `ignored_count`)."""

    workspace: Workspace
    branch: BranchDeletion | None
    ignored: tuple[str, ...]
    ignored_count: int
    stopped: tuple[str, ...]
    restorable_until: float | None
    teardown: Prepared | None = None


def remove_workspace(
    registry: Registry,
    managed_root: Path,
    place: Place,
    *,
    force: bool,
    delete_branch: bool,
    stop: StopProcesses,
    tear_down: TearDown,
    now: bool = False,
    merged_at: str | None = None,
) -> Removal:
    """Disconnect a workspace and take its folder away. The caller holds the repository's lock and has recovered.

    Args:
        registry: the registry.
        managed_root: where the trash is.
        place: the workspace; main is refused, whatever else is said.
        force: remove uncommitted changes too. A locked worktree and a foreign folder stay refused.
        delete_branch: also delete the branch, as `git branch -d` would.
        stop: ends the processes in it, after every check and before the folder moves, and once more after that.
        tear_down: runs the project's teardown commands in it, just before that.
        now: it shall not come back: the next sweep deletes it.
        merged_at: the commit at which the branch is known to be merged, although `git branch -d` would not see it.

    Raises:
        ToolFailed: `is_main`, `locked`, `nested_workspace`, `connected_elsewhere`, `foreign_folder`, `dirty`,
            `operation_in_progress`, `unreachable_commits`, `delete_failed`, and what Git says. Nothing was changed
            then.
    """
    workspace = resolve.refresh_branch(place.project, place.workspace)
    if workspace.main:
        raise ToolFailed("main is the project itself and is never removed", reason="is_main")
    repository = open_repository(resolve.require_repository_dir(place.project))
    worktrees = repository.list_worktrees()
    worktree = next((w for w in worktrees if w.path == workspace.worktree and not w.main), None)
    _refuse_locked(worktree)
    folders.refuse_nested(registry, worktrees, workspace)
    gone = not os.path.lexists(workspace.worktree)
    status = None if gone else _check(place.project, workspace, worktree, force=force)
    torn_down = None if gone else tear_down()
    stopped = tuple(stop(workspace.id))
    facts = describe_facts(registry, repository, managed_root, workspace, worktree, gone=gone)
    known = merged_at is not None and facts.head == merged_at
    facts = msgspec.structs.replace(facts, delete_branch=delete_branch, now=now, force_branch=known)
    operation = Unfinished(
        secrets.token_hex(8),
        "remove",
        place.project.id,
        resolve.require_repository_dir(place.project),
        encode_facts(facts),
    )
    registry.begin(operation)
    with all_or_nothing(registry, operation, lambda: settle_removal(registry, repository, place.project, operation)):
        take_away(repository, facts, worktree, status)
    branch = settle_removal(registry, repository, place.project, operation)
    # What was being started meanwhile came on record only now, or is ended by whoever starts it.
    stopped += tuple(stop(workspace.id))
    ignored = status.ignored if status else ()
    until = None if gone or now else time.time() + TRASH_DAYS * 86_400
    return Removal(workspace, branch, ignored[:_NAMED_FILES], len(ignored), stopped, until, torn_down)


def _refuse_locked(worktree: Worktree | None) -> None:
    if worktree is not None and worktree.locked is not None:
        because = f": {worktree.locked}" if worktree.locked else ", with no reason given"
        raise ToolFailed(
            f"the workspace is locked{because}",
            reason="locked",
            hint="unlock it first: exeora unlock, or git worktree unlock",
            data={"lockReason": worktree.locked},
        )


def _check(project: Project, workspace: Workspace, worktree: Worktree | None, *, force: bool) -> Status:
    fault = resolve.find_fault(project, workspace)
    if worktree is None or fault in ("other_repository", "not_a_worktree", "broken_link"):
        raise ToolFailed(
            "the registered folder no longer holds this workspace, so it is left alone",
            reason="foreign_folder",
            hint=f"exeora doctor; or exeora detach {workspace.slug}, which touches nothing on disk",
        )
    status = open_repository(workspace.worktree).status(ignored=True)
    if not force:
        _refuse_dirty(status)
        _refuse_operation(worktree)
        _refuse_unreachable(open_repository(workspace.worktree), worktree)
    return status


def _refuse_dirty(status: Status) -> None:
    if status.clean:
        return
    kinds = {
        "staged": status.staged,
        "unstaged": status.unstaged,
        "untracked": status.untracked,
        "conflicted": status.conflicted,
        "submodules": status.submodules,
    }
    counts = ", ".join(f"{len(paths)} {kind}" for kind, paths in kinds.items() if paths)
    raise ToolFailed(
        f"the workspace has uncommitted changes: {counts}",
        reason="dirty",
        hint="commit or discard them, or pass force",
        data={kind: [show_bytes(p) for p in paths[:_NAMED_FILES]] for kind, paths in kinds.items() if paths},
    )


def _refuse_operation(worktree: Worktree) -> None:
    if worktree.operation is not None:
        raise ToolFailed(
            f"the workspace is in the middle of a {worktree.operation}",
            reason="operation_in_progress",
            hint="finish or abort it, or pass force",
        )


def _refuse_unreachable(repository: Repository, worktree: Worktree) -> None:
    if worktree.detached and worktree.head is not None and not repository.is_reachable(worktree.head):
        raise ToolFailed(
            "HEAD is detached and its commits are on no branch or tag",
            reason="unreachable_commits",
            hint="make a branch there first, or pass force",
        )


def describe_facts(
    registry: Registry,
    repository: Repository,
    managed_root: Path,
    workspace: Workspace,
    worktree: Worktree | None,
    *,
    gone: bool,
) -> RemovalFacts:
    """Write down what removing a workspace, settling that and bringing it back need to know."""
    base = registry.find_base(workspace.id)
    return RemovalFacts(
        workspace_id=workspace.id,
        slug=workspace.slug,
        name=workspace.name,
        branch=workspace.branch,
        worktree=str(workspace.worktree),
        path=str(workspace.path),
        managed=workspace.managed,
        head=worktree.head if worktree else None,
        delete_branch=False,
        trash=str(trash.make_path(managed_root, workspace)),
        gone=gone,
        common_dir=str(repository.common_dir),
        base_ref=base.ref if base else None,
        base_commit=base.commit if base else None,
        branch_settings=tuple(repository.read_branch_settings(workspace.branch)) if workspace.branch else (),
    )


def take_away(repository: Repository, facts: RemovalFacts, worktree: Worktree | None, status: Status | None) -> None:
    """Move a workspace's folder into the trash, with what Git keeps about it beside it.

    Raises:
        ToolFailed: reason `delete_failed`.
    """
    if facts.gone:
        return
    make_private_folder(Path(facts.trash))
    if worktree is not None:
        _hold_objects(facts, worktree, status)
        repository.save_admin(worktree, facts.admin)
    try:
        os.rename(facts.worktree, facts.tree)
    except OSError as error:
        raise ToolFailed(f"the folder cannot be moved away: {error.strerror}", reason="delete_failed") from error


def _hold_objects(facts: RemovalFacts, worktree: Worktree, status: Status | None) -> None:
    """Keep what only this worktree's HEAD and index keep, now that Git will not see them any more."""
    repository = open_repository(Path(facts.worktree))
    named = find_pointers(repository.common_dir / "worktrees" / (worktree.admin or ""))
    commits = [worktree.head, *named] if worktree.head else named
    staged = [*status.staged, *status.conflicted] if status else []
    if not facts.now:
        repository.hold_objects(facts.label, commits, staged)


def settle_removal(
    registry: Registry, repository: Repository, project: Project | None, operation: Unfinished
) -> BranchDeletion | None:
    """Complete a removal whose folder is away, undo one whose folder still stands. Safe to repeat.

    The branch of a project that is no longer registered stays.
    """
    facts: RemovalFacts = decode_facts(operation.facts, RemovalFacts)
    if not facts.gone and not facts.tree.exists():
        repository.release_objects(facts.label)
        folders.delete_tree(Path(facts.trash))
        with registry.change() as connection:
            end_operation(connection, operation.id)
        return None
    for worktree in repository.list_worktrees():
        if str(worktree.path) == facts.worktree and not worktree.main:
            repository.remove_admin(worktree)
    repository.discard_remains(Path(facts.worktree).name)
    deletion = _delete_branch(project, facts)
    _record(registry, operation, facts)
    return deletion


def _delete_branch(project: Project | None, facts: RemovalFacts) -> BranchDeletion | None:
    if not facts.delete_branch or project is None:
        return None
    if facts.branch is None:
        return BranchDeletion(deleted=False, reason="missing", message="the workspace was on no branch")
    top = resolve.require_repository_dir(project) if project.bare else project.root
    repository = open_repository(_top(project, top))
    if facts.head is None and repository.find_branch(facts.branch) is not None:
        said = f"Git had no record of the workspace, so nothing says that branch {facts.branch!r} is still its own"
        return BranchDeletion(deleted=False, reason="stale", message=said)
    return repository.delete_branch(facts.branch, facts.head or "", force=facts.force_branch)


def _top(project: Project, root: Path) -> Path:
    depth = len(project.subdirectory.parts)
    return root.parents[depth - 1] if depth else root


def _record(registry: Registry, operation: Unfinished, facts: RemovalFacts) -> None:
    with registry.change() as connection:
        delete_workspace(connection, facts.describe(operation.project_id), "removed")
        if not facts.gone:
            trash.insert_removal(connection, facts, operation.facts, operation.project_id)
        end_operation(connection, operation.id)
