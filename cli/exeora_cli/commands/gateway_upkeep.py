"""gateway add, nats-config, audit: what belongs to a fleet's gateways beside serving."""

from typing import Annotated

import typer
from exeora_ws.fleet import require_extra

from exeora_cli import answer
from exeora_cli.commands.gateway import group as gateway_group
from exeora_cli.fleet_state import CredentialFile, reach_state
from exeora_cli.plain import show_text
from exeora_cli.session import Shown, session_of

group = gateway_group
"""The commands here are of the same prefix."""


@group.command(
    "add",
    """
    exeora gateway add west --url nats://10.0.0.5:4222 > west.exf
    """,
    "`credential`, one line, which is shown this once; `name` and `urls`.",
)
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call it.")],
    url: Annotated[
        list[str] | None,
        typer.Option("--url", metavar="URL", help="Where it reaches the NATS servers. May be given repeatedly."),
    ] = None,
) -> None:
    """Make the credential of a further gateway, which needs none of the keys then: exeora gateway --credential FILE.

    It reaches every machine. Keep it as you keep the keys.
    """
    session = session_of(ctx)
    session.refuse_globals("gateway add")
    from exeora_ws.fleet.home import FleetHome
    from exeora_ws.settings import find_places

    require_extra()
    home = FleetHome(find_places())
    urls = home.find_public_urls(tuple(url or ()))
    made = home.make_gateway(home.require_keys(), name, urls)
    result = {"name": name, "urls": list(urls), "credential": made.to_text()}
    session.show(result, lambda shown: Shown([shown["credential"]], [f"gateway {show_text(name)} connects with this"]))


@group.command(
    "nats-config",
    """
    exeora gateway nats-config > fleet.conf
    """,
    "The configuration itself, which is JSON; without `schema`.",
)
def nats_config(ctx: typer.Context) -> None:
    """Print what a nats-server of your own needs to be one of the fleet's: whom it trusts, and its accounts.

    Put it into the server's configuration with `include`, on every server of a cluster, beside JetStream and a resolver
    with a folder. It holds no secret.
    """
    session_of(ctx).refuse_globals("gateway nats-config")
    from exeora_ws.fleet.home import FleetHome
    from exeora_ws.fleet.server_config import describe_trust, write_config
    from exeora_ws.settings import find_places

    require_extra()
    keys = FleetHome(find_places()).ensure_keys()
    answer.print_bytes(write_config(describe_trust(keys)).encode())


@group.command(
    "audit",
    """
    exeora gateway audit
    exeora gateway audit --limit 20 --tool run_command
    """,
    (
        "`entries[{id, time, client, face, project, workspace, tool, outcome, durationMs, gateway}]`, oldest first, as "
        "`logs` has them; `outcome` may also be `INPUT_REQUIRED`, for a call that came back with a question."
    ),
)
def audit(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many at most.")] = 100,
    tool: Annotated[str | None, typer.Option("--tool", metavar="TOOL", help="Only calls of this tool.")] = None,
    slug: Annotated[
        str | None, typer.Option("--in", metavar="PROJECT", help="Only calls to this project, by its slug.")
    ] = None,
    credential: CredentialFile = None,
) -> None:
    """Show the record of calls that came through gateways, newest last. Each machine keeps one of its own: exeora logs.

    It holds no arguments, no output and no file names, and is kept for 90 days or a gigabyte.
    """
    session = session_of(ctx)
    session.refuse_globals("gateway audit")
    from exeora_ws.fleet.audit import read_audit

    from exeora_cli import render_policy
    from exeora_cli.times import write_time

    with reach_state(credential) as lines:
        rows = read_audit(lines.state, limit=limit, project=slug, tool=tool)
    entries = [
        {
            "id": row.call,
            "time": write_time(row.time_ms / 1000),
            "client": row.client,
            "face": row.face,
            "project": row.project,
            "workspace": row.workspace,
            "tool": row.tool,
            "outcome": row.outcome,
            "durationMs": row.duration_ms,
            "gateway": row.gateway,
        }
        for row in rows
    ]
    session.show({"entries": entries}, render_policy.show_log)
