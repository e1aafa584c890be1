"""The room's face: what tools and command line ask of workspaces, each under the lock and the recovery it needs."""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from exeora_ws.cancellation import Cancellation
from exeora_ws.late import Late
from exeora_ws.limits import REPOSITORY_LOCK_SECONDS
from exeora_ws.locks import hold_lock
from exeora_ws.settings import Places
from exeora_ws.storage import make_private_folder
from exeora_ws.workspaces import inventory_file, resolve
from exeora_ws.workspaces.place import Place, Project, Workspace
from exeora_ws.workspaces.registry import Registry

if TYPE_CHECKING:  # what does the work is imported by the method that has it done
    from exeora_ws.workspaces import connect, remove
    from exeora_ws.workspaces.create import Creation, Wanted
    from exeora_ws.workspaces.setup import Prepared, Setup


class Inventory:
    """Projects and workspaces of one user.

    Args:
        registry: what is on record.
        places: where locks are kept.
        managed_root: gives the folder that created workspaces live under, as set now.
        stop_processes: ends what runs in a workspace; names what was ended.
        free_disk: has the trash swept by somebody else; returns at once.
        setup: makes new workspaces ready.
    """

    def __init__(
        self,
        registry: Registry,
        places: Places,
        managed_root: Callable[[], Path],
        stop_processes: "remove.StopProcesses",
        *,
        free_disk: Callable[[], None],
        setup: "Late[Setup]",
    ) -> None:
        self.registry = registry
        self.managed_root = managed_root
        self.stop_processes = stop_processes
        self._late_setup = setup
        self.places = places
        self._free_disk = free_disk

    @property
    def setup(self) -> "Setup":
        """What makes workspaces ready."""
        return self._late_setup()

    def list_projects(self) -> list[Project]:
        """Every project, by slug."""
        return self.registry.list_projects()

    def require_project(self, selector: str) -> Project:
        """A project by slug or id. Raises `UnknownProject`."""
        return resolve.require_project(self.registry, selector)

    def register_project(self, folder: Path, *, exact: bool, slug: str | None = None) -> tuple[Project, bool]:
        """Register the project a folder stands for; see `projects.register_project`."""
        from exeora_ws.workspaces import projects

        return projects.register_project(self.registry, folder, exact=exact, slug=slug)

    def remove_project(self, project: Project, *, force: bool) -> None:
        """Take a project off the registry and end what runs in it; see `projects.remove_project`."""
        from exeora_ws.workspaces import projects

        workspaces = self.registry.list_workspaces(project.id)
        projects.remove_project(self.registry, project, force=force)
        for workspace in workspaces:
            self.stop_processes(workspace.id)

    def list_workspaces(self, project: Project) -> list[Workspace]:
        """A project's workspaces as registered, main first, each with the branch it is on now."""
        return [resolve.refresh_branch(project, w) for w in self.registry.list_workspaces(project.id)]

    def find_fault(self, project: Project, workspace: Workspace) -> str | None:
        """Why a workspace cannot be acted in, or None."""
        return resolve.find_fault(project, workspace)

    def require_place(self, project: Project, selector: str) -> Place:
        """A workspace by slug or id. Raises `UnknownWorkspace`."""
        return resolve.require_place(self.registry, project, selector)

    def require_available(self, place: Place, *, files: bool) -> None:
        """See that a place is there; see `resolve.require_available`."""
        resolve.require_available(place, files=files)

    def find_around(self, folder: Path) -> Place | None:
        """The workspace around a folder, or None."""
        return resolve.find_around(self.registry, folder)

    def is_in_repository(self, folder: Path) -> bool:
        """Whether a folder lies in a Git repository at all."""
        from exeora_ws.workspaces import projects

        return projects.is_in_repository(folder)

    def find_project_of(self, folder: Path) -> Project | None:
        """The registered project that the repository around a folder stands for, from whichever worktree; or None."""
        from exeora_ws.workspaces import projects

        return projects.find_project_of(self.registry, folder)

    def is_in_other_worktree(self, project: Project, folder: Path) -> bool:
        """Whether a folder lies in a worktree of the project's repository that is not its main one."""
        from exeora_ws.workspaces import projects

        return projects.is_in_other_worktree(project, folder)

    def list_git_workspaces(self, project: Project) -> "list[connect.Listed]":
        """Every worktree of the repository; see `connect.list_worktrees`."""
        from exeora_ws.workspaces import connect

        return connect.list_worktrees(self.registry, project)

    def create(self, source: Place, wanted: "Wanted", cancellation: Cancellation) -> "tuple[Creation, Prepared]":
        """Create a workspace and make it ready; see `create.create_workspace` and `Setup.prepare`."""
        from exeora_ws.workspaces import create

        with self.working_on(source.project, cancellation):
            creation = create.create_workspace(self.registry, self.managed_root(), source, wanted, cancellation)
        return creation, self.prepare(source.project, creation, cancellation)

    def prepare(self, project: Project, creation: "Creation", cancellation: Cancellation) -> "Prepared":
        """Make a new workspace ready, or one whose making ready was cut short. Needs no lock: it exists by now."""
        from exeora_ws.workspaces.setup import Prepared

        place = Place(project, creation.workspace)
        if not creation.created and (not creation.workspace.managed or self.setup.is_prepared(place)):
            return Prepared("none")
        return self.setup.prepare(place, cancellation)

    def attach(self, project: Project, candidate: "connect.Candidate", cancellation: Cancellation) -> Workspace:
        """Connect a worktree; see `connect.attach_workspace`."""
        from exeora_ws.workspaces import connect

        with self.working_on(project, cancellation):
            return connect.attach_workspace(self.registry, project, candidate)

    def detach(self, place: Place) -> tuple[str, ...]:
        """Disconnect a workspace and end what runs in it; gives what was ended."""
        from exeora_ws.workspaces import connect

        stop, workspace = self.stop_processes, place.workspace
        # Upstream servers are found by where the workspace is, which only a connected one tells.
        stopped = () if workspace.main else tuple(stop(workspace.id))
        connect.detach_workspace(self.registry, place)
        return stopped + tuple(stop(workspace.id))

    def remove(
        self,
        place: Place,
        *,
        force: bool,
        delete_branch: bool,
        cancellation: Cancellation,
        now: bool = False,
        merged_at: str | None = None,
    ) -> "remove.Removal":
        """Remove a workspace; see `remove.remove_workspace`. The trash is swept afterwards, in the background."""
        from exeora_ws.workspaces import remove, trash

        with self.working_on(place.project, cancellation):
            # Registered when the caller looked; somebody may have removed it while we waited for the lock.
            current = resolve.require_place(self.registry, place.project, place.workspace.id)
            removal = remove.remove_workspace(
                self.registry,
                self.managed_root(),
                current,
                force=force,
                delete_branch=delete_branch,
                stop=self.stop_processes,
                tear_down=lambda: self.setup.tear_down(current, cancellation),
                now=now,
                merged_at=merged_at,
            )
        if trash.needs_sweep(self.registry, now=time.time()):
            self._free_disk()
        return removal

    def give_up(self, workspace_id: str) -> None:
        """Have what was left of a removed workspace deleted for good, now, in the background."""
        from exeora_ws.workspaces import trash

        with self.registry.database.write() as connection:
            trash.expire_removal(connection, workspace_id)
        self._free_disk()

    def recover(self) -> int:
        """Settle what a killed process left half done, where nobody is at work; never waits.

        The plain-text copy is made again when there is none: a kill after a commit, a new boot.
        """
        settled = self._recover_idle() if self.registry.list_unfinished() else 0
        if not inventory_file.is_current(str(self.places.inventory)):
            self.registry.publish()
        return settled

    def _recover_idle(self) -> int:
        from exeora_ws.workspaces import recover

        return recover.recover_idle(self.registry, self.lock_of)

    @contextmanager
    def working_on(self, project: Project, cancellation: Cancellation) -> Iterator[None]:
        """Hold the lock of a project's repository, with everything settled that was left half done in it."""
        from exeora_ws.workspaces import recover

        common_dir = resolve.require_repository_dir(project)
        with hold_lock(
            self.lock_of(common_dir),
            seconds=REPOSITORY_LOCK_SECONDS,
            what=f"the repository of project {project.slug!r}",
            cancellation=cancellation,
        ):
            recover.recover_repository(self.registry, common_dir)
            yield

    def lock_of(self, common_dir: Path) -> Path:
        """Give the lock file of a repository, by its shared Git folder."""
        return name_lock(self.places, common_dir)


def name_lock(places: Places, common_dir: Path) -> Path:
    """Give the lock file of a repository; its folder is there then."""
    name = hashlib.sha256(str(common_dir).encode()).hexdigest()[:24]
    return make_private_folder(places.locks) / f"repository-{name}.lock"
