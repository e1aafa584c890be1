"""What a gateway makes of what stands in the buckets: machines, and their projects as values of the core. No I/O."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from exeora_ws.errors import ExeoraError
from exeora_ws.fleet import wire
from exeora_ws.fleet.documents import (
    MachineRecord,
    ProjectRecord,
    WorkspaceRecord,
    read_policy,
    read_tools,
    unpack_project,
)
from exeora_ws.names import MAIN, ProjectId, Slug, WorkspaceId
from exeora_ws.policy.rules import Policy
from exeora_ws.upstream.catalog import PublishedTool
from exeora_ws.workspaces.place import Project, Workspace


@dataclass(frozen=True, slots=True)
class RemoteProject(Project):
    """A project on another machine. Its paths are of that machine; nothing here opens them."""

    machine: wire.MachineId
    instance: str
    """The process there that takes calls."""
    name: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a project, as its machine wrote it down."""

    machine: wire.MachineId
    record: ProjectRecord
    policy: Policy
    tools: tuple[PublishedTool, ...]

    @property
    def id(self) -> ProjectId:
        """The project's id."""
        return ProjectId(self.record.id)

    def make_project(self, slug: Slug) -> RemoteProject:
        """Give the project, under the slug that it has in the fleet."""
        main = next((row.path for row in self.record.workspaces if row.slug == MAIN), "")
        return RemoteProject(
            self.id,
            slug,
            Path(main),
            None,
            PurePosixPath(),
            bare=False,
            machine=self.machine,
            instance=self.record.instance,
            name=self.record.name,
        )

    def make_workspace(self, row: WorkspaceRecord) -> Workspace:
        """Give one of its workspaces."""
        path = Path(row.path)
        return Workspace(
            WorkspaceId(row.id), self.id, Slug(row.slug), row.name, row.branch, path, path, managed=row.managed
        )

    def offers_as(self, other: "Known") -> bool:
        """Whether it offers what another one does."""
        return self.record.policy == other.record.policy and self.record.tools == other.record.tools


def read_machine(value: bytes) -> MachineRecord | None:
    """Read a machine; None for what is none."""
    try:
        return wire.decode_as(MachineRecord, value)
    except ExeoraError:
        return None


def read_known(key: str, value: bytes) -> Known | None:
    """Read a project; None for what is none, or says that it is another than its key does."""
    try:
        record = unpack_project(value)
    except ExeoraError:
        return None
    if key != f"{record.machine}.{record.id}":
        return None
    policy, tools = read_policy(record.policy), read_tools(record.tools)
    return Known(wire.MachineId(record.machine), record, policy, tools)
