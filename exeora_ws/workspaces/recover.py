"""What a killed process left half done: completed or taken back by the next command, under the repository's lock."""

import logging
from collections.abc import Callable
from pathlib import Path

from exeora_ws.errors import ExeoraError, ToolFailed
from exeora_ws.git.messages import translated_os_errors
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Repository
from exeora_ws.locks import try_lock
from exeora_ws.workspaces.create import undo_creation
from exeora_ws.workspaces.merge import complete_merge
from exeora_ws.workspaces.moving import complete_move
from exeora_ws.workspaces.registry import Registry, Unfinished, end_operation
from exeora_ws.workspaces.remove import settle_removal
from exeora_ws.workspaces.rename import undo_renaming
from exeora_ws.workspaces.rescue import rescue_work
from exeora_ws.workspaces.restore import undo_restoration
from exeora_ws.workspaces.trash import LockOf

_LOG = logging.getLogger("exeora")
_UNDO: dict[str, Callable[[Registry, Repository, Unfinished], None]] = {
    "create": undo_creation,
    "restore": undo_restoration,
    "rename": undo_renaming,
}


def recover_repository(registry: Registry, common_dir: Path) -> int:
    """Settle everything unfinished in one repository. The caller holds its lock, so nobody is at work on it.

    Returns:
        How many operations were settled.
    """
    mine = [o for o in registry.list_unfinished() if o.common_dir == common_dir]
    for operation in mine:
        with translated_os_errors(f"settling a {operation.kind} that was cut short"):
            _settle(registry, operation)
    return len(mine)


def recover_idle(registry: Registry, lock_of: LockOf) -> int:
    """Settle what is unfinished in every repository that nobody is at work on; never waits.

    Returns:
        How many operations were settled.
    """
    settled = 0
    for common_dir in {operation.common_dir for operation in registry.list_unfinished()}:
        with try_lock(lock_of(common_dir)) as had:
            if not had:
                continue
            try:
                settled += recover_repository(registry, common_dir)
            except ExeoraError as error:
                # Whoever works on that repository is told; all others have nothing to do with it.
                _LOG.warning("what is unfinished in a repository cannot be settled yet: %s", error)
    return settled


def _settle(registry: Registry, operation: Unfinished) -> None:
    try:
        repository = open_repository(operation.common_dir)
    except ToolFailed:
        if operation.common_dir.exists():
            raise
        # The repository itself is gone, and with it the admin entry and the branch.
        with registry.change() as connection:
            end_operation(connection, operation.id)
        return
    if operation.kind == "create" and rescue_work(registry, repository, operation):
        return
    project = registry.find_project(operation.project_id)
    if operation.kind in _UNDO:
        _UNDO[operation.kind](registry, repository, operation)
    elif operation.kind == "move":
        complete_move(registry, project, operation)
    elif operation.kind == "merge":
        complete_merge(registry, project, operation)
    else:
        settle_removal(registry, repository, project, operation)
