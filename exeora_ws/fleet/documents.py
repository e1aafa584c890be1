"""What stands in the buckets that machines write: what each has published of itself and of its projects. No I/O."""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from exeora_ws.errors import ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.limits import FLEET_DOCUMENT_BYTES, FLEET_MESSAGE_BYTES
from exeora_ws.policy.layer import parse_layer
from exeora_ws.policy.rules import Mode, Origin, Policy, closed_policy
from exeora_ws.upstream.catalog import PublishedTool

_PLAIN = b"{"


class WorkspaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace, as `list_workspaces` shows it."""

    id: str
    slug: str
    name: str
    branch: str | None
    managed: bool
    available: bool
    path: str


class PolicyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the user's policy and the project's come to, for listing tools and refusing early; the machine judges."""

    mode: str
    allow: list[str] | None = None
    deny: list[str] = []
    shell: bool = True
    approve: bool = False
    tools: list[str] | None = None
    faults: list[str] = []


class ToolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of an upstream server, as the project publishes it."""

    name: str
    server: str
    tool: str
    read_only: bool
    workspace_field: str
    raw: dict[str, Any]


class ProjectRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one project of one machine, under `MACHINE.PROJECT` in the bucket `exeora_inventory`."""

    machine: str
    instance: str = ""
    """The process of the machine that takes calls for it; see `PresenceRecord`."""
    id: str
    slug: str
    name: str
    workspaces: list[WorkspaceRecord]
    policy: PolicyRecord
    tools: list[ToolRecord] = []
    tools_left_out: int = 0
    """How many tools are not here because the document would be too large."""
    at: int = 0
    """When it was written, in the fleet's milliseconds."""


class MachineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that was added, under its id in the bucket `exeora_machines`. Times are seconds since 1970."""

    name: str
    public: str
    """The public key of its user."""
    added: float
    revoked: float | None = None
    former: dict[str, int] = {}
    """Public keys that it had before, and the second up to which each is void."""


class PresenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine says of itself, under `MACHINE.seen` in the bucket `exeora_presence`, and in answer to a ping."""

    machine: str
    instance: str
    """Random for each process."""
    version: str
    platform: str
    since: int
    """When this process came, in the fleet's milliseconds."""
    seen: int
    """When it wrote this; about once a minute while it is there."""
    gone: bool = False
    """Whether it said goodbye with this."""


def name_project_key(machine: str, project: str) -> str:
    """Give the key of a project's record."""
    return f"{machine}.{project}"


def name_presence_key(machine: str) -> str:
    """Give the key of a machine's presence."""
    return f"{machine}.seen"


def describe_policy(policy: Policy) -> PolicyRecord:
    """Write a policy down."""
    return PolicyRecord(
        mode=str(policy.mode),
        allow=None if policy.allow is None else [rule.text for rule in policy.allow],
        deny=[rule.text for rule in policy.deny],
        shell=policy.shell,
        approve=policy.approve,
        tools=None if policy.tools is None else sorted(policy.tools),
        faults=list(policy.faults),
    )


def read_policy(record: PolicyRecord) -> Policy:
    """Read a policy again; one that makes no sense is closed to read only."""
    if record.faults:
        return closed_policy(record.faults[0], Origin.PROJECT)
    document: dict[str, Any] = {"mode": record.mode, "deny": record.deny, "shell": record.shell}
    document |= {"approve": record.approve}
    if record.allow is not None and record.mode != Mode.ALLOW_ALL:
        document["allow"] = record.allow
    if record.tools is not None:
        document["tools"] = record.tools
    return parse_layer(document, Origin.PROJECT, lambda key: f"key {key!r}").policy


def describe_tools(tools: Sequence[PublishedTool]) -> list[ToolRecord]:
    """Write a catalog down."""
    return [
        ToolRecord(
            name=tool.name,
            server=tool.server,
            tool=tool.tool,
            read_only=tool.read_only,
            workspace_field=tool.workspace_field,
            raw=dict(tool.raw),
        )
        for tool in tools
    ]


def read_tools(records: Sequence[ToolRecord]) -> tuple[PublishedTool, ...]:
    """Read a catalog again."""
    return tuple(PublishedTool(r.name, r.server, r.tool, r.read_only, r.workspace_field, r.raw) for r in records)


def pack_project(record: ProjectRecord) -> bytes:
    """Write a record as it stands in the bucket: compressed, and with fewer tools where it would be too large."""
    while True:
        packed = zlib.compress(wire.encode(record), 1)
        if len(packed) <= FLEET_DOCUMENT_BYTES or not record.tools:
            return packed
        kept = len(record.tools) * FLEET_DOCUMENT_BYTES // len(packed) * 9 // 10
        left_out = record.tools_left_out + len(record.tools) - kept
        record = msgspec.structs.replace(record, tools=record.tools[:kept], tools_left_out=left_out)


def unpack_project(data: bytes) -> ProjectRecord:
    """Read a record.

    Raises:
        ToolFailed: reason `bad_message`: another wrote it, or one much newer.
        InvalidArguments: likewise.
    """
    return wire.decode_as(ProjectRecord, data if data.startswith(_PLAIN) else _inflate(data))


def _inflate(data: bytes) -> bytes:
    inflating = zlib.decompressobj()
    try:
        plain = inflating.decompress(data, FLEET_MESSAGE_BYTES)
    except zlib.error as error:
        raise ToolFailed("a record of the fleet cannot be read", reason="bad_message") from error
    if inflating.unconsumed_tail:
        raise ToolFailed("a record of the fleet is too large", reason="bad_message")
    return plain
