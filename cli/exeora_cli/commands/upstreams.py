"""upstream list, names, check: the MCP servers whose tools are published through ours (docs/upstreams.md)."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from exeora_ws.errors import ToolFailed

from exeora_cli import answer
from exeora_cli.completion import complete_upstream
from exeora_cli.direct import run_direct
from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Session, Shown, session_of

if TYPE_CHECKING:
    from exeora_ws.cancellation import Cancellation

group = Group("Set-up", "upstream", "The MCP servers whose tools are published through this one (mcp.json).")

_WAIT_SECONDS = 180
_LAST_LINES = 20

T = TypeVar("T")


@group.command(
    "list",
    """
    exeora upstream list
    exeora upstream list --json
    """,
    (
        "`servers[{name, source, state, kind, target, fault}]` (`source`: `user` or `project`; `state`: `on`, `off` or "
        "`faulty`; `kind`: `stdio` or `http`; the last three are absent where they do not apply), `warnings[…]`."
    ),
)
def list_(ctx: typer.Context) -> None:
    """List the servers as configured. Nothing is started; outside a project, your own."""
    session = session_of(ctx)
    session.refuse_workspace("upstream list")
    project = session.find_project()
    session.show(list_configured(session, None if project is None else project.root), _show_list)


def list_configured(session: Session, root: Path | None) -> dict[str, Any]:
    """Give the servers of a project as configured, or the user's own without one.

    Raises:
        ToolFailed: reason `mcp_config_invalid`.
    """
    from exeora_ws.upstream.reports import list_servers

    found = list_servers(session.app.places.mcp_file, root, os.environ)
    return {"servers": found.servers, "warnings": list(found.warnings)}


@group.command(
    "names",
    """
    exeora upstream names
    exeora upstream names --wait 10 --json
    """,
    (
        "`names[{name, server, tool, readOnly}]`, `failed[{name, source, state, kind, target, failure, …}]` (servers "
        "whose tools are missing), `warnings[…]`."
    ),
)
def names(
    ctx: typer.Context,
    wait: Annotated[
        int, typer.Option("--wait", min=0, metavar="SECONDS", help="How long servers may take to start.")
    ] = _WAIT_SECONDS,
) -> None:
    """Start the project's servers and show under which name each of their tools is published."""
    session = session_of(ctx)
    session.refuse_workspace("upstream names")
    project = session.require_project()
    from exeora_ws.upstream.reports import list_names

    found = _run(
        session,
        "starting the upstream servers",
        lambda cancellation: list_names(session.app.upstreams(), project, seconds=wait, cancellation=cancellation),
    )
    session.show({**asdict(found), "warnings": list(found.warnings)}, _show_names)


@group.command(
    "check",
    """
    exeora upstream check tickets
    exeora --project app upstream check tickets --json
    """,
    (
        "`server`, `milliseconds`, `protocolVersion`, `serverInfo`, `tools[{name, tool, readOnly}]`, `warnings[…]`. A "
        "server that does not start is an error; its `data` has `server`, `phase` and, where there are any, `exitCode` "
        "and `stderr`."
    ),
)
def check(
    ctx: typer.Context,
    server: Annotated[
        str, typer.Argument(metavar="NAME", help="Its name in mcp.json.", autocompletion=complete_upstream)
    ],
) -> None:
    """Start one server in the project's root, list its tools, and end it."""
    session = session_of(ctx)
    session.refuse_workspace("upstream check")
    root = session.require_project().root
    from exeora_ws.upstream.reports import check_server

    places, budget = session.app.places, session.app.services.settings().name_budget
    found = _run(
        session,
        f"starting {show_text(server)}",
        lambda cancellation: check_server(
            server,
            places.mcp_file,
            root,
            session.app.upstreams.surroundings(),
            os.environ,
            budget=budget,
            cancellation=cancellation,
        ),
    )
    if found.error is not None:
        raise _tell_failure(session, found.error)
    facts = {
        "server": found.server,
        "milliseconds": found.milliseconds,
        "protocolVersion": found.protocol_version,
        "serverInfo": found.server_info,
        "tools": found.tools,
        "warnings": list(found.warnings),
    }
    session.show(facts, _show_check)


def _run(session: Session, what: str, work: "Callable[[Cancellation], T]") -> T:
    """Do what starts servers; whatever comes of it, none of them is left."""
    try:
        return run_direct(session, what, work)
    finally:
        session.app.close()


def _tell_failure(session: Session, error: Mapping[str, Any]) -> ToolFailed:
    """Show a person what the server said last; gives the error to end with."""
    said = str(error.get("data", {}).get("stderr", "")).splitlines()
    if said and not session.options.json:
        answer.narrate([f"  {line}" for line in said[-_LAST_LINES:]])
    return ToolFailed(error["message"], reason=error.get("reason"), data=error.get("data"))


def _show_list(result: dict[str, Any]) -> Shown:
    faults = {server["fault"] for server in result["servers"] if "fault" in server}
    notes = [warning for warning in result["warnings"] if warning not in faults]
    if not result["servers"]:
        notes.append("no upstream server is configured: docs/upstreams.md says how mcp.json looks")
    return Shown(align([_server_row(server) for server in result["servers"]]), notes)


def _server_row(server: Mapping[str, Any]) -> tuple[str, ...]:
    remark = server.get("fault") or server.get("target", "")
    return show_text(server["name"]), server["state"], server["source"], server.get("kind", "-"), show_text(remark)


def _show_names(result: dict[str, Any]) -> Shown:
    failed = [_word_failed(server) for server in result["failed"]]
    return Shown(_tool_lines(result["names"]), [*failed, *result["warnings"]])


def _word_failed(server: Mapping[str, Any]) -> str:
    if "failure" in server:
        return str(server["failure"]["message"])
    return str(server.get("fault") or f"server {server['name']!r} has not answered yet: its tools are missing here")


def _show_check(result: dict[str, Any]) -> Shown:
    about = " ".join(str(result["serverInfo"].get(key, "")) for key in ("name", "version")).strip()
    told = f"{result['server']}: {about or 'it'} answered in {result['milliseconds']} ms, {len(result['tools'])} tools"
    return Shown(_tool_lines(result["tools"]), [f"{told}, protocol {result['protocolVersion']}", *result["warnings"]])


def _tool_lines(tools: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (show_text(t["name"]), *([show_text(t["server"])] if "server" in t else []), show_text(t["tool"]), _word(t))
        for t in tools
    ]
    return align(rows)


def _word(tool: Mapping[str, Any]) -> str:
    return "reads" if tool["readOnly"] else "changes"
