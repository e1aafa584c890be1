"""What a person asks of workspaces beyond the tools: undo, and in time everything that keeps them in order.

Like `inventory.py`, each under the lock and the recovery that it needs.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.files.ripgrep import find_ripgrep
from exeora_ws.git.command import taken_back_by
from exeora_ws.git.gitfiles import list_branches
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Difference
from exeora_ws.limits import PRUNE_AGE_SECONDS
from exeora_ws.workspaces import connect, locking, moving, overview, rename, restore, trash, variants
from exeora_ws.workspaces.create import Creation, Wanted, create_workspace
from exeora_ws.workspaces.doctor import Finding, Problem, examine_project, settle
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.machine import examine_machine
from exeora_ws.workspaces.merge import Merging, load_difference, merge_workspace
from exeora_ws.workspaces.place import Place, Project
from exeora_ws.workspaces.prune import Verdict, Wish, judge_all
from exeora_ws.workspaces.registry import Base, Unfinished
from exeora_ws.workspaces.remove import Removal
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
        count_processes: counts the live processes of each workspace.
    """

    def __init__(
        self, inventory: Inventory, trash_bytes: Callable[[], int], count_processes: overview.CountProcesses
    ) -> None:
        self._count_processes = count_processes
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

    def list_with_trash(self) -> list[Project]:
        """List the projects of which something is in the trash."""
        having = {r.workspace.project_id for r in trash.list_removed(self._registry, None)}
        return [p for p in self._registry.list_projects() if p.id in having]

    def empty_trash(self, project: Project | None) -> tuple[int, int]:
        """Delete everything that was removed from a project for good, or from projects that are no more.

        Returns:
            How many workspaces went, and how many stay: files resist, or somebody is at work on the repository.
        """
        having = {r.workspace.project_id for r in trash.list_removed(self._registry, None)}
        orphaned = having - {p.id for p in self._registry.list_projects()}
        meant = orphaned if project is None else {project.id}
        done = [trash.empty(self._registry, self._inventory.lock_of, each) for each in meant]
        return sum(went for went, _ in done), sum(stayed for _, stayed in done)

    def sweep_trash(self) -> int:
        """Delete for good what is too old or too much; gives how many workspaces that were."""
        return trash.sweep(self._registry, self._inventory.lock_of, now=time.time(), most_bytes=self._trash_bytes())

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
        self,
        source: Place,
        what: str | None,
        *,
        base: str | None = None,
        detach: bool = False,
        reuse: bool = False,
        name: str | None = None,
        slug: str | None = None,
        remote: str | None = None,
        fetch: bool = False,
        dry_run: bool = False,
        with_changes: bool = False,
        cancellation: Cancellation,
    ) -> Made:
        """Create a workspace in one of the further ways; see `variants.settle` and `create.create_workspace`.

        With changes, the source's uncommitted changes move along (`moving.py`); they start from its HEAD then.

        Raises:
            ToolFailed: what both say, and `conflicted`, `dirty_submodules`, `operation_in_progress`,
                `nothing_to_move`, `nested_repository`, `changes_differ`.
        """
        asked = variants.Asked(what, base, detach, reuse, name, slug, remote, fetch, dry_run)
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
            move = moving.Move(source) if with_changes else None
            creation = self._create(source, wanted, move, cancellation)
            moved = move.finish(self._registry) if move is not None and creation.created else None
            behind = variants.count_behind(repository, creation.base)
        ready = Prepared("none") if asked.dry_run else self._inventory.prepare(source.project, creation, cancellation)
        return Made(creation, behind, moved, ready, asked.dry_run)

    def is_further(self, source: Place, what: str, *, reuse: bool) -> bool:
        """Whether `create` is needed for this and not the plain way: a request, or `REMOTE/…`."""
        if variants.parse_request(what) is not None:
            return True
        if reuse or "/" not in what or source.project.common_dir is None:
            return False
        remotes = open_repository(source.project.common_dir).list_remotes()
        return any(what.startswith(name + "/") for name, _ in remotes)

    def list_branches(self, project: Project, *, remotes: bool) -> Sequence[str]:
        """List the branches of a project's repository, for completion; see `gitfiles.list_branches`.

        Where they are in no files, the local ones alone.
        """
        if project.common_dir is None:
            return ()
        found = list_branches(str(project.common_dir), remotes=remotes)
        return open_repository(project.common_dir).list_branches() if found is None else found

    def count_behind(self, source: Place, ref: str, commit: str) -> tuple[str, int] | None:
        """Say how far a base is behind its remote branch; see `variants.count_behind`."""
        if source.project.common_dir is None:
            return None
        return variants.count_behind(open_repository(source.project.common_dir), Base(ref, commit))

    def give_up(self, workspace_id: str) -> None:
        """Have what was left of a removed workspace deleted for good, now, in the background."""
        self._inventory.give_up(workspace_id)

    def _create(self, source: Place, wanted: Wanted, move: moving.Move | None, cancellation: Cancellation) -> Creation:
        root = self._inventory.managed_root()
        fill = None if move is None else move.bring
        return create_workspace(self._registry, root, source, wanted, cancellation, fill=fill)

    def look_at_all(self, project: Project) -> Iterator[overview.Overview]:
        """The state of every workspace, as the answers come; see `overview.look_at_all`."""
        return overview.look_at_all(self._registry, project, self._count_processes)

    def preview(self, place: Place, *, commits: int, cancellation: Cancellation) -> overview.Preview:
        """The state and the last commits of one workspace; see `overview.look_at_one`.

        Raises:
            Cancelled: taken back; no git of ours runs any more then.
        """
        with taken_back_by(cancellation):
            return overview.look_at_one(
                self._registry, place.project, place.workspace, self._count_processes, commits=commits
            )

    def prune(
        self,
        project: Project,
        *,
        merged: bool,
        missing: bool,
        least_age: float = PRUNE_AGE_SECONDS,
        dry_run: bool,
        keep_branches: bool,
        cancellation: Cancellation,
    ) -> Iterator[Verdict]:
        """Judge every workspace and, unless it is a dry run, remove those that are done with, as `remove` does.

        What was found merged is restorable like any removed workspace, its branch too.
        """
        wish = Wish(merged, missing, least_age)
        for verdict in judge_all(self._registry, project, wish, self._count_processes()):
            cancellation.raise_if_cancelled()
            if verdict.kept is not None or dry_run:
                yield verdict
                continue
            yield self._remove_pruned(Place(project, verdict.workspace), verdict, keep_branches, cancellation)

    def _remove_pruned(
        self, place: Place, verdict: Verdict, keep_branches: bool, cancellation: Cancellation
    ) -> Verdict:
        deletes = not keep_branches and verdict.evidence != "missing"
        try:
            removal = self._inventory.remove(
                place, force=False, delete_branch=deletes, merged_at=verdict.head, cancellation=cancellation
            )
        except ToolFailed as error:
            return replace(verdict, kept=error.reason or "failed", detail=error.message)
        return replace(verdict, branch=removal.branch)

    def adopt(self, project: Project, *, cancellation: Cancellation) -> connect.Adoption:
        """Connect every worktree that is not connected yet; see `connect.adopt_worktrees`."""
        with self._inventory.working_on(project, cancellation):
            return connect.adopt_worktrees(self._registry, project)

    def merge(
        self, place: Place, *, into: str | None, how: str, message: str | None, cancellation: Cancellation
    ) -> Merging:
        """Bring a workspace's branch into its base; see `merge.merge_workspace`."""
        self._inventory.require_available(place, files=True)
        with self._inventory.working_on(place.project, cancellation):
            return merge_workspace(self._registry, place, into, how, message)

    def remove_merged(self, place: Place, head: str, *, cancellation: Cancellation) -> Removal:
        """Remove a workspace whose branch was just merged at commit `head`, and the branch if it is still there."""
        return self._inventory.remove(place, force=False, delete_branch=True, merged_at=head, cancellation=cancellation)

    def load_difference(self, place: Place, against: str | None, *, stat: bool) -> tuple[str, Difference]:
        """Give what a workspace has that its base had not; see `merge.load_difference`."""
        self._inventory.require_available(place, files=True)
        return load_difference(self._registry, place, against, stat=stat)

    def examine_machine(self, *, fix: bool) -> Iterator[Finding]:
        """What is wrong with programs and folders that everything needs; see `machine.examine_machine`."""
        inventory = self._inventory
        problems = examine_machine(inventory.places, inventory.managed_root(), lambda: find_ripgrep(os.environ))
        for problem in problems:
            yield settle(problem, fix=fix)

    def examine(self, project: Project, *, fix: bool, cancellation: Cancellation) -> Iterator[Finding]:
        """What is wrong with a project and its workspaces; with `fix`, what can lose nothing is put right."""
        unfinished = [o for o in self._registry.list_unfinished() if o.project_id == project.id]
        if project.common_dir is None or not project.common_dir.is_dir():
            yield from self._examine(project, fix)
            return
        with self._inventory.working_on(project, cancellation):
            for operation in unfinished:
                yield self._describe_unfinished(project, operation)
            yield from self._examine(project, fix)

    def _describe_unfinished(self, project: Project, operation: Unfinished) -> Finding:
        if self._registry.is_unfinished(operation.id):
            said = f"a {operation.kind} was cut short, and a lock of Git's or a full disk keeps it from being completed"
            hint = "see that no git is at work and delete its .lock file, or make room; any command then completes it"
            return Finding(Problem("unfinished", project.slug, said, hint), "found")
        said = f"a {operation.kind} was cut short; it has been completed or taken back"
        return Finding(Problem("unfinished", project.slug, said, "nothing"), "fixed")

    def _examine(self, project: Project, fix: bool) -> Iterator[Finding]:
        for problem in examine_project(self._registry, self._inventory.managed_root(), project):
            yield settle(problem, fix=fix)
