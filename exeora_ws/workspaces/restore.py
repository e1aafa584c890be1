"""Undo a removal: files, index, HEAD, branch, slug and id come back from the trash, all of it or nothing.

A restoration that is cut short is taken back: everything is in the trash again and can be restored as before.
"""

import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from exeora_ws.errors import ToolFailed
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Repository
from exeora_ws.names import ProjectId
from exeora_ws.workspaces import resolve, trash
from exeora_ws.workspaces.place import Project, Workspace
from exeora_ws.workspaces.registry import (
    Registry,
    Unfinished,
    decode_facts,
    encode_facts,
    end_operation,
    insert_workspace,
    record_state,
)
from exeora_ws.workspaces.trash import RemovalFacts, Removed
from exeora_ws.workspaces.undoing import all_or_nothing

_DETACH = "pass --detach to come back at its commit, on no branch"


@dataclass(frozen=True, slots=True)
class Restoration:
    """What came back. `branch_made` says that the branch was gone and is there again at `commit`."""

    workspace: Workspace
    branch_made: bool
    commit: str | None


class RestorationFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What undoing a restoration needs to know. `inode` tells the folder that was moved from another one."""

    removal: RemovalFacts
    make_branch: bool
    detach: bool
    inode: int


def restore_workspace(registry: Registry, project: Project, selector: str | None, *, detach: bool) -> Restoration:
    """Bring a removed workspace back. The caller holds the repository's lock and has recovered.

    Args:
        registry: the registry.
        project: whose workspace it was.
        selector: its slug (the latest removal counts) or id; None for what was removed last.
        detach: put HEAD at its commit instead of on its branch, which has moved or is in use.

    Raises:
        ToolFailed: `not_removed`, `trash_swept`, `slug_taken`, `path_taken`, `commit_missing`, `branch_moved`,
            `branch_checked_out`, `branch_conflict`. Nothing was changed then.
    """
    removed = find_removed(registry, project, selector)
    repository = open_repository(resolve.require_repository_dir(project))
    _refuse_taken(registry, project, removed)
    if detach and removed.facts.head is None:
        raise ToolFailed("it had no commit yet, so there is none to come back at", reason="commit_missing")
    make_branch = not detach and _settle_branch(repository, removed.facts)
    return _carry_out(registry, repository, removed, make_branch=make_branch, detach=detach)


def find_removed(registry: Registry, project: Project, selector: str | None) -> Removed:
    """Find a removed workspace that can still come back.

    Raises:
        ToolFailed: `not_removed`, `trash_swept`.
    """
    candidates = [
        r for r in trash.list_removed(registry, project.id) if selector in (None, r.workspace.slug, r.workspace.id)
    ]
    found = next((r for r in candidates if r.restorable), None)
    if found is not None:
        return found
    if candidates:
        raise ToolFailed(
            f"what was left of workspace {candidates[0].workspace.slug!r} is or will be deleted from the trash",
            reason="trash_swept",
            hint="its branch may still be there: exeora create BRANCH --reuse",
        )
    what = f"no workspace {selector[:100]!r} was removed" if selector is not None else "no workspace was removed"
    raise ToolFailed(
        f"{what} in the last days", reason="not_removed", hint="exeora restore --list names those there are"
    )


def _refuse_taken(registry: Registry, project: Project, removed: Removed) -> None:
    slug = removed.workspace.slug
    for workspace in registry.list_workspaces(project.id):
        if workspace.slug == slug or workspace.worktree == removed.workspace.worktree:
            raise ToolFailed(
                f"there is a workspace {workspace.slug!r} by now",
                reason="slug_taken" if workspace.slug == slug else "path_taken",
                hint=f"exeora rename {workspace.slug} to something else first",
                data={"workspace": workspace.slug},
            )
    path = removed.workspace.worktree
    if os.path.lexists(path) and (path.is_symlink() or not path.is_dir() or any(os.scandir(path))):
        raise ToolFailed(
            f"something stands where workspace {slug!r} was", reason="path_taken", hint="move it away first"
        )


def _settle_branch(repository: Repository, facts: RemovalFacts) -> bool:
    """Whether the branch has to be made again; refuses one that is not what it was."""
    if facts.branch is None:
        return False
    present = repository.find_branch(facts.branch)
    holder = next((w for w in repository.list_worktrees() if facts.branch in w.holds), None)
    if holder is not None:
        where = "main" if holder.main else f"worktree {holder.path.name!r}"
        raise ToolFailed(
            f"branch {facts.branch!r} is in use by {where} now",
            reason="branch_checked_out",
            hint=_DETACH,
        )
    if present is None:
        if facts.head is None:
            return False  # a branch without a commit yet is no reference
        if repository.find_commit(facts.head) is None:
            raise ToolFailed(f"the commit of branch {facts.branch!r} is gone", reason="commit_missing")
        return True
    if present != facts.head:
        raise ToolFailed(
            f"branch {facts.branch!r} has moved since, so files and index no longer belong to it",
            reason="branch_moved",
            hint=_DETACH if facts.head is not None else f"git branch -m {facts.branch} OTHER, for it had no commit yet",
            data={"commit": facts.head, "present": present},
        )
    return False


def _carry_out(
    registry: Registry, repository: Repository, removed: Removed, *, make_branch: bool, detach: bool
) -> Restoration:
    facts = removed.facts
    operation = _write_down(registry, repository, removed, make_branch=make_branch, detach=detach)
    workspace = replace(removed.workspace, branch=None) if detach else removed.workspace
    with all_or_nothing(registry, operation, lambda: undo_restoration(registry, repository, operation)):
        if make_branch and facts.branch is not None and facts.head is not None:
            repository.create_branch(facts.branch, facts.head)
            repository.write_branch_settings(facts.branch, facts.branch_settings)
        if detach and facts.head is not None:
            (facts.admin / "HEAD").write_text(facts.head + "\n")
        _move(facts.tree, workspace.worktree)
        repository.revive_admin(facts.admin, workspace.worktree, unborn=facts.head is None)
        with registry.change() as connection:
            insert_workspace(connection, workspace, facts.base, "restored")
            trash.expire_removal(connection, workspace.id)
            end_operation(connection, operation.id)
    trash.delete_for_good(registry, removed)
    return Restoration(workspace, make_branch, facts.head)


def _write_down(
    registry: Registry, repository: Repository, removed: Removed, *, make_branch: bool, detach: bool
) -> Unfinished:
    inode = os.stat(removed.facts.tree).st_ino
    facts = RestorationFacts(removal=removed.facts, make_branch=make_branch, detach=detach, inode=inode)
    operation = Unfinished(
        secrets.token_hex(8), "restore", removed.workspace.project_id, repository.common_dir, encode_facts(facts)
    )
    registry.begin(operation)
    return operation


def _move(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(source, target)
    except OSError as error:
        raise ToolFailed(f"the folder cannot be moved back: {error.strerror}", reason="path_taken") from error


def undo_restoration(registry: Registry, repository: Repository, operation: Unfinished) -> None:
    """Put everything back into the trash. Safe to repeat; touches nothing but what the restoration moved or made."""
    facts: RestorationFacts = decode_facts(operation.facts, RestorationFacts)
    removal = facts.removal
    path = Path(removal.worktree)
    if not removal.tree.exists() and path.is_dir() and os.stat(path).st_ino == facts.inode:
        os.rename(path, removal.tree)
    for worktree in repository.list_worktrees():
        if worktree.path == path and not worktree.main and not os.path.lexists(path):
            repository.unlock_worktree(worktree)
            repository.remove_admin(worktree)
    repository.discard_remains(path.name)
    if facts.detach and removal.branch is not None and removal.admin.is_dir():
        (removal.admin / "HEAD").write_text(f"ref: refs/heads/{removal.branch}\n", "utf-8", "surrogateescape")
    if facts.make_branch and removal.branch is not None and removal.head is not None:
        repository.delete_branch(removal.branch, removal.head, force=True)
    with registry.change() as connection:
        end_operation(connection, operation.id)
        record_state(connection, removal.describe(ProjectId(operation.project_id)), "restore_undone")
