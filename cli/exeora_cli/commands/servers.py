"""serve: MCP over HTTP."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from exeora_ws.errors import ExeoraError

from exeora_cli import answer
from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Session, session_of
from exeora_cli.snippets import VARIABLE, make_snippets, show_snippets
from exeora_cli.teller import Facts, Teller

if TYPE_CHECKING:
    from exeora_ws.serve.options import HttpEvent, HttpOptions
    from exeora_ws.workspaces.place import Project

group = Group("Agents")

_PORT = 7373
_LAST_PORT = 65_535
_FIRST_NAME = "first"
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
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy that speaks TLS is in front; needs --allowed-host.")
    ] = False,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="NAME", help="A name the proxy is reached by. May be given repeatedly."),
    ] = None,
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
        self._public: str | None = None
        self._stopping = Cancellation()
        self._teller = Teller(self._show)

    def run(self, options: "HttpOptions") -> None:
        """Serve until told to end.

        Raises:
            ExeoraError: it cannot serve.
            ReaderGone: nobody read any more what it had to tell.
        """
        from exeora_ws.serve.http import serve_http
        from exeora_ws.serve.tokens import TokenBook

        from exeora_cli.desk import Desk

        self._public = f"https://{options.allowed_hosts[0]}" if options.allowed_hosts else None
        self._app.upstreams.report_to(lambda line: self._teller.tell("warning", {"message": line}))
        desk = Desk(self._app, self._teller.tell, self._teller.turn, may_ask=not self._json)
        attending = threading.Thread(target=desk.attend, args=(self._stopping,), name="desk", daemon=True)
        attending.start()
        try:
            serve_http(self._app, TokenBook(self._app.places), replace(options, on_event=self._take))
        finally:
            self._stopping.cancel()
            attending.join(_DESK_SECONDS)
            self._teller.close()
        if self._teller.reader_gone:
            raise answer.ReaderGone

    def _take(self, event: "HttpEvent") -> None:
        if event.kind == "stopping":
            self._stopping.cancel()
        self._teller.tell(event.kind, event.facts)
        if event.kind == "stopped":
            # The last chance: the process may be ended by force after this.
            self._teller.close()

    def _show(self, kind: str, facts: Facts) -> None:
        """Show one event; in the teller's thread."""
        if kind == "ready":
            facts = self._complete(facts)
        if self._json:
            answer.print_document({"event": kind, **facts})
        elif kind == "ready":
            answer.print_lines(_show_ready(facts))
        else:
            answer.narrate([_word_event(kind, facts)])

    def _complete(self, facts: Facts) -> dict[str, Any]:
        """Add the token and the clients' lines to where the server is reached."""
        base = self._public or str(facts["url"])
        urls = {"account": f"{base}/mcp"}
        urls |= {project["slug"]: f"{base}/p/{project['slug']}/mcp" for project in facts["projects"]}
        toolsets = [
            {**each, "url": f"{base}/p/{each['slug']}/{each['toolset']}/mcp"} for each in facts.get("toolsets", [])
        ]
        endpoint = urls["account"] if self._project is None else f"{base}/p/{self._project.slug}/mcp"
        token = self._find_token()
        return {
            "url": facts["url"],
            "account": urls.pop("account"),
            "projects": [{"slug": slug, "url": url} for slug, url in urls.items()],
            "toolsets": toolsets,
            "endpoint": endpoint,
            "token": token,
            "clients": make_snippets(endpoint, token.get("secret")),
        }

    def _find_token(self) -> dict[str, Any]:
        """Make the very first token, or say whether there is one."""
        from exeora_ws.serve.tokens import TokenBook

        try:
            book = TokenBook(self._app.places)
            made = book.create_first(_FIRST_NAME)
            if made is not None:
                return {"state": "created", "id": made[0].id, "name": made[0].name, "secret": made[1]}
            now = time.time()
            return {"state": "exists" if any(token.is_valid(now) for token in book.list()) else "none"}
        except ExeoraError as error:
            self._teller.tell("warning", {"message": f"the tokens cannot be looked at: {error.message}"})
            return {"state": "unknown"}


def _show_ready(facts: Facts) -> list[str]:
    rows = [("account", facts["account"]), *((project["slug"], project["url"]) for project in facts["projects"])]
    rows += [(f"{each['slug']} {each['toolset']}", each["url"]) for each in facts["toolsets"]]
    token = facts["token"]
    return [*align(rows), "", *_TOKEN_LINES[token["state"]](token), "", *show_snippets(facts["clients"])]


_TOKEN_LINES: dict[str, Callable[[Facts], list[str]]] = {
    "created": lambda token: [f"token  {token['secret']}", "       shown only now; exeora token create makes another"],
    "exists": lambda _: [f"token  made before ({VARIABLE} below stands for it); exeora token create makes another"],
    "none": lambda _: ["token  none is valid any more: exeora token create makes one"],
    "unknown": lambda _: ["token  exeora token list"],
}


def _word_event(kind: str, facts: Facts) -> str:
    words = _WORDS.get(kind)
    return kind if words is None else words.format_map({key: show_text(str(value)) for key, value in facts.items()})


_WORDS = {
    "session_opened": "session {session} opened with token {token!r}",
    "session_closed": "session {session} closed",
    "refused": "refused a request ({status})",
    "approval_asked": (
        "{tool} in workspace {workspace} of project {project} waits for a person: exeora approvals allow {id}"
    ),
    "approval_closed": "question {id}: {status}",
    "warning": "{message}",
    "events_lost": "{count} events are not shown: they came faster than they were read",
}
