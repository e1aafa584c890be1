"""Lock a workspace against removal and pruning, as Git's own lock, so that git respects it too."""

from exeora_ws.errors import ToolFailed
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Repository, Worktree
from exeora_ws.workspaces import resolve
from exeora_ws.workspaces.place import Place


def lock_workspace(place: Place, reason: str) -> None:
    """Lock it. The caller holds the repository's lock.

    Raises:
        ToolFailed: `is_main`, `stale`, `locked` when it is locked already (the message quotes why).
    """
    repository, worktree = _find(place)
    repository.lock_worktree(worktree, reason)


def unlock_workspace(place: Place) -> str | None:
    """Unlock it; gives the reason it was locked for (perhaps empty), None when it was not.

    Raises:
        ToolFailed: `is_main`, `stale`.
    """
    repository, worktree = _find(place)
    repository.unlock_worktree(worktree)
    return worktree.locked


def _find(place: Place) -> tuple[Repository, Worktree]:
    if place.workspace.main:
        raise ToolFailed("main is never removed and needs no lock", reason="is_main")
    repository = open_repository(resolve.require_repository_dir(place.project))
    for worktree in repository.list_worktrees():
        if worktree.path == place.workspace.worktree and not worktree.main:
            return repository, worktree
    raise ToolFailed("Git has no record of this workspace any more", reason="stale", hint="exeora doctor")
