"""What `exeora upstream list`, `names` and `check` show: plain values, nothing secret in them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.limits import TOOL_NAME_CHARACTERS
from exeora_ws.upstream.catalog import Catalog, publish_catalog
from exeora_ws.upstream.config import Configuration, load_configuration
from exeora_ws.upstream.instance import Instance, Surroundings
from exeora_ws.upstream.offer import Standing, UpstreamProject, describe_standing
from exeora_ws.upstream.project_config import Effective, load_project_section, merge_servers
from exeora_ws.upstream.server import Entry, Server
from exeora_ws.upstream.upstreams import Upstreams

_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class ServerList:
    """The servers of a project as configured. Nothing was started."""

    servers: list[dict[str, Any]]
    """name, source, state (`on`, `off`, `faulty`), kind?, target?, fault?."""
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class NameList:
    """Published against upstream names."""

    names: list[dict[str, Any]]
    """name, server, tool, readOnly."""
    failed: list[dict[str, Any]]
    """The status of each server whose tools are not in `names`."""
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ServerCheck:
    """What starting one server came to."""

    server: str
    ok: bool
    milliseconds: int
    protocol_version: str | None
    server_info: dict[str, Any]
    tools: list[dict[str, Any]]
    """name, tool, readOnly."""
    warnings: tuple[str, ...]
    error: dict[str, Any] | None
    """The `error` object of the failure, with phase, exit code and error output in its `data`."""


def list_servers(mcp_file: Path, root: Path | None, variables: Mapping[str, str]) -> ServerList:
    """List the servers of a project, or the user's own without one.

    Raises:
        ToolFailed: reason `mcp_config_invalid`.
    """
    effective = _load_effective(mcp_file, root, variables)
    faults = tuple(entry.fault for entry in effective.entries if entry.fault is not None)
    return ServerList([_describe_entry(entry) for entry in effective.entries], (*effective.warnings, *faults))


def list_names(
    upstreams: Upstreams, project: UpstreamProject, *, seconds: float, cancellation: Cancellation | None = None
) -> NameList:
    """Start a project's servers, wait at most `seconds` for them, and list what is published of their tools.

    Raises:
        Cancelled: nobody waits any more.
    """
    upstreams.start(project)
    _wait_until_settled(upstreams, project, seconds, cancellation or Cancellation())
    status = upstreams.status(project.id)
    return NameList(
        [
            {"name": tool.name, "server": tool.server, "tool": tool.tool, "readOnly": tool.read_only}
            for tool in upstreams.tools(project.id)
        ],
        [server for server in status if server["state"] in ("failed", "faulty", "starting")],
        upstreams.warnings(project.id),
    )


def _wait_until_settled(
    upstreams: Upstreams, project: UpstreamProject, seconds: float, cancellation: Cancellation
) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        cancellation.raise_if_cancelled()
        if upstreams.wait_until_settled(project.id, min(left, _LOOK_SECONDS)):
            return


def check_server(
    name: str,
    mcp_file: Path,
    root: Path,
    surroundings: Surroundings,
    variables: Mapping[str, str],
    *,
    budget: int = TOOL_NAME_CHARACTERS,
    cancellation: Cancellation | None = None,
) -> ServerCheck:
    """Start one server in a project's root, list its tools, and end it.

    Raises:
        Cancelled: nobody waits any more; what was started has been ended.
        InvalidArguments: reason `unknown_server`; `server_disabled`, it is switched off; `server_faulty`, its entry is.
        ToolFailed: reason `mcp_config_invalid`.
    """
    effective = _load_effective(mcp_file, root, variables)
    server = _require_runnable(name, effective)
    instance = Instance(server, root, surroundings, on_list_changed=lambda: None)
    forget = cancellation.on_cancel(instance.close) if cancellation is not None else lambda: None
    begun = time.monotonic()
    catalog, error = Catalog(), None
    try:
        instance.start()
        listing = instance.list_tools()
        catalog = publish_catalog([(server, listing)], servers=[e.name for e in effective.entries], budget=budget)
    except ToolFailed as failure:
        if cancellation is not None:
            cancellation.raise_if_cancelled()
        error = failure.to_dict()
    finally:
        forget()
        took = round((time.monotonic() - begun) * 1000)
        instance.close()
    return ServerCheck(
        name,
        error is None,
        took,
        instance.version,
        instance.about,
        [{"name": tool.name, "tool": tool.tool, "readOnly": tool.read_only} for tool in catalog.tools],
        catalog.warnings,
        error,
    )


def _load_effective(mcp_file: Path, root: Path | None, variables: Mapping[str, str]) -> Effective:
    user: Configuration = load_configuration(mcp_file, variables)
    if root is None:
        return Effective(user.entries, user.warnings)
    return merge_servers(user, load_project_section(root))


def _describe_entry(entry: Entry) -> dict[str, Any]:
    described = describe_standing(Standing(entry))
    return {**described, "state": "on"} if entry.runnable is not None else described


def _require_runnable(name: str, effective: Effective) -> Server:
    entry = next((entry for entry in effective.entries if entry.name == name), None)
    if entry is None:
        known = ", ".join(entry.name for entry in effective.entries) or "none"
        raise InvalidArguments(
            f"there is no upstream server {name!r}", reason="unknown_server", hint=f"configured: {known}"
        )
    if not entry.enabled:
        raise InvalidArguments(f"the upstream server {name!r} is switched off", reason="server_disabled")
    if entry.server is None:
        raise InvalidArguments(entry.fault or f"the entry of {name!r} is faulty", reason="server_faulty")
    return entry.server
