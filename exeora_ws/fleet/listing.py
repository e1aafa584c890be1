"""The tools that a gateway answers itself, out of the directory, whether or not any machine is there."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from exeora_ws.errors import UnknownProject
from exeora_ws.fleet.directory import Directory
from exeora_ws.fleet.records import Known, RemoteProject
from exeora_ws.fleet.way import LocalTool
from exeora_ws.fleet.wire import MachineId
from exeora_ws.limits import LIST_ENTRIES, LIST_PAGE_BYTES
from exeora_ws.names import show_bytes
from exeora_ws.skills.prompt import agent_prompt
from exeora_ws.tools.call import AnyTool, Scope
from exeora_ws.tools.guidance import GET_AGENT_PROMPT, PromptResult
from exeora_ws.tools.spec import Arguments, Result
from exeora_ws.tools.workspaces import LIST_PROJECTS, LIST_WORKSPACES, ListedWorkspace

FindOnline = Callable[[Collection[MachineId]], set[MachineId]]
"""Says which of some machines are there now."""


class MachineFacts(Struct, rename="camel", frozen=True, kw_only=True):
    """The machine that holds a project. `asOf` is when it last wrote down what is said here; it does at each change."""

    name: str
    online: bool
    """Whether it answered just now."""
    as_of: str


class FleetProject(Struct, rename="camel", frozen=True, kw_only=True):
    """A project; its slug is that of the fleet."""

    id: str
    slug: str
    name: str
    machine: MachineFacts


class FleetWorkspace(ListedWorkspace, frozen=True, kw_only=True):
    """A workspace. `available`: its machine is there, and its folder could be used at `machine.asOf`."""


class FleetProjects(Result, frozen=True, kw_only=True):
    """Result of list_projects. `nextAfter` only where there are more."""

    projects: list[FleetProject]
    total: int
    truncated: bool
    next_after: str | UnsetType = UNSET


class ListProjects(Arguments, frozen=True):
    """Arguments of list_projects."""

    after: Annotated[
        str | None, Meta(description="List those whose slug comes after this one: `nextAfter` of the answer before.")
    ] = None


class FleetWorkspaces(Result, frozen=True, kw_only=True):
    """Result of list_workspaces."""

    workspaces: list[FleetWorkspace]
    machine: MachineFacts


_PROJECTS_HERE: AnyTool = LIST_PROJECTS
_WORKSPACES_HERE: AnyTool = LIST_WORKSPACES
_LIST_PROJECTS = replace(
    _PROJECTS_HERE,
    description=(
        "List the projects this connection reaches, with the machine that holds each and whether it is online now. "
        "With more than one, every other call names its `project`. Calls to a machine that is not online fail at once. "
        f"At most {LIST_ENTRIES:,} are listed; `truncated` says that there are more."
    ),
    arguments=ListProjects,
    result=FleetProjects,
)
_LIST_WORKSPACES = replace(
    _WORKSPACES_HERE,
    description=(
        "List the workspaces connected to a project, `main` first, as its machine wrote them down at `machine.asOf`; "
        "answered also while that machine is away. `available` is false while it is, and where the folder could not be "
        "used then."
    ),
    result=FleetWorkspaces,
)


def with_local_tools(catalog: Mapping[str, AnyTool]) -> dict[str, AnyTool]:
    """Put the tools as a gateway has them in place of the machine's own."""
    local = {tool.name: tool for tool in (_LIST_PROJECTS, _LIST_WORKSPACES)}
    return {name: local.get(name, tool) for name, tool in catalog.items()}


def make_local_tools(directory: Directory, find_online: FindOnline) -> dict[str, LocalTool]:
    """Give what answers each of them."""
    listing = _Listing(directory, find_online)
    return {
        LIST_PROJECTS.name: listing.list_projects,
        LIST_WORKSPACES.name: listing.list_workspaces,
        GET_AGENT_PROMPT.name: lambda _scope, _project, _asked: PromptResult(prompt=agent_prompt()),
    }


class _Listing:
    def __init__(self, directory: Directory, find_online: FindOnline) -> None:
        self._directory = directory
        self._find_online = find_online

    def list_projects(self, scope: Scope, _project: RemoteProject | None, asked: ListProjects) -> FleetProjects:
        reached = [p for p in self._directory.list_projects() if scope.granted is None or p.id in scope.granted]
        left = [p for p in reached if asked.after is None or p.slug > asked.after]
        shown, more = left[:LIST_ENTRIES], len(left) > LIST_ENTRIES
        online = self._find_online({project.machine for project in shown})
        projects = [
            FleetProject(id=p.id, slug=p.slug, name=p.name, machine=self._describe_machine(p, known, online))
            for p in shown
            if (known := self._directory.find_known(p)) is not None
        ]
        fitting = _count_fitting(projects)
        more = more or fitting < len(projects)
        return FleetProjects(
            projects=projects[:fitting],
            total=len(reached),
            truncated=more,
            next_after=projects[fitting - 1].slug if more and projects else UNSET,
        )

    def list_workspaces(self, _scope: Scope, project: RemoteProject | None, _asked: object) -> FleetWorkspaces:
        if project is None:
            raise UnknownProject("this call names no project", hint="list_projects names those there are")
        online = self._find_online({project.machine})
        known = self._directory.require_known(project)
        return FleetWorkspaces(
            machine=self._describe_machine(project, known, online),
            workspaces=[
                FleetWorkspace(
                    id=row.id,
                    slug=row.slug,
                    name=row.name,
                    branch=None if row.branch is None else show_bytes(row.branch),
                    managed=row.managed,
                    available=row.available and project.machine in online,
                    path=row.path,
                )
                for row in known.record.workspaces
            ],
        )

    def _describe_machine(self, project: RemoteProject, known: Known, online: Collection[MachineId]) -> MachineFacts:
        return MachineFacts(
            name=self._directory.name_machine(project.machine),
            online=project.machine in online,
            as_of=datetime.fromtimestamp(known.record.at / 1000, UTC).isoformat(timespec="milliseconds"),
        )


def _count_fitting(projects: list[FleetProject]) -> int:
    """Give how many fit one answer: their names are what machines say, long or short."""
    size = 0
    for count, project in enumerate(projects):
        size += len(msgspec.json.encode(project))
        if size > LIST_PAGE_BYTES:
            return count
    return len(projects)
