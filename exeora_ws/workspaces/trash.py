"""The trash: what a removal leaves of a workspace, on record and on disk, until it is restored or swept.

Each removed workspace has a folder of its own with `tree/` (its files) and `admin/` (what Git kept about it), beside
what was removed, so that going there and back is a rename. A row that is being deleted is expired first, so that
nobody brings back half a tree.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from exeora_ws.errors import ExeoraError
from exeora_ws.git.opening import open_repository
from exeora_ws.git.populating import remove_tree
from exeora_ws.limits import TRASH_DAYS
from exeora_ws.locks import try_lock
from exeora_ws.names import ProjectId, Slug, WorkspaceId
from exeora_ws.workspaces import folders
from exeora_ws.workspaces.place import Workspace
from exeora_ws.workspaces.ports import release_ports
from exeora_ws.workspaces.registry import Base, Registry, decode_facts

_NAME_MOST = 40
_UNMEASURED_MOST = 5
_UNMEASURED_SECONDS = 3600
LockOf = Callable[[Path], Path]
"""Gives the lock file of a repository, by its shared Git folder."""


class RemovalFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What completing, undoing or reverting a removal needs to know."""

    workspace_id: str
    slug: str
    name: str
    branch: str | None
    worktree: str
    path: str
    managed: bool
    head: str | None
    delete_branch: bool
    trash: str
    gone: bool
    """The folder was missing before: there is nothing to bring back."""
    common_dir: str | None = None
    base_ref: str | None = None
    base_commit: str | None = None
    branch_settings: tuple[tuple[str, str], ...] = ()
    force_branch: bool = False
    """The branch is known to be merged in a way that `git branch -d` does not see."""
    now: bool = False
    """It shall not come back: its disk is freed at once."""

    @property
    def label(self) -> str:
        """What its objects are kept under in the repository."""
        return Path(self.trash).name.removeprefix(".")

    @property
    def tree(self) -> Path:
        """Its files, while it is in the trash."""
        return Path(self.trash) / "tree"

    @property
    def admin(self) -> Path:
        """What Git kept about it, while it is in the trash."""
        return Path(self.trash) / "admin"

    @property
    def base(self) -> Base | None:
        """What it was made from."""
        return Base(self.base_ref or "", self.base_commit) if self.base_commit is not None else None

    def describe(self, project_id: ProjectId) -> Workspace:
        """Give the workspace that was removed."""
        return Workspace(
            id=WorkspaceId(self.workspace_id),
            project_id=project_id,
            slug=Slug(self.slug),
            name=self.name,
            branch=self.branch,
            worktree=Path(self.worktree),
            path=Path(self.path),
            managed=self.managed,
        )


@dataclass(frozen=True, slots=True)
class Removed:
    """A removed workspace on record. Times are seconds since 1970."""

    workspace: Workspace
    facts: RemovalFacts
    removed_at: float
    until: float
    size: int | None
    """Bytes it takes on disk; None until the sweeper has looked."""

    @property
    def restorable(self) -> bool:
        """Whether it can still be brought back."""
        return self.until > time.time() and self.facts.tree.is_dir()


def make_path(managed_root: Path, workspace: Workspace) -> Path:
    """Give the folder for it: beside what is removed, on the same file system, so that no rename becomes a copy."""
    name = f"{workspace.id}-{int(time.time() * 1000)}"
    root = Path(os.path.realpath(managed_root))
    if workspace.worktree.is_relative_to(root):
        return root / folders.TRASH / name
    # Cut, so that a long name does not become one that no file system takes.
    return workspace.worktree.parent / f".{workspace.worktree.name[:_NAME_MOST]}.removed-{name}"


def list_removed(registry: Registry, project_id: ProjectId | None) -> list[Removed]:
    """List what was removed and not yet deleted for good, latest first; of one project, or of all."""
    with registry.database.read() as connection:
        rows = connection.execute("SELECT * FROM removals ORDER BY removed_at DESC").fetchall()
    return [_show(row) for row in rows if project_id in (None, row["project_id"])]


def _show(row: sqlite3.Row) -> Removed:
    facts: RemovalFacts = decode_facts(bytes(row["facts"]), RemovalFacts)
    project_id = ProjectId(row["project_id"])
    return Removed(facts.describe(project_id), facts, row["removed_at"], row["until"], row["bytes"])


def insert_removal(connection: sqlite3.Connection, facts: RemovalFacts, data: bytes, project_id: ProjectId) -> None:
    """Record a removal, in the transaction that takes the workspace off the registry."""
    now = time.time()
    until = now if facts.now else now + TRASH_DAYS * 86_400
    connection.execute(
        "INSERT OR REPLACE INTO removals VALUES (?, ?, ?, ?, ?, ?, NULL)",
        (facts.workspace_id, project_id, facts.slug, data, now, until),
    )


def expire_removal(connection: sqlite3.Connection, workspace_id: str) -> None:
    """Have the next sweep delete what is left of it."""
    connection.execute("UPDATE removals SET until = 0 WHERE workspace_id = ?", (workspace_id,))


def needs_sweep(registry: Registry, *, now: float) -> bool:
    """Whether starting a sweep is worth a process: something is expired, or much has not been measured for long."""
    removed = list_removed(registry, None)
    unmeasured = [r.removed_at for r in removed if r.size is None and r.until > now]
    stale = len(unmeasured) >= _UNMEASURED_MOST or any(at < now - _UNMEASURED_SECONDS for at in unmeasured)
    return stale or any(r.until <= now for r in removed)


def empty(registry: Registry, lock_of: LockOf, project_id: ProjectId) -> tuple[int, int]:
    """Delete everything that was removed from a project for good, as `sweep` does; gives how many went and stayed."""
    done = [_give_up(registry, lock_of, each, remove_tree) for each in list_removed(registry, project_id)]
    return done.count(True), done.count(False)


def sweep(
    registry: Registry, lock_of: LockOf, *, now: float, most_bytes: int, delete: Callable[[Path], None] = remove_tree
) -> int:
    """Delete what is expired, then the oldest while all together take more than `most_bytes`.

    Where somebody is at work on the repository its removals are left for the next time. Never waits. `delete` deletes a
    folder, as far as that can be done.

    Returns:
        How many workspaces were deleted for good.
    """
    _measure(registry)
    chosen = list(_choose(list_removed(registry, None), now, most_bytes))
    return sum(_give_up(registry, lock_of, removed, delete) for removed in chosen)


def _give_up(registry: Registry, lock_of: LockOf, removed: Removed, delete: Callable[[Path], None]) -> bool:
    return _expire(registry, lock_of, removed) and delete_for_good(registry, removed, delete)


def _measure(registry: Registry) -> None:
    for removed in list_removed(registry, None):
        if removed.size is None and removed.restorable:
            size = measure_tree(removed.facts.trash)
            with registry.database.write() as connection:
                connection.execute(
                    "UPDATE removals SET bytes = ? WHERE workspace_id = ? AND removed_at = ?",
                    (size, removed.workspace.id, removed.removed_at),
                )


def measure_tree(folder: str) -> int:
    """Count the bytes a folder takes on disk; what cannot be read counts as nothing."""
    total = 0
    for top, _, files in os.walk(folder):
        for name in files:
            try:
                state = os.lstat(os.path.join(top, name))
            except OSError:
                continue
            total += state.st_blocks * 512 // max(1, state.st_nlink)
    return total


def _choose(removed: list[Removed], now: float, most_bytes: int) -> Iterator[Removed]:
    """Choose what goes: the expired, and of the rest (latest first) what no longer fits."""
    kept = 0
    for each in removed:
        size = each.size or 0
        if each.until <= now or kept + size > most_bytes:
            yield each
        else:
            kept += size


def _expire(registry: Registry, lock_of: LockOf, removed: Removed) -> bool:
    common_dir = Path(removed.facts.common_dir or removed.facts.trash)
    with try_lock(lock_of(common_dir)) as had:
        busy = not had or any(o.common_dir == common_dir for o in registry.list_unfinished())
        if not busy:
            with registry.database.write() as connection:
                expire_removal(connection, removed.workspace.id)
    return not busy


def delete_for_good(registry: Registry, removed: Removed, delete: Callable[[Path], None] = remove_tree) -> bool:
    """Delete an expired removal: files, kept objects, row. False when some of its files resist; the row stays then."""
    folder = Path(removed.facts.trash)
    delete(folder)
    if os.path.lexists(folder):
        return False
    _release(removed.facts)
    with registry.database.write() as connection:
        connection.execute(
            "DELETE FROM removals WHERE workspace_id = ? AND removed_at = ?", (removed.workspace.id, removed.removed_at)
        )
        known = connection.execute("SELECT 1 FROM workspaces WHERE id = ?", (removed.workspace.id,)).fetchone()
        if known is None:
            release_ports(connection, removed.workspace.id)
    return True


def _release(facts: RemovalFacts) -> None:
    if facts.common_dir is None:
        return
    try:
        open_repository(Path(facts.common_dir)).release_objects(facts.label)
    except ExeoraError:
        # The repository is gone or cannot be opened: then there is nothing to let go of, or nobody who could.
        return
