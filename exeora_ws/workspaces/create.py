"""Create a workspace: all of it, or nothing.

Under the repository's lock: settle what is to be made (`_settle` touches nothing), write it down as an operation, let
Git make the worktree, register it and strike the operation off in one transaction. Whatever goes wrong in between,
here or by a kill, `undo_creation` takes back from the operation's facts.
"""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.git import links
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Addition, Repository
from exeora_ws.names import Slug, WorkspaceId, derive_distinct_slug, derive_slug, new_workspace_id, parse_slug
from exeora_ws.workspaces import folders, resolve
from exeora_ws.workspaces.place import Place, Project, Workspace
from exeora_ws.workspaces.registry import (
    Base,
    Registry,
    Unfinished,
    begin_operation,
    decode_facts,
    encode_facts,
    end_operation,
    insert_workspace,
    record_state,
    require_registered,
)
from exeora_ws.workspaces.undoing import all_or_nothing

Fill = Callable[[Workspace], Unfinished | None]
"""Does more to a new worktree before it is registered; what it raises takes everything back.

What it gives is still to be done then: it is written down in the transaction that registers the workspace.
"""

MOVING = "refs/exeora/moving/"
"""Below it stand, by the new workspace's id, the changes that move along (`moving.py`)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller asks for (the tool's arguments, and what `variants.py` makes of more)."""

    branch: str | None
    """None for a workspace on no branch; it needs a slug or a name then, and a start."""
    base: str | None
    reuse: bool
    name: str | None
    slug: str | None
    start: Base | None = None
    """Where it starts, when that was settled already; else `base` is looked up."""
    upstream: tuple[str, str] | None = None
    """Remote and branch that a new branch gets as upstream; none otherwise."""
    dry_run: bool = False
    """Settle and check everything, and do nothing."""


@dataclass(frozen=True, slots=True)
class Creation:
    """What came of it. `created` is False when the same call had succeeded before."""

    workspace: Workspace
    base: Base
    created: bool


class CreationFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What undoing a creation needs to know. `new_branch` is None when an existing branch is used."""

    workspace_id: str
    slug: str
    path: str
    kept_folder: bool
    commit: str
    new_branch: str | None


@dataclass(frozen=True, slots=True)
class _Settled:
    """A creation with every question answered."""

    workspace: Workspace
    base: Base
    new: bool
    target: folders.Target
    upstream: tuple[str, str] | None
    like: Path | None
    """The checkout whose files it probably shares most of."""


def create_workspace(
    registry: Registry,
    managed_root: Path,
    source: Place,
    wanted: Wanted,
    cancellation: Cancellation,
    *,
    fill: Fill | None = None,
) -> Creation:
    """Create and register a workspace. The caller holds the repository's lock and has recovered what was unfinished.

    Args:
        registry: where it is registered.
        managed_root: the folder above `<project-slug>/<workspace-slug>`.
        source: the checkout to start from.
        wanted: what is asked for.
        cancellation: taken back before Git starts, nothing happens; later, it is all undone.
        fill: what else belongs to it.

    Raises:
        InvalidArguments: `invalid_branch`, `invalid_slug`, `reserved_slug`, `slug_taken`, `conflicting_fields`.
        ToolFailed: `branch_exists`, `branch_not_found`, `branch_checked_out`, `branch_in_use`, `branch_conflict`,
            `unknown_ref`, `unborn_head`, `workspace_missing`, `target_not_empty`, `target_inside_checkout`,
            `missing_subdirectory`, and what Git itself refuses.
    """
    resolve.require_repository_dir(source.project)
    repository = open_repository(source.workspace.worktree)
    _check_arguments(repository, wanted)
    present = _find_present(registry, repository, source.project, wanted)
    if present is not None:
        return present
    settled = _settle(registry, repository, managed_root, source, wanted)
    cancellation.raise_if_cancelled()
    if wanted.dry_run:
        return Creation(settled.workspace, settled.base, created=False)
    return _carry_out(registry, repository, source, settled, cancellation, fill=fill)


def _check_arguments(repository: Repository, wanted: Wanted) -> None:
    if wanted.reuse and wanted.base is not None:
        raise InvalidArguments("from: cannot be used with reuseExistingBranch", reason="conflicting_fields")
    if wanted.branch is not None and not repository.is_branch_name(wanted.branch):
        raise InvalidArguments(f"branch: {wanted.branch!r} is not a valid branch name", reason="invalid_branch")
    if wanted.slug is not None:
        parse_slug(wanted.slug)


def _find_present(registry: Registry, repository: Repository, project: Project, wanted: Wanted) -> Creation | None:
    """Give the workspace that the same call made before: same branch, and no other slug asked for."""
    if wanted.branch is None:
        return None
    for workspace in _on_branch(registry, project, wanted.branch):
        if workspace.main or (wanted.slug is not None and wanted.slug != workspace.slug):
            continue
        fault = resolve.find_fault(project, workspace)
        if fault is not None:
            raise ToolFailed(
                f"workspace {workspace.slug!r} has branch {wanted.branch!r}, but it is unavailable ({fault})",
                reason="workspace_missing",
                hint=f"exeora doctor; or exeora remove {workspace.slug}, then create it again with reuseExistingBranch",
                data={"workspace": workspace.slug},
            )
        commit = repository.find_branch(wanted.branch) or ""
        base = registry.find_base(workspace.id) or Base(wanted.branch, commit)
        return Creation(workspace, base, created=False)
    return None


def _on_branch(registry: Registry, project: Project, branch: str) -> list[Workspace]:
    current = (resolve.refresh_branch(project, w) for w in registry.list_workspaces(project.id))
    return [w for w in current if w.branch == branch]


def _settle(registry: Registry, repository: Repository, managed_root: Path, source: Place, wanted: Wanted) -> _Settled:
    if wanted.branch is not None:
        _refuse_held_branch(registry, repository, source.project, wanted.branch)
    base, new = _settle_base(repository, source, wanted)
    slug = _settle_slug(registry, source.project, wanted)
    target = folders.settle_target(registry, managed_root, source.project, slug)
    workspace = Workspace(
        id=new_workspace_id(),
        project_id=source.project.id,
        slug=slug,
        name=wanted.name or wanted.branch or slug,
        branch=wanted.branch,
        worktree=target.path,
        path=target.path / source.project.subdirectory,
        managed=True,
    )
    like = _choose_like(repository, _checkout_of(source), base)
    return _Settled(workspace, base, new, target, wanted.upstream, like)


def _choose_like(repository: Repository, source: Path | None, base: Base) -> Path | None:
    """Choose the source if it is at that commit, else where the base is checked out; the source is seldom far from it.

    None when there is neither.
    """
    if source is not None and repository.head().commit == base.commit:
        return source
    there = repository.find_holder(base.ref)
    at = there is not None and there.branch == base.ref and there.prunable is None
    return there.path if there is not None and at else source


def _checkout_of(source: Place) -> Path | None:
    return None if source.project.bare and source.workspace.main else source.workspace.worktree


def _refuse_held_branch(registry: Registry, repository: Repository, project: Project, branch: str) -> None:
    worktree = repository.find_holder(branch)
    if worktree is None:
        return
    holder = folders.name_worktree(registry, project, worktree)
    if worktree.branch == branch:
        raise ToolFailed(
            f"branch {branch!r} is checked out in {holder.text}",
            reason="branch_checked_out",
            hint=holder.hint,
            data=holder.data,
        )
    raise ToolFailed(
        f"branch {branch!r} is in the middle of a {worktree.operation} in {holder.text}",
        reason="branch_in_use",
        hint=f"finish or abort the {worktree.operation} there",
        data=holder.data,
    )


def _settle_base(repository: Repository, source: Place, wanted: Wanted) -> tuple[Base, bool]:
    if wanted.branch is None:
        return wanted.start or _settle_start(repository, source, wanted.base), False
    present = repository.find_branch(wanted.branch)
    if wanted.reuse:
        if present is None:
            raise ToolFailed(
                f"there is no local branch {wanted.branch!r}",
                reason="branch_not_found",
                hint="leave reuseExistingBranch out to make it",
            )
        return Base(wanted.branch, present), False
    if present is not None:
        raise ToolFailed(
            f"branch {wanted.branch!r} exists already",
            reason="branch_exists",
            hint="pass reuseExistingBranch to use it",
        )
    _refuse_conflicting_branch(repository, wanted.branch)
    return wanted.start or _settle_start(repository, source, wanted.base), True


def _refuse_conflicting_branch(repository: Repository, branch: str) -> None:
    for other in repository.list_branches():
        if other.startswith(branch + "/") or branch.startswith(other + "/"):
            raise ToolFailed(
                f"branch {branch!r} cannot stand beside branch {other!r}: one would be a folder of the other",
                reason="branch_conflict",
                hint="choose another name",
            )


def _settle_start(repository: Repository, source: Place, base: str | None) -> Base:
    if base is not None:
        commit = repository.find_commit(base)
        if commit is None:
            raise ToolFailed(
                f"from: {base!r} names no commit here", reason="unknown_ref", hint="git fetch, or check the spelling"
            )
        return Base(base, commit)
    head = repository.head()
    if head.commit is None:
        raise ToolFailed(
            f"{source.workspace.slug!r} has no commit yet, so there is nothing to start from",
            reason="unborn_head",
            hint="commit something first, or name a commit with from",
        )
    return Base(head.branch or "HEAD", head.commit)


def _settle_slug(registry: Registry, project: Project, wanted: Wanted) -> Slug:
    if wanted.slug is not None:
        slug = parse_slug(wanted.slug)
        if registry.has_slug(project.id, slug):
            raise InvalidArguments(f"slug: {slug!r} is taken by another workspace", reason="slug_taken")
        return slug
    source = wanted.branch or wanted.name or ""
    slug = derive_slug(source)
    if registry.has_slug(project.id, slug):
        slug = derive_distinct_slug(source)
    if registry.has_slug(project.id, slug):
        raise InvalidArguments(f"slug: {slug!r} is taken: pass another one", reason="slug_taken")
    return slug


def _carry_out(
    registry: Registry,
    repository: Repository,
    source: Place,
    settled: _Settled,
    cancellation: Cancellation,
    *,
    fill: Fill | None,
) -> Creation:
    operation = _write_down(registry, source.project, settled)
    with all_or_nothing(registry, operation, lambda: undo_creation(registry, repository, operation)):
        folders.make_parents(settled.target)
        repository.add_worktree(_addition(source, settled))
        _require_subdirectory(source.project, settled.workspace)
        if settled.new and settled.upstream is not None and settled.workspace.branch is not None:
            remote, theirs = settled.upstream
            settings = (("remote", remote), ("merge", "refs/heads/" + theirs))
            repository.write_branch_settings(settled.workspace.branch, settings)
        next_step = fill(settled.workspace) if fill is not None else None
        cancellation.raise_if_cancelled()
        with registry.change() as connection:
            require_registered(connection, source.project)
            insert_workspace(connection, settled.workspace, settled.base, "created")
            end_operation(connection, operation.id)
            if next_step is not None:
                begin_operation(connection, next_step)
    return Creation(settled.workspace, settled.base, created=True)


def _addition(source: Place, settled: _Settled) -> Addition:
    branch = settled.workspace.branch
    return Addition(
        path=settled.target.path,
        commit=settled.base.commit,
        new_branch=branch if settled.new else None,
        branch=None if settled.new else branch,
        source=_checkout_of(source),
        like=settled.like,
    )


def _write_down(registry: Registry, project: Project, settled: _Settled) -> Unfinished:
    facts = CreationFacts(
        workspace_id=settled.workspace.id,
        slug=settled.workspace.slug,
        path=str(settled.target.path),
        kept_folder=settled.target.present,
        commit=settled.base.commit,
        new_branch=settled.workspace.branch if settled.new else None,
    )
    operation = Unfinished(
        id=secrets.token_hex(8),
        kind="create",
        project_id=project.id,
        common_dir=resolve.require_repository_dir(project),
        facts=encode_facts(facts),
    )
    registry.begin(operation)
    return operation


def _require_subdirectory(project: Project, workspace: Workspace) -> None:
    if not workspace.path.is_dir():
        raise ToolFailed(
            f"the commit has no folder {str(project.subdirectory)!r}, which is the project's root",
            reason="missing_subdirectory",
            hint="name a commit that has it with from",
        )


def undo_creation(registry: Registry, repository: Repository, operation: Unfinished) -> None:
    """Take a creation back: folder, admin entry, new branch, operation. Safe to repeat.

    It touches nothing that is not its own: the folder goes only if it is the worktree that this creation made
    (its links say so) or is empty.
    """
    facts: CreationFacts = decode_facts(operation.facts, CreationFacts)
    path = Path(facts.path)
    if path.is_dir() and (not any(os.scandir(path)) or links.leads_to(facts.path, str(operation.common_dir))):
        folders.delete_tree(path, keep_top=facts.kept_folder)
    for worktree in repository.list_worktrees():
        if worktree.path == path and not worktree.main:
            repository.unlock_worktree(worktree)
            repository.remove_admin(worktree)
    repository.discard_remains(path.name)
    if facts.new_branch is not None:
        repository.delete_branch(facts.new_branch, facts.commit, force=True)
    for ref in (MOVING + facts.workspace_id, f"{MOVING}{facts.workspace_id}-check"):
        repository.drop_ref(ref)
    with suppress(OSError):
        path.parent.rmdir()
    with registry.change() as connection:
        end_operation(connection, operation.id)
        record_state(connection, _named(operation, facts), "rolled_back")


def _named(operation: Unfinished, facts: CreationFacts) -> Workspace:
    return Workspace(
        id=WorkspaceId(facts.workspace_id),
        project_id=operation.project_id,
        slug=Slug(facts.slug),
        name=facts.slug,
        branch=facts.new_branch,
        worktree=Path(facts.path),
        path=Path(facts.path),
        managed=True,
    )
