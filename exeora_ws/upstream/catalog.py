"""What a project publishes of its servers' tools: which, under which name, in which shape. Pure.

Everything a server says of a tool is kept as it said it. Changed are the name, a routing field in the input schema,
and the few spellings that make a client refuse the whole list for one tool's sake (docs/upstreams.md).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exeora_ws.limits import CATALOG_BYTES, CATALOG_TOOLS, TOOL_NAME_CHARACTERS
from exeora_ws.upstream.listing import Listing
from exeora_ws.upstream.messages import Message
from exeora_ws.upstream.names import publish_names
from exeora_ws.upstream.redaction import make_catalog_redactor
from exeora_ws.upstream.routing import WORKSPACE, WORKSPACE_SCHEMA, add_field, choose_field, take_field
from exeora_ws.upstream.server import Server
from exeora_ws.upstream.tool_check import BadTool, check_tool


@dataclass(frozen=True)
class PublishedTool:
    """One upstream tool as a project publishes it."""

    name: str
    """`mcp__server__tool`."""
    server: str
    tool: str
    """What its own server calls it."""
    read_only: bool
    """Its server's `readOnlyHint`; absent means that it changes things."""
    workspace_field: str
    """The routing field: `workspace`, or another where the tool has one of that name itself."""
    raw: Message
    """The entry for `tools/list` of a project's endpoint. Not to be changed."""

    def take_workspace(self, arguments: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """Split the selector off a call's arguments; the rest is the upstream's.

        Raises:
            InvalidArguments: the selector is no string.
        """
        return take_field(arguments, self.workspace_field)


@dataclass(frozen=True)
class Catalog:
    """A project's published tools, and what it does not publish and why."""

    tools: tuple[PublishedTool, ...] = ()
    warnings: tuple[str, ...] = ()
    size: int = 0
    """Bytes of all entries as JSON."""

    def find(self, name: str) -> PublishedTool | None:
        """The tool of that published name."""
        return next((tool for tool in self.tools if tool.name == name), None)


def publish_catalog(
    listings: Sequence[tuple[Server, Listing]],
    *,
    servers: Iterable[str],
    budget: int = TOOL_NAME_CHARACTERS,
    max_tools: int = CATALOG_TOOLS,
    max_bytes: int = CATALOG_BYTES,
) -> Catalog:
    """Work out a project's catalog.

    Args:
        listings: the servers that have answered, in the order of the file: who comes first is kept within the limits.
        servers: every configured server's name, running or not; names depend on these.
        budget: longest published name, in characters.
        max_tools: how many tools are published.
        max_bytes: how large their entries may be together.
    """
    names = publish_names(
        {server.name: _names_of(listing) for server, listing in listings}, servers=servers, budget=budget
    )
    shelf = _Shelf(max_tools, max_bytes)
    warnings: list[str] = []
    for server, listing in listings:
        warnings += [f"server {server.name!r}: {warning}" for warning in listing.warnings]
        for raw in listing.tools:
            try:
                shelf.offer(_publish(server, raw, names))
            except BadTool as bad:
                warnings.append(f"server {server.name!r}: tool {bad.name} is left out: {bad}")
    return Catalog(tuple(shelf.tools), (*warnings, *shelf.describe_left_out()), shelf.size)


def _names_of(listing: Listing) -> list[str]:
    found = (tool.get("name") for tool in listing.tools if isinstance(tool, dict))
    return [name for name in found if isinstance(name, str)]


def _publish(server: Server, raw: Any, names: Mapping[tuple[str, str], str]) -> PublishedTool:
    tool = check_tool(raw)
    own_name = tool["name"]
    redactor = make_catalog_redactor(server)
    if redactor.finds(own_name):
        raise BadTool("?", "its name holds a value that must not be shown")
    schema = redactor.scrub_value(tool["inputSchema"])
    field = choose_field(WORKSPACE, schema)
    name = names[server.name, own_name]
    entry = {**redactor.scrub_value(tool), "name": name, "inputSchema": add_field(schema, field, WORKSPACE_SCHEMA)}
    return PublishedTool(name, server.name, own_name, is_read_only(tool), field, entry)


def is_read_only(tool: Mapping[str, Any]) -> bool:
    """Whether a server marks a tool as changing nothing."""
    annotations = tool.get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True


def measure(entry: Message) -> int:
    """Give the bytes of an entry as compact JSON."""
    return len(json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode())


class _Shelf:
    """Takes tools while there is room, and keeps count of those that found none."""

    def __init__(self, max_tools: int, max_bytes: int) -> None:
        self.tools: list[PublishedTool] = []
        self.size = 0
        self._max_tools = max_tools
        self._max_bytes = max_bytes
        self._left_out: dict[str, list[str]] = {}

    def offer(self, tool: PublishedTool) -> None:
        size = measure(tool.raw)
        if len(self.tools) >= self._max_tools or self.size + size > self._max_bytes:
            self._left_out.setdefault(tool.server, []).append(tool.tool)
            return
        self.tools.append(tool)
        self.size += size

    def describe_left_out(self) -> list[str]:
        limit = f"{self._max_tools} tools and {self._max_bytes} bytes a project"
        return [
            f"server {server!r}: {len(names)} of its tools are left out ({limit}): " + _enumerate(names)
            for server, names in self._left_out.items()
        ]


def _enumerate(names: Sequence[str], shown: int = 10) -> str:
    listed = ", ".join(name[:80] for name in names[:shown])
    return f"{listed} and {len(names) - shown} more" if len(names) > shown else listed
