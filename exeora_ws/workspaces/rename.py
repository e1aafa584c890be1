"""Rename a workspace: branch, slug and folder together, all of it or nothing. Its id, and what was changed, stay.

A renaming that is cut short is taken back.
"""

import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.git.admin import has_submodules
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Repository, Worktree
from exeora_ws.git.refnames import find_conflict
from exeora_ws.names import ProjectId, Slug, derive_distinct_slug, derive_slug, parse_slug
from exeora_ws.workspaces import folders, resolve
from exeora_ws.workspaces.place import Place, Project, Workspace
from exeora_ws.workspaces.registry import (
    Registry,
    Unfinished,
    decode_facts,
    encode_facts,
    end_operation,
    update_workspace,
)
from exeora_ws.workspaces.undoing import all_or_nothing


@dataclass(frozen=True, slots=True)
class NewNames:
    """What it shall be called.

    `branch` names the branch; slug and folder follow from it unless they are given or kept.
    """

    branch: str
    slug: str | None = None
    keep_branch: bool = False
    """Only slug, name and folder change: `branch` is then just what they are derived from."""
    keep_folder: bool = False


@dataclass(frozen=True, slots=True)
class Renaming:
    """A workspace before and after."""

    before: Workspace
    after: Workspace


class RenamingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What undoing a renaming needs to know. `inode` tells the folder that was moved from another one."""

    old_branch: str | None
    new_branch: str | None
    old_folder: str
    new_folder: str
    admin: str
    inode: int


def rename_workspace(registry: Registry, managed_root: Path, place: Place, names: NewNames) -> Renaming:
    """Rename a workspace. The caller holds the repository's lock and has recovered.

    The folder of a managed workspace moves; one that was attached stays where its owner put it.

    Raises:
        InvalidArguments: `invalid_branch`, `invalid_slug`, `reserved_slug`, `slug_taken`.
        ToolFailed: `is_main`, `detached_head`, `locked`, `branch_exists`, `branch_conflict`, `branch_in_use`,
            `operation_in_progress`, `has_submodules`, `nested_workspace`, `connected_elsewhere`, `target_not_empty`,
            `foreign_folder`. Nothing was changed then.
    """
    before = resolve.refresh_branch(place.project, place.workspace)
    repository, worktree = _require_movable(place.project, before)
    branch = _settle_branch(repository, before, names)
    slug = _settle_slug(registry, before, names)
    folder = before.worktree
    if before.managed and not names.keep_folder and slug != before.slug:
        folders.refuse_nested(registry, repository.list_worktrees(), before)
        folder = _settle_folder(registry, managed_root, place.project, slug)
        if has_submodules(repository.common_dir, worktree):
            raise ToolFailed(
                "its submodules are initialised, so its folder cannot move",
                reason="has_submodules",
                hint="pass --keep-folder",
            )
    name = names.branch if before.name in (before.branch, before.slug) else before.name
    path = folder / place.project.subdirectory
    after = replace(before, branch=branch, slug=slug, name=name, worktree=folder, path=path)
    _carry_out(registry, repository, worktree, Renaming(before, after))
    return Renaming(before, after)


def _require_movable(project: Project, workspace: Workspace) -> tuple[Repository, Worktree]:
    if workspace.main:
        raise ToolFailed("main is the project itself and keeps its name", reason="is_main")
    repository = open_repository(resolve.require_repository_dir(project))
    worktree = next((w for w in repository.list_worktrees() if w.path == workspace.worktree and not w.main), None)
    if worktree is None or resolve.find_fault(project, workspace) is not None:
        raise ToolFailed(
            "the registered folder no longer holds this workspace", reason="foreign_folder", hint="exeora doctor"
        )
    if worktree.locked is not None:
        raise ToolFailed(
            f"the workspace is locked{': ' + worktree.locked if worktree.locked else ''}",
            reason="locked",
            hint=f"exeora unlock {workspace.slug}",
        )
    if worktree.operation is not None:
        raise ToolFailed(
            f"the workspace is in the middle of a {worktree.operation}",
            reason="operation_in_progress",
            hint="finish or abort it first",
        )
    return repository, worktree


def _settle_branch(repository: Repository, before: Workspace, names: NewNames) -> str | None:
    if names.keep_branch or names.branch == before.branch:
        return before.branch
    if not repository.is_branch_name(names.branch):
        raise InvalidArguments(f"branch: {names.branch!r} is not a valid branch name", reason="invalid_branch")
    if before.branch is None:
        raise ToolFailed(
            "the workspace is on no branch", reason="detached_head", hint="pass --keep-branch to change its slug alone"
        )
    if repository.find_branch(names.branch) is not None:
        raise ToolFailed(f"branch {names.branch!r} exists already", reason="branch_exists", hint="choose another name")
    other = find_conflict(names.branch, [b for b in repository.list_branches() if b != before.branch])
    if other is not None:
        raise ToolFailed(
            f"branch {names.branch!r} cannot stand beside branch {other!r}: one would be a folder of the other",
            reason="branch_conflict",
            hint="choose another name",
        )
    return names.branch


def _settle_slug(registry: Registry, before: Workspace, names: NewNames) -> Slug:
    taken = {w.slug for w in registry.list_workspaces(before.project_id) if w.id != before.id}
    slug = parse_slug(names.slug) if names.slug is not None else derive_slug(names.branch)
    if slug in taken and names.slug is None:
        slug = derive_distinct_slug(names.branch)
    if slug in taken:
        raise InvalidArguments(f"slug: {slug!r} is taken by another workspace", reason="slug_taken")
    return slug


def _settle_folder(registry: Registry, managed_root: Path, project: Project, slug: Slug) -> Path:
    target = folders.settle_target(registry, managed_root, project, slug)
    folders.make_parents(target)
    return target.path


def _carry_out(registry: Registry, repository: Repository, worktree: Worktree, renaming: Renaming) -> None:
    before, after = renaming.before, renaming.after
    operation = _write_down(registry, repository, worktree, renaming)
    with all_or_nothing(registry, operation, lambda: undo_renaming(registry, repository, operation)):
        if before.branch is not None and after.branch is not None and after.branch != before.branch:
            repository.rename_branch(before.branch, after.branch)
        if after.worktree != before.worktree:
            _move(before.worktree, after.worktree)
            repository.follow_move(worktree, after.worktree)
        with registry.change() as connection:
            update_workspace(connection, after, "renamed", f"was {before.slug}")
            connection.execute(
                "UPDATE workspaces SET base_ref = ? WHERE project_id = ? AND base_ref = ?",
                (after.branch, after.project_id, before.branch),
            )
            end_operation(connection, operation.id)


def _write_down(registry: Registry, repository: Repository, worktree: Worktree, renaming: Renaming) -> Unfinished:
    before, after = renaming.before, renaming.after
    facts = RenamingFacts(
        old_branch=before.branch,
        new_branch=after.branch,
        old_folder=str(before.worktree),
        new_folder=str(after.worktree),
        admin=worktree.admin or "",
        inode=os.stat(before.worktree).st_ino,
    )
    project_id = ProjectId(before.project_id)
    operation = Unfinished(secrets.token_hex(8), "rename", project_id, repository.common_dir, encode_facts(facts))
    registry.begin(operation)
    return operation


def _move(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        raise ToolFailed(f"the folder cannot be moved: {error.strerror}", reason="move_failed") from error


def undo_renaming(registry: Registry, repository: Repository, operation: Unfinished) -> None:
    """Take a renaming back. Safe to repeat; touches nothing but what the renaming moved."""
    facts: RenamingFacts = decode_facts(operation.facts, RenamingFacts)
    old, new = Path(facts.old_folder), Path(facts.new_folder)
    if new != old:
        if new.is_dir() and os.stat(new).st_ino == facts.inode and not (old.exists() and any(os.scandir(old))):
            os.rename(new, old)
        worktree = _find_entry(repository, facts)
        if worktree is not None and old.is_dir():
            repository.follow_move(worktree, old)
    if facts.old_branch is not None and facts.new_branch is not None and facts.old_branch != facts.new_branch:
        _undo_branch(repository, facts, facts.old_branch, facts.new_branch)
    with registry.change() as connection:
        end_operation(connection, operation.id)


def _find_entry(repository: Repository, facts: RenamingFacts) -> Worktree | None:
    return next((w for w in repository.list_worktrees() if w.admin == facts.admin), None)


def _undo_branch(repository: Repository, facts: RenamingFacts, old: str, new: str) -> None:
    if repository.find_branch(old) is None and repository.find_branch(new) is not None:
        repository.rename_branch(new, old)
    worktree = _find_entry(repository, facts)
    if worktree is not None and worktree.branch == new:
        repository.attach_head(worktree, old)
