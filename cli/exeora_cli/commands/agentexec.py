"""agentexec: a terminal and files for an agent, in one folder."""

from pathlib import Path
from typing import Annotated

import typer

from exeora_cli import answer
from exeora_cli.group import Group
from exeora_cli.session import session_of

group = Group("Agents")


@group.command(
    "agentexec",
    """
    exeora agentexec --workspace /path/to/folder
    exeora agentexec --workspace . --level terminal
    AGENTEXEC_TOKEN=… exeora agentexec --workspace . --level files --http 127.0.0.1:8123
    """,
    "None over stdio: stdout belongs to the protocol. With --http, `url` once it answers.",
)
def agentexec(
    ctx: typer.Context,
    workspace: Annotated[Path, typer.Option("--workspace", metavar="PATH", help="The folder that its tools act in.")],
    level: Annotated[
        str, typer.Option("--level", help="What it offers: read, files or terminal, each with the one before.")
    ] = "read",
    http: Annotated[
        str | None,
        typer.Option(
            "--http", metavar="HOST:PORT", help="Serve over HTTP at /mcp instead; loopback only.", show_default=False
        ),
    ] = None,
) -> None:
    """Serve a terminal and files in one folder to an agent, over stdio or HTTP.

    It acts with your rights: what --level terminal runs can reach anything you can. Over HTTP, clients must send the
    token that the variable AGENTEXEC_TOKEN holds. A folder that is no project yet becomes one.
    """
    session = session_of(ctx)
    session.refuse_globals("agentexec")
    if http is not None:
        from exeora_ws.serve.loopback import parse_address, require_token

        parse_address(http)
        require_token()
    from exeora_ws.app import open_agentexec

    calls, project = open_agentexec(session.app, workspace, level)
    if http is None:
        from exeora_ws.serve.manual import Manual
        from exeora_ws.serve.stdio import serve_stdio
        from exeora_ws.tools.call import Scope

        serve_stdio(session.app, Scope(bound=project), calls=calls, manual=Manual())
        return
    from exeora_ws.serve.loopback import serve_mounted

    def tell(url: str) -> None:
        if session.options.json:
            answer.print_document({"url": url})
        else:
            answer.print_lines([url])

    serve_mounted(session.app, calls, project, http, tell)
