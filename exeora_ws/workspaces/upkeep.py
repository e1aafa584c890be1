"""What a person asks of workspaces beyond the tools: undo, and in time everything that keeps them in order.

Like `inventory.py`, each under the lock and the recovery that it needs.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments
from exeora_ws.git.opening import open_repository
from exeora_ws.workspaces import connect, locking, moving, rename, restore, trash, variants
from exeora_ws.workspaces.create import Creation, Wanted, create_workspace
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.place import Place, Project
from exeora_ws.workspaces.setup import Prepared


@dataclass(frozen=True, slots=True)
class Made:
    """A creation, how far its base is behind its remote branch (`origin/main`, commits), and what was moved along."""

    creation: Creation
    behind: tuple[str, int] | None
    moved: moving.Moved | None
    prepared: Prepared
    dry_run: bool


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

    def create(
        self, source: Place, asked: variants.Asked, *, with_changes: bool = False, cancellation: Cancellation
    ) -> Made:
        """Create a workspace in one of the further ways; see `variants.settle` and `create.create_workspace`.

        With changes, the source's uncommitted changes move along (`moving.py`); they start from its HEAD then.

        Raises:
            ToolFailed: what both say, and `conflicted`, `dirty_submodules`, `operation_in_progress`,
                `nothing_to_move`, `nested_repository`, `changes_differ`.
        """
        if with_changes and (asked.base or asked.reuse or asked.detach or asked.dry_run):
            raise InvalidArguments(
                "with-changes: the new branch starts at the source's HEAD: no from, reuse, detach or dry-run",
                reason="conflicting_fields",
            )
        with self._inventory.working_on(source.project, cancellation):
            repository = open_repository(source.workspace.worktree)
            wanted = variants.settle(repository, asked)
            if with_changes and wanted.start is not None:
                raise InvalidArguments("with-changes: only for a new local branch", reason="conflicting_fields")
            move = moving.Move(source.workspace.worktree) if with_changes else None
            try:
                creation = self._create(source, wanted, move, cancellation)
                moved = move.finish() if move is not None and creation.created else None
            finally:
                if move is not None:
                    move.close()
            behind = variants.count_behind(repository, creation.base)
        ready = Prepared("none") if asked.dry_run else self._inventory.prepare(source.project, creation, cancellation)
        return Made(creation, behind, moved, ready, asked.dry_run)

    def _create(self, source: Place, wanted: Wanted, move: moving.Move | None, cancellation: Cancellation) -> Creation:
        root = self._inventory.managed_root()
        fill = None if move is None else lambda workspace: move.bring(workspace.worktree)
        return create_workspace(self._registry, root, source, wanted, cancellation, fill=fill)

    def adopt(self, project: Project, *, cancellation: Cancellation) -> connect.Adoption:
        """Connect every worktree that is not connected yet; see `connect.adopt_worktrees`."""
        with self._inventory.working_on(project, cancellation):
            return connect.adopt_worktrees(self._registry, project)
