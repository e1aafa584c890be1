"""What a person asks of workspaces beyond the tools: undo, and in time everything that keeps them in order.

Like `inventory.py`, each under the lock and the recovery that it needs.
"""

import time
from collections.abc import Callable, Sequence

from exeora_ws.cancellation import Cancellation
from exeora_ws.workspaces import restore, trash
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.place import Project


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
