"""What a person asks of workspaces beyond the tools: undo, and in time everything that keeps them in order.

Like `inventory.py`, each under the lock and the recovery that it needs.
"""

import time
from collections.abc import Callable, Sequence

from exeora_ws.cancellation import Cancellation
from exeora_ws.workspaces import locking, rename, restore, trash
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.place import Place, Project


class Upkeep:
    """Keeping the workspaces of one user in order.

    Args:
        inventory: the workspaces.
        trash_bytes: gives how much the trash may hold, as set now.
    """

    def __init__(self, inventory: Inventory, trash_bytes: Callable[[], int]) -> None:
        self._inventory = inventory
        self._registry = inventory.registry
        self._trash_bytes = trash_bytes

    def list_removed(self, project: Project) -> Sequence[trash.Removed]:
        """What was removed from a project and can still come back, latest first."""
        return [r for r in trash.list_removed(self._registry, project.id) if r.restorable]

    def restore(
        self, project: Project, selector: str | None, *, detach: bool, cancellation: Cancellation
    ) -> restore.Restoration:
        """Bring a removed workspace back; see `restore.restore_workspace`."""
        with self._inventory.working_on(project, cancellation):
            return restore.restore_workspace(self._registry, project, selector, detach=detach)

    def sweep_trash(self, *, everything: bool = False) -> int:
        """Delete for good what is too old or too much, or everything; gives how many workspaces that were."""
        most = -1 if everything else self._trash_bytes()
        return trash.sweep(self._registry, self._inventory.lock_of, now=time.time(), most_bytes=most)

    def lock(self, place: Place, reason: str, *, cancellation: Cancellation) -> None:
        """Lock a workspace; see `locking.lock_workspace`."""
        with self._inventory.working_on(place.project, cancellation):
            locking.lock_workspace(place, reason)

    def unlock(self, place: Place, *, cancellation: Cancellation) -> str | None:
        """Unlock a workspace; see `locking.unlock_workspace`."""
        with self._inventory.working_on(place.project, cancellation):
            return locking.unlock_workspace(place)

    def rename(
        self,
        place: Place,
        branch: str,
        *,
        slug: str | None = None,
        keep_branch: bool = False,
        keep_folder: bool = False,
        cancellation: Cancellation,
    ) -> rename.Renaming:
        """Rename a workspace; see `rename.rename_workspace`."""
        names = rename.NewNames(branch, slug, keep_branch, keep_folder)
        with self._inventory.working_on(place.project, cancellation):
            current = self._inventory.require_place(place.project, place.workspace.id)
            return rename.rename_workspace(self._registry, self._inventory.managed_root(), current, names)
