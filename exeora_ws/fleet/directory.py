"""What the machines of a fleet have published, as a gateway reads it: projects, workspaces, tools of upstream servers.

It is a warm copy of the buckets and answers without a machine. What it cannot know it leaves to the machine: a
workspace that is not in it may have been made a moment ago.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from exeora_ws.errors import UnknownProject
from exeora_ws.fleet.buckets import Bucket, Entry
from exeora_ws.fleet.documents import MachineRecord
from exeora_ws.fleet.mirror import Mirror
from exeora_ws.fleet.records import Known, RemoteProject, read_known, read_machine
from exeora_ws.fleet.slugs import SlugBook, Unnamed
from exeora_ws.fleet.wire import MachineId
from exeora_ws.names import ProjectId, Slug, WorkspaceId
from exeora_ws.tools.news import CatalogNews
from exeora_ws.upstream.catalog import PublishedTool
from exeora_ws.upstream.merging import AccountTool, merge_catalogs
from exeora_ws.workspaces.place import Place, Project, Workspace

_SHOWN = 100
_MERGED = 64


class Directory:
    """The inventory. Thread-safe; nothing here waits.

    Args:
        machines, inventory: the buckets.
        slugs: which slug is whose.
        news: told when what is on offer may be another.
    """

    def __init__(self, machines: Bucket, inventory: Bucket, slugs: SlugBook, news: CatalogNews) -> None:
        self._slugs = slugs
        self._news = news
        self._machines: Mirror[MachineRecord] = Mirror(machines, _read_machine, lambda _key: self._take_change())
        self._inventory: Mirror[Known] = Mirror(inventory, self._read_project, self._take_project)
        self._lock = threading.Lock()
        self._offer_changed = False
        self._index: _Index | None = None
        self._made: Mapping[str, tuple[Known, RemoteProject]] = {}
        self.proxies = PublishedTools(self)

    def open(self) -> None:
        """Begin to follow the buckets."""
        self._slugs.open(self._take_change, self._list_unnamed)
        self._machines.open()
        self._inventory.open()

    def await_filled(self, seconds: float) -> None:
        """Wait until it is complete; raises `ExecutorOffline`."""
        for mirror in self._mirrors:
            mirror.await_filled(seconds)

    @property
    def _mirrors(self) -> tuple[Mirror[Any], ...]:
        return self._slugs.mirror, self._machines, self._inventory

    def _list_unnamed(self) -> list[Unnamed]:
        """Give the projects without a slug; while only a part is known, one may have it all the same."""
        return self._load().unnamed if all(mirror.filled for mirror in self._mirrors) else []

    def close(self) -> None:
        """Give no more slugs away."""
        self._slugs.close()

    def _read_project(self, entry: Entry) -> Known | None:
        known = None if entry.value is None else read_known(entry.key, entry.value)
        before = self._inventory.values.get(entry.key)
        if known is None or before is None or not known.offers_as(before):
            self._offer_changed = True
        return known

    def _take_project(self, key: str | None) -> None:
        index, known = self._index, None if key is None else self._inventory.values.get(key)
        if index is None or known is None or not index.replace(known):
            self._index = None
            self._slugs.look()
        # Most changes are of workspaces, and nobody has to list the tools again for these.
        if key is None or self._offer_changed or key not in self._inventory.values:
            self._offer_changed = False
            self._news.tell()

    def _take_change(self) -> None:
        self._index = None
        self._slugs.look()
        self._news.tell()

    def _load(self) -> "_Index":
        """Give the index of what is known now; made when it is first asked for after a change."""
        with self._lock:
            index = self._index
            if index is None:
                # Set first: a change that comes while it is made takes it away again.
                self._index = index = _Index(self._made)
                index.fill(dict(self._inventory.values), dict(self._machines.values), self._slugs)
                self._made = index.made
            return index

    def list_projects(self) -> list[RemoteProject]:
        """Give the projects of all machines, by slug; one that has no slug yet is not among them."""
        return list(self._load().projects)

    def require_project(self, selector: str) -> RemoteProject:
        """Find a project by slug or id.

        Raises:
            UnknownProject: no machine has published one.
        """
        index = self._load()
        found = index.by_slug.get(selector) or index.by_id.get(selector)
        if found is None:
            raise UnknownProject(
                f"there is no project {selector[:_SHOWN]!r}", hint="list_projects names those there are"
            )
        return found

    def require_place(self, project: Project, selector: str) -> Place:
        """Find a workspace by slug or id; one that is not known stays as it was named, for the machine to find.

        It is never main instead, here or there: what is not known goes on under the selector that was given.
        """
        known = self.require_known(project)
        for row in known.record.workspaces:
            if selector in (row.slug, row.id):
                return Place(project, known.make_workspace(row))
        return Place(project, _leave_open(project, selector))

    def require_available(self, place: Place, *, files: bool) -> None:
        """Say nothing: its machine looks."""

    def find_known(self, project: Project) -> Known | None:
        """Give what is known of a project; None when it went meanwhile."""
        return self._load().known.get(project.id)

    def require_known(self, project: Project) -> Known:
        """Give the same; raises `UnknownProject`."""
        known = self.find_known(project)
        if known is None:
            raise UnknownProject(f"there is no project {project.slug!r}", hint="list_projects names those there are")
        return known

    def count_machines(self) -> int:
        """Give how many machines have been added and not sent away."""
        return sum(record.revoked is None for record in dict(self._machines.values).values())

    def name_machine(self, machine: MachineId) -> str:
        """Give what a machine is called."""
        row = self._machines.values.get(machine)
        return machine if row is None else row.name


class _Index:
    """What is known, as it is asked for.

    Args:
        before: the projects of the index before, by id; one that is as it was is not made again.
    """

    def __init__(self, before: "Mapping[str, tuple[Known, RemoteProject]]") -> None:
        self._before = before
        self.made: dict[str, tuple[Known, RemoteProject]] = {}
        self.unnamed: list[Unnamed] = []
        self.known: dict[str, Known] = {}
        self.by_id: dict[str, RemoteProject] = {}
        self.by_slug: dict[str, RemoteProject] = {}
        self.projects: tuple[RemoteProject, ...] = ()

    def fill(self, inventory: Mapping[str, Known], machines: Mapping[str, MachineRecord], slugs: SlugBook) -> None:
        for known in inventory.values():
            machine = machines.get(known.machine)
            if machine is None or machine.revoked is not None:
                continue
            slug = slugs.find(known)
            if slug is None:
                self.unnamed.append((known, machine.name))
                continue
            self._add(known, slug)
        self.projects = tuple(sorted(self.by_id.values(), key=lambda project: project.slug))

    def replace(self, known: Known) -> bool:
        """Take what a machine wrote anew of a project; False where that changes more than what is known of it."""
        before, project = self.known.get(known.id), self.by_id.get(known.id)
        if before is None or project is None or before.machine != known.machine:
            return False
        if known.make_project(project.slug) != project:
            return False
        self.made[known.id] = (known, project)
        self.known[known.id] = known
        return True

    def _add(self, known: Known, slug: Slug) -> None:
        before = self._before.get(known.id)
        same = before is not None and before[0] is known and before[1].slug == slug
        project = before[1] if same and before is not None else known.make_project(slug)
        self.known[known.id] = known
        self.made[known.id] = (known, project)
        self.by_id[project.id] = self.by_slug[project.slug] = project


class PublishedTools:
    """The tools of upstream servers that machines have published, in the shape that the way of a call knows."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._merged: OrderedDict[tuple[ProjectId, ...], tuple[list[tuple[PublishedTool, ...]], list[AccountTool]]]
        self._merged = OrderedDict()

    def start(self, project: Project) -> None:
        """Do nothing: machines start servers."""

    def wait_until_settled(self, project_id: ProjectId, seconds: float) -> bool:  # noqa: ARG002  there is no waiting
        """Say that what is published is all there is."""
        return True

    def tools(self, project_id: ProjectId) -> tuple[PublishedTool, ...]:
        """Give what a project has published."""
        known = self._directory._load().known.get(project_id)  # noqa: SLF001  two halves of one thing
        return () if known is None else known.tools

    def account_tools(self, project_ids: Iterable[ProjectId]) -> list[AccountTool]:
        """Give what an account publishes that reaches these projects."""
        catalogs = {project_id: self.tools(project_id) for project_id in project_ids}
        catalogs = {project_id: tools for project_id, tools in catalogs.items() if tools}
        key, given = tuple(catalogs), list(catalogs.values())
        made = self._merged.get(key)
        if made is None or any(one is not other for one, other in zip(made[0], given, strict=True)):
            made = (given, merge_catalogs(catalogs))
            self._merged[key] = made
            while len(self._merged) > _MERGED:
                self._merged.popitem(last=False)
        return made[1]

    def forward(self, *_arguments: Any, **_more: Any) -> dict[str, Any]:
        """Fail: a gateway carries nothing out."""
        raise AssertionError("a call of an upstream's tool at a gateway")


def _leave_open(project: Project, selector: str) -> Workspace:
    nowhere = Path("/nonexistent")
    return Workspace(WorkspaceId(selector), project.id, Slug(selector), selector, None, nowhere, nowhere, managed=False)


def _read_machine(entry: Entry) -> MachineRecord | None:
    return None if entry.value is None else read_machine(entry.value)
