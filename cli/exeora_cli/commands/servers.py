"""serve: MCP over HTTP."""

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from exeora_cli import answer
from exeora_cli.group import Group
from exeora_cli.parameters import AllowedHosts, BehindProxy
from exeora_cli.serving import Announcer
from exeora_cli.session import Session, session_of

if TYPE_CHECKING:
    from exeora_ws.serve.options import HttpEvent, HttpOptions
    from exeora_ws.workspaces.place import Project

group = Group("Agents")

_PORT = 7373
_LAST_PORT = 65_535
_DESK_SECONDS = 1.0


@group.command(
    "serve",
    """
    exeora serve
    exeora serve --port 0 --json
    exeora serve --toolset engine --toolset agentexec
    exeora serve --host 0.0.0.0 --behind-proxy --allowed-host exeora.example.com
    """,
    (
        "One object a line for each event, until it ends: `event` and what belongs to it. `ready`: `url`, `account`, "
        "`projects[{slug, url}]`, `toolsets[{slug, toolset, url}]`, `endpoint` (the one in `clients`), "
        "`token{state, id?, name?, secret?}` (`created` with its secret, once; `exists`; `none` that is valid), "
        "`clients{claudeCode, vscode, cursor}`. "
        "`session_opened`: `session`, `token`; `session_closed`: `session`; `refused`: `status`; `approval_asked`: "
        "`id`, `project`, `workspace`, `tool`, `client`, `expires`; `approval_closed`: `id`, `status`, `way`; "
        "`warning`: `message`; `events_lost`: `count`; `stopping`; `stopped`."
    ),
)
def serve(
    ctx: typer.Context,
    port: Annotated[
        int, typer.Option("--port", min=0, max=_LAST_PORT, help="Port to listen on; 0 takes a free one.")
    ] = _PORT,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; only loopback without --behind-proxy.")
    ] = "127.0.0.1",
    behind_proxy: BehindProxy = False,
    allowed_host: AllowedHosts = None,
    toolset: Annotated[
        list[str] | None,
        typer.Option(
            "--toolset",
            metavar="NAME",
            help="Serve this toolset too, at /p/PROJECT/NAME/mcp: workspaces, agentexec, engine or sandbox. May be "
            "given several times.",
        ),
    ] = None,
) -> None:
    """Serve MCP over HTTP until it is told to end: /mcp for all projects, /p/PROJECT/mcp for one.

    Clients send a token. The first start makes one and shows it once; exeora token create makes others.
    While it runs at a terminal it asks there what a policy wants confirmed.
    """
    session = session_of(ctx)
    session.refuse_workspace("serve")
    project = _find_own_project(session)
    from exeora_ws.app import open_calls
    from exeora_ws.serve.options import HttpOptions

    _Serving(session, project).run(
        HttpOptions(
            host=host,
            port=port,
            behind_proxy=behind_proxy,
            allowed_hosts=tuple(allowed_host or ()),
            toolsets={name: open_calls(session.app, [name]) for name in toolset or ()},
        )
    )


def _find_own_project(session: Session) -> "Project | None":
    """The project whose endpoint the ready lines name; None where none is around, and the account's is named."""
    if session.options.project is None and not session.app.inventory.is_in_repository(session.folder):
        return session.find_project()
    return session.require_project()


class _Serving:
    """One run of the server, as its person sees it."""

    def __init__(self, session: Session, project: "Project | None") -> None:
        from exeora_ws.cancellation import Cancellation

        self._app = session.app
        self._json = session.options.json
        self._project = project
        self._stopping = Cancellation()

    def run(self, options: "HttpOptions") -> None:
        """Serve until told to end.

        Raises:
            ExeoraError: it cannot serve.
            ReaderGone: nobody read any more what it had to tell.
        """
        from exeora_ws.serve.http import serve_http
        from exeora_ws.serve.tokens import TokenBook

        from exeora_cli.desk import Desk

        book = TokenBook(self._app.places)
        announcer = Announcer(
            json=self._json,
            public=options.public_url,
            project=None if self._project is None else self._project.slug,
            book=lambda: book,
        )
        teller = announcer.teller
        self._app.upstreams.report_to(lambda line: teller.tell("warning", {"message": line}))
        desk = Desk(self._app, teller.tell, teller.turn, may_ask=not self._json)
        attending = threading.Thread(target=desk.attend, args=(self._stopping,), name="desk", daemon=True)
        attending.start()

        def take(event: "HttpEvent") -> None:
            if event.kind == "stopping":
                self._stopping.cancel()
            announcer.take(event)

        try:
            serve_http(self._app, book, replace(options, on_event=take))
        finally:
            self._stopping.cancel()
            attending.join(_DESK_SECONDS)
            teller.close()
        if teller.reader_gone:
            raise answer.ReaderGone
