"""A creation that was cut short, and in whose folder somebody has worked since: that goes into the trash, whole.

Nobody was told of the workspace, but its folder and its branch are there until the next command takes them back.
"""

import logging
import secrets
from pathlib import Path

import msgspec

from exeora_ws.errors import ExeoraError
from exeora_ws.git import links
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Repository, Status, Worktree
from exeora_ws.names import Slug, WorkspaceId
from exeora_ws.workspaces import remove
from exeora_ws.workspaces.create import MOVING, CreationFacts
from exeora_ws.workspaces.place import Workspace
from exeora_ws.workspaces.registry import (
    Registry,
    Unfinished,
    begin_operation,
    decode_facts,
    encode_facts,
    end_operation,
)
from exeora_ws.workspaces.trash import RemovalFacts

_LOG = logging.getLogger("exeora")


def rescue_work(registry: Registry, repository: Repository, operation: Unfinished) -> bool:
    """Turn a creation into a removal where its folder holds what the creation did not put there.

    Returns:
        Whether it did. Then the creation is over, and `exeora restore` brings the workspace back.
    """
    facts: CreationFacts = decode_facts(operation.facts, CreationFacts)
    path = Path(facts.path)
    worktree = next((w for w in repository.list_worktrees() if w.path == path and not w.main), None)
    if worktree is None or links.find_link_fault(facts.path, str(repository.common_dir)) is not None:
        return False
    if not (repository.common_dir / "worktrees" / str(worktree.admin) / "index").is_file():
        return False  # Git had not finished it: nobody has worked there
    status = _load_status(path)
    if not _has_work(facts, worktree, status):
        return False
    _put_aside(registry, repository, operation, worktree, status)
    if facts.kept_folder:
        path.mkdir()
    _LOG.warning("a create was cut short, and what was written in its folder since is in the trash: exeora restore")
    return True


def _load_status(path: Path) -> Status | None:
    try:
        return open_repository(path).status(ignored=True)
    except ExeoraError:
        return None


def _has_work(facts: CreationFacts, worktree: Worktree, status: Status | None) -> bool:
    if status is None or worktree.head != facts.commit or status.ignored:
        return True
    if status.clean:
        return False
    ref = MOVING + facts.workspace_id
    checkout = open_repository(Path(facts.path))
    if checkout.find_commit(ref) is None:
        return True
    try:
        return not checkout.is_part_of(ref, f"{ref}-check")
    finally:
        checkout.drop_ref(f"{ref}-check")


def _put_aside(
    registry: Registry,
    repository: Repository,
    operation: Unfinished,
    worktree: Worktree,
    status: Status | None,
) -> None:
    facts: CreationFacts = decode_facts(operation.facts, CreationFacts)
    project = registry.find_project(operation.project_id)
    removal = _describe(registry, repository, operation, worktree)
    after = Unfinished(
        secrets.token_hex(8), "remove", operation.project_id, operation.common_dir, encode_facts(removal)
    )
    with registry.change() as connection:
        end_operation(connection, operation.id)
        begin_operation(connection, after)
    repository.unlock_worktree(worktree)
    remove.take_away(repository, removal, worktree, status)
    remove.settle_removal(registry, repository, project, after)
    repository.drop_ref(MOVING + facts.workspace_id)


def _describe(registry: Registry, repository: Repository, operation: Unfinished, worktree: Worktree) -> RemovalFacts:
    """Give the removal of what the creation would have made: its branch goes where nothing was committed to it."""
    facts: CreationFacts = decode_facts(operation.facts, CreationFacts)
    path, project = Path(facts.path), registry.find_project(operation.project_id)
    workspace = Workspace(
        id=WorkspaceId(facts.workspace_id),
        project_id=operation.project_id,
        slug=Slug(facts.slug),
        name=worktree.branch or facts.slug,
        branch=worktree.branch,
        worktree=path,
        path=path if project is None else path / project.subdirectory,
        managed=True,
    )
    removal = remove.describe_facts(registry, repository, path.parents[1], workspace, worktree, gone=False)
    fresh = worktree.branch is not None and (worktree.branch, worktree.head) == (facts.new_branch, facts.commit)
    return msgspec.structs.replace(removal, delete_branch=fresh, force_branch=fresh)
