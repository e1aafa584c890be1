"""What stands in the buckets of machines and their inventory: written by one side, read by the other. No I/O."""

import gzip
import io
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.limits import CATALOG_BYTES, FLEET_CATALOG_BYTES
from exeora_ws.names import ProjectId, Slug, WorkspaceId
from exeora_ws.policy.rules import Mode, Origin, Policy
from exeora_ws.upstream.catalog import PublishedTool
from exeora_ws.workspaces.place import Project, Workspace


class Row(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what is stored: fields that are not known are passed over."""


class WorkspaceRow(Row, frozen=True, kw_only=True):
    """A workspace, as `list_workspaces` shows it."""

    id: str
    slug: str
    name: str
    branch: str | None
    managed: bool
    available: bool
    """Whether its folder could be used when this was written."""
    path: str


class PolicyRow(Row, frozen=True, kw_only=True):
    """Of a project's policy as its machine has it, what decides which tools are listed."""

    mode: str = str(Mode.ALLOW_ALL)
    tools: tuple[str, ...] | None = None


class ToolRow(Row, frozen=True, kw_only=True):
    """A tool of an upstream server, as the project publishes it."""

    name: str
    server: str
    tool: str
    read_only: bool
    workspace_field: str
    raw: dict[str, Any]


class ProjectRow(Row, frozen=True, kw_only=True):
    """A project, under `MACHINE.PROJECT`."""

    id: str
    slug: str
    name: str
    root: str
    workspaces: tuple[WorkspaceRow, ...]
    """`main` first."""
    policy: PolicyRow = PolicyRow()
    tools: bytes = b""
    """The upstream tools, packed; see `pack_tools`."""
    written: int
    """When, in milliseconds of the fleet's clock."""


class MachineRow(Row, frozen=True, kw_only=True):
    """A machine, under its id."""

    name: str
    public: str
    """The public key of its user."""
    added: int
    """Milliseconds since 1970, as the next."""
    revoked: int | None = None


def pack_tools(tools: "tuple[PublishedTool, ...]") -> bytes:
    """Write the tools of a project's upstream servers, compressed.

    Raises:
        ToolFailed: reason `message_too_large`.
    """
    rows = [
        ToolRow(
            name=t.name, server=t.server, tool=t.tool, read_only=t.read_only, workspace_field=t.workspace_field,
            raw=t.raw,
        )
        for t in tools
    ]  # fmt: skip
    packed = (
        gzip.compress(wire.encode({"tools": [msgspec.to_builtins(row) for row in rows]}), 6, mtime=0) if rows else b""
    )
    if len(packed) > FLEET_CATALOG_BYTES:
        raise ToolFailed("the catalog of upstream tools is too large for the fleet", reason="message_too_large")
    return packed


def unpack_tools(packed: bytes) -> "tuple[PublishedTool, ...]":
    """Read what `pack_tools` wrote.

    Raises:
        InvalidArguments: reason `bad_message`.
    """
    if not packed:
        return ()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            text = stream.read(4 * CATALOG_BYTES)
        rows = msgspec.convert(wire.decode(text).get("tools"), tuple[ToolRow, ...])
    except (OSError, EOFError, msgspec.ValidationError) as error:
        raise InvalidArguments("a catalog of the fleet cannot be read", reason="bad_message") from error
    return tuple(PublishedTool(t.name, t.server, t.tool, t.read_only, t.workspace_field, t.raw) for t in rows)


@dataclass(frozen=True, slots=True)
class RemoteProject(Project):
    """A project on another machine. Its paths are of that machine; nothing here opens them."""

    machine: wire.MachineId
    name: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a project: as its machine wrote it down at `written` (the fleet's milliseconds)."""

    machine: wire.MachineId
    row: ProjectRow
    policy: Policy
    tools: tuple[PublishedTool, ...]

    @property
    def id(self) -> ProjectId:
        """The project's id."""
        return ProjectId(self.row.id)

    def make_project(self, slug: Slug) -> RemoteProject:
        """Give the project, under the slug that it has in the fleet."""
        return RemoteProject(
            self.id, slug, Path(self.row.root), None, PurePosixPath(), bare=False, machine=self.machine,
            name=self.row.name,
        )  # fmt: skip

    def make_workspace(self, row: WorkspaceRow) -> Workspace:
        """Give one of its workspaces."""
        path = Path(row.path)
        return Workspace(
            WorkspaceId(row.id), self.id, Slug(row.slug), row.name, row.branch, path, path, managed=row.managed
        )


def name_key(machine: str, project: str) -> str:
    """Give where a machine's project stands."""
    return f"{machine}.{project}"


def read_known(key: str, value: bytes) -> Known | None:
    """Read a project; None for what is none, or stands under another machine's key than it says."""
    machine, _, project = key.partition(".")
    try:
        row = wire.decode_as(ProjectRow, value)
        tools = unpack_tools(row.tools)
    except InvalidArguments:
        return None
    return Known(wire.MachineId(machine), row, read_policy(row.policy), tools) if row.id == project else None


def read_policy(row: PolicyRow) -> Policy:
    """Read a policy as far as it is published; a mode that is not known here is read only."""
    try:
        mode = Mode(row.mode)
    except ValueError:
        mode = Mode.READ_ONLY
    tools = None if row.tools is None else frozenset(row.tools)
    return Policy(mode=mode, tools=tools, origins=dict.fromkeys(("mode", "tools"), Origin.PROJECT))


def write_policy(policy: Policy) -> PolicyRow:
    """Write a policy as far as it is published."""
    return PolicyRow(mode=str(policy.mode), tools=None if policy.tools is None else tuple(sorted(policy.tools)))
