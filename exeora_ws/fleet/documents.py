"""What stands in the buckets that machines write: what each has published of itself and of its projects. No I/O."""

import re
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from exeora_ws.errors import ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.limits import (
    CATALOG_BYTES,
    CATALOG_TOOLS,
    FLEET_DOCUMENT_BYTES,
    FLEET_DOCUMENT_PLAIN_BYTES,
    TOOL_NAME_CHARACTERS,
)
from exeora_ws.policy.layer import parse_layer
from exeora_ws.policy.rules import Mode, Origin, Policy, closed_policy
from exeora_ws.tools.call import PROXIED_PREFIX
from exeora_ws.upstream.catalog import PublishedTool, measure
from exeora_ws.upstream.tool_check import BadTool, check_tool

_PLAIN = b"{"
_TOOL_NAME = re.compile(rf"(?=.{{1,{TOOL_NAME_CHARACTERS}}}\Z){re.escape(PROXIED_PREFIX)}[A-Za-z0-9_-]+\Z")


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
    """Read a catalog again, as far as it can be shown to clients: one bad entry would cost them every machine's."""
    read: dict[str, PublishedTool] = {}
    size = 0
    for record in records[:CATALOG_TOOLS]:
        tool = _read_tool(record)
        size += 0 if tool is None else measure(tool.raw)
        if tool is not None and size <= CATALOG_BYTES:
            read.setdefault(tool.name, tool)
    return tuple(read.values())


def _read_tool(record: ToolRecord) -> PublishedTool | None:
    if not _TOOL_NAME.match(record.name) or not record.workspace_field:
        return None
    try:
        raw = check_tool({**record.raw, "name": record.name})
    except BadTool:
        return None
    return PublishedTool(record.name, record.server, record.tool, record.read_only, record.workspace_field, raw)


def pack_project(record: ProjectRecord) -> bytes:
    """Write a record as it stands in the bucket: compressed, and with fewer tools where it would be too large."""
    while True:
        plain = wire.encode(record)
        packed = zlib.compress(plain, 1)
        over = max(len(packed) / FLEET_DOCUMENT_BYTES, len(plain) / FLEET_DOCUMENT_PLAIN_BYTES)
        if over <= 1 or not record.tools:
            return packed
        kept = int(len(record.tools) / over * 0.9)
        left_out = record.tools_left_out + len(record.tools) - kept
        record = msgspec.structs.replace(record, tools=record.tools[:kept], tools_left_out=left_out)


def unpack_project(data: bytes) -> ProjectRecord:
    """Read a record.

    Raises:
        ToolFailed: reason `bad_message`: another wrote it, or one much newer.
        InvalidArguments: likewise.
    """
    return parse_project(inflate_project(data))


def parse_project(plain: bytes) -> ProjectRecord:
    """Read a record that `inflate_project` gave; raises as `unpack_project`."""
    return wire.decode_as(ProjectRecord, plain, foreign=True)


def inflate_project(data: bytes) -> bytes:
    """Give a record's JSON; raises as `unpack_project`."""
    if data.startswith(_PLAIN):
        return data
    inflating = zlib.decompressobj()
    try:
        plain = inflating.decompress(data, FLEET_DOCUMENT_PLAIN_BYTES)
    except zlib.error as error:
        raise ToolFailed("a record of the fleet cannot be read", reason="bad_message") from error
    if inflating.unconsumed_tail:
        raise ToolFailed("a record of the fleet is too large", reason="bad_message")
    return plain
