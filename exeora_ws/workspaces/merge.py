"""Bring a workspace's branch into its base. All is made and checked in memory first: a conflict leaves no trace."""

import secrets
from dataclasses import dataclass, replace

import msgspec

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Difference, Folded, Repository, Status
from exeora_ws.workspaces import resolve
from exeora_ws.workspaces.overview import find_base_ref
from exeora_ws.workspaces.place import Place, Project, Workspace
from exeora_ws.workspaces.registry import Registry, Unfinished, decode_facts, encode_facts, end_operation
from exeora_ws.workspaces.undoing import all_or_nothing

HOW = ("ff", "squash", "rebase")


@dataclass(frozen=True, slots=True)
class Merging:
    """What was merged: `into` moved from `before` to `after`.

    `rebased` is the branch's own new commit, if any; `kept` says why the branch stays at its old one, where it should
    have one. `head` is where the branch is now: all of it is in `into`.
    """

    workspace: Workspace
    into: str
    before: str
    after: str
    commits: int
    head: str
    rebased: str | None = None
    kept: str | None = None


class MergingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What completing a rebase needs to know: the branch goes from `head` to `after` once `into` is there."""

    workspace: str
    into: str
    branch: str
    head: str
    after: str


@dataclass(frozen=True, slots=True)
class _Ends:
    """Both ends of a merge."""

    into: str
    base: str
    branch: str
    head: str


def load_difference(registry: Registry, place: Place, against: str | None, *, stat: bool) -> tuple[str, Difference]:
    """Give what a workspace has that its base (or `against`) had not, uncommitted changes too; and what that base is.

    Raises:
        ToolFailed: `no_base`, `unknown_ref`, what Git says.
    """
    repository = open_repository(place.workspace.worktree)
    ref = against or _require_base(registry, place, repository)
    commit = repository.find_commit(ref)
    if commit is None:
        raise ToolFailed(f"{ref!r} names no commit here", reason="unknown_ref", hint="git fetch, or check the spelling")
    return ref, repository.load_difference(commit, stat=stat)


def merge_workspace(registry: Registry, place: Place, into: str | None, how: str, message: str | None) -> Merging:
    """Merge a workspace's branch into its base. The caller holds the repository's lock.

    Args:
        registry: where the base is on record.
        place: the workspace.
        into: another local branch than its base.
        how: `ff` (only forward), `squash` (one commit) or `rebase` (its commits again, on top).
        message: of the squashed commit.

    Raises:
        InvalidArguments: `invalid_how`.
        ToolFailed: `is_main`, `detached_head`, `no_base`, `not_a_branch`, `dirty`, `operation_in_progress`,
            `nothing_to_merge`, `not_fast_forward`, `conflicts` (`data.files`), `has_merges`, `would_overwrite`,
            `branch_in_use`, `branch_moved`, and what Git says. Nothing was changed then.
    """
    if how not in HOW:
        raise InvalidArguments(f"how: {how!r} is none of {', '.join(HOW)}", reason="invalid_how")
    workspace = resolve.refresh_branch(place.project, place.workspace)
    repository = open_repository(workspace.worktree)
    ends = _settle_ends(registry, Place(place.project, workspace), repository, into)
    subjects = repository.list_subjects(ends.base, ends.head)
    if not subjects:
        raise ToolFailed(f"{ends.into!r} has everything of {ends.branch!r} already", reason="nothing_to_merge")
    after = _make(repository, ends, how, message or _describe(ends.branch, list(subjects)))
    done = Merging(workspace, ends.into, ends.base, after, len(subjects), ends.head)
    if how != "rebase" or after == ends.head:
        _move_base(repository, ends, after)
        return done
    operation = _write_down(registry, place.project, workspace, ends, after)
    with all_or_nothing(registry, operation, lambda: complete_merge(registry, place.project, operation)):
        _move_base(repository, ends, after)
    kept = complete_merge(registry, place.project, operation)
    return replace(done, kept=kept) if kept is not None else replace(done, head=after, rebased=after)


def _write_down(registry: Registry, project: Project, workspace: Workspace, ends: _Ends, after: str) -> Unfinished:
    facts = MergingFacts(workspace=workspace.id, into=ends.into, branch=ends.branch, head=ends.head, after=after)
    common_dir = resolve.require_repository_dir(project)
    operation = Unfinished(secrets.token_hex(8), "merge", project.id, common_dir, encode_facts(facts))
    registry.begin(operation)
    return operation


def complete_merge(registry: Registry, project: Project | None, operation: Unfinished) -> str | None:
    """Bring the branch of a rebase where its base is by now; if that never moved, there is nothing to do.

    Safe to repeat. The branch stays where it is when it, or its workspace, is not what it was: all of it is in the
    base, and it can still be rebased by hand.

    Returns:
        Why the branch stays, if it does. While a lock of Git's is in the way the operation stays on record, and the
        next command tries again.
    """
    facts: MergingFacts = decode_facts(operation.facts, MergingFacts)
    repository = open_repository(operation.common_dir)
    try:
        kept = _bring_branch(registry, repository, project, facts)
    except ToolFailed as error:
        if error.reason == "busy":
            return f"{error.message}; the next command tries again"
        kept = error.message
    with registry.change() as connection:
        end_operation(connection, operation.id)
    return kept


def _bring_branch(
    registry: Registry, repository: Repository, project: Project | None, facts: MergingFacts
) -> str | None:
    base = repository.find_branch(facts.into)
    if base is None or not repository.is_ancestor(facts.after, base):
        _refuse_busy(repository, facts.into)
        return None
    workspace = registry.find_workspace(project.id, facts.workspace) if project is not None else None
    if project is None or workspace is None or resolve.find_fault(project, workspace) is not None:
        return "its workspace is gone"
    if resolve.refresh_branch(project, workspace).branch != facts.branch:
        return "its workspace is on another branch"
    if repository.find_branch(facts.branch) != facts.head:
        return f"{facts.branch!r} has moved"
    open_repository(workspace.worktree).switch_to(facts.after)
    return None


def _refuse_busy(repository: Repository, into: str) -> None:
    """See that no git is at work on the base: one that a killed exeora started may be about to move it."""
    holder = next((w for w in repository.list_worktrees() if w.branch == into), None)
    if holder is not None and open_repository(holder.path).is_locked_by_git():
        raise ToolFailed("a git is at work where the base is checked out", reason="busy")


def _settle_ends(registry: Registry, place: Place, repository: Repository, into: str | None) -> _Ends:
    workspace = place.workspace
    if workspace.main:
        raise ToolFailed("main is what others are merged into", reason="is_main")
    if workspace.branch is None:
        raise ToolFailed("the workspace is on no branch", reason="detached_head", hint="git switch -c BRANCH there")
    own = next((w for w in repository.list_worktrees() if w.path == workspace.worktree), None)
    if own is not None and own.operation is not None:
        raise ToolFailed(f"the workspace is in the middle of a {own.operation}", reason="operation_in_progress")
    _refuse_dirty(repository.status())
    ref = into or _require_base(registry, place, repository)
    base, head = repository.find_branch(ref), repository.find_branch(workspace.branch)
    if base is None or head is None:
        raise ToolFailed(
            f"{ref!r} is no local branch, so nothing can be merged into it", reason="not_a_branch", hint="pass --into"
        )
    return _Ends(ref, base, workspace.branch, head)


def _refuse_dirty(status: Status) -> None:
    if not status.clean:
        raise ToolFailed("the workspace has uncommitted changes", reason="dirty", hint="commit them first")


def _require_base(registry: Registry, place: Place, repository: Repository) -> str:
    trunk = next((w.branch for w in repository.list_worktrees() if w.main), None)
    ref = find_base_ref(registry, place.workspace, trunk)
    if ref is None:
        raise ToolFailed("what it was made from is not known", reason="no_base", hint="name a branch")
    return ref


def _make(repository: Repository, ends: _Ends, how: str, message: str) -> str:
    forward = repository.is_ancestor(ends.base, ends.head)
    if how != "squash" and forward:
        return ends.head
    if how == "ff":
        raise ToolFailed(
            f"{ends.into!r} has commits that {ends.branch!r} lacks, so it cannot just move forward",
            reason="not_fast_forward",
            hint="pass --rebase or --squash",
        )
    folded = (
        repository.squash(ends.head, ends.base, message) if how == "squash" else repository.rebase(ends.head, ends.base)
    )
    return _require_commit(folded, ends)


def _require_commit(folded: Folded, ends: _Ends) -> str:
    if folded.commit is None:
        files = list(folded.conflicts)
        raise ToolFailed(
            f"{ends.branch!r} and {ends.into!r} change the same lines of {', '.join(files[:5])}",
            reason="conflicts",
            hint=f"merge {ends.into} into the workspace, resolve there, and try again",
            data={"files": files[:50], "total": len(files)},
        )
    return folded.commit


def _move_base(repository: Repository, ends: _Ends, after: str) -> None:
    holder = next((w for w in repository.list_worktrees() if ends.into in w.holds), None)
    if holder is None:
        repository.advance(ends.into, ends.base, after)
        return
    if holder.operation is not None or holder.branch != ends.into:
        raise ToolFailed(f"{ends.into!r} is in the middle of a {holder.operation}", reason="branch_in_use")
    open_repository(holder.path).fast_forward(after)


def _describe(branch: str, subjects: list[str]) -> str:
    if len(subjects) == 1:
        return subjects[0] + "\n"
    return f"Squash {branch}\n\n" + "".join(f"* {subject}\n" for subject in subjects)
