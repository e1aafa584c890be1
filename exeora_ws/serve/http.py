"""MCP over HTTP: the account's endpoint `/mcp`, each project's `/p/PROJECT/mcp`; both eras of the protocol on each."""

import logging
import os
import socket
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import uvicorn
from anyio import to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPDeprecationWarning
from starlette.types import Message, Receive, Send

from exeora_ws.app import App
from exeora_ws.limits import MESSAGE_BYTES
from exeora_ws.serve.admission import Admitted, Door, Refused
from exeora_ws.serve.conversation import Context, Conversation, Visitor, connection_of
from exeora_ws.serve.hosts import choose_hosts
from exeora_ws.serve.lifetime import Signals, end_before_leaving, look_after, prepare_for_long
from exeora_ws.serve.listening import HurriedProtocol, Patience, listen, url_of
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.options import HttpEvent, HttpOptions
from exeora_ws.serve.results import HTTP_WIRE_BYTES
from exeora_ws.serve.running import announce_server
from exeora_ws.serve.sessions import IDLE_SECONDS, HandshakeSession, Sessions
from exeora_ws.serve.tokens import TokenBook
from exeora_ws.tools.call import Face

log = logging.getLogger("exeora")

_WATCH_SECONDS = 0.5
_CONNECTIONS = 512
_SESSIONS = 256
_KEEP_ALIVE_SECONDS = 30
_DRAIN_SECONDS = 1
_KEY = "exeora"

Asgi = MutableMapping[str, Any]


def serve_http(app: App, options: HttpOptions) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP; then answer what is in flight, end all sessions, and return within 5 s.

    Call it in the main thread.

    Raises:
        InvalidArguments: a host that is not loopback, without a proxy that is.
        ToolFailed: reason `port_taken`, `cannot_listen`; the database cannot be used.
    """
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    keep_log(app.places)
    hosts = choose_hosts(options.host, behind_proxy=options.behind_proxy, allowed=options.allowed_hosts)
    book = TokenBook(app.places)
    with listen(options.host, options.port) as listener:
        url = url_of(listener, options.host)
        site = Site(app, book, hosts, options)
        with announce_server(app.places, face="http", url=url):
            anyio.run(end_before_leaving, partial(site.serve, listener, url), app)
    options.on_event(HttpEvent("stopped"))
    if not site.all_ended:
        # A call does not end although it was told to: its thread would keep the process.
        logging.shutdown()
        os._exit(1)


class Site:
    """The server: one conversation, its door, its sessions."""

    def __init__(self, app: App, book: TokenBook, hosts: frozenset[str], options: HttpOptions) -> None:
        self._app = app
        self._book = book
        self._options = options
        self._sessions = Sessions(app.close_session)
        self._door = Door(book, app.services, hosts, behind_proxy=options.behind_proxy)
        self._conversation = Conversation(
            options.calls or app.calls,
            self._visitor_of,
            manual=options.manual,
            wire_bytes=HTTP_WIRE_BYTES,
            opened=self._opened,
        )
        self._manager = StreamableHTTPSessionManager(
            self._conversation.server,
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=MESSAGE_BYTES,
            max_sessions=_SESSIONS,
        )

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        return self._conversation.all_ended

    async def serve(self, listener: socket.socket, url: str, signals: Signals) -> None:
        """Serve until a signal comes."""
        server = _Server(
            uvicorn.Config(
                self,
                http=HurriedProtocol,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=_CONNECTIONS,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_DRAIN_SECONDS,
            )
        )
        forget = self._app.news.subscribe(self._conversation.notify_tools_changed)
        async with self._manager.run(), anyio.create_task_group() as beside:
            beside.start_soon(self._conversation.announce)
            beside.start_soon(self._watch)
            beside.start_soon(self._stop_on_signal, server, signals)
            self._tell("ready", **self._describe(url))
            beside.start_soon(prepare_for_long, self._app)
            await server.serve(sockets=[listener])
            beside.cancel_scope.cancel()
        forget()

    def _describe(self, url: str) -> dict[str, Any]:
        slugs = [project.slug for project in self._app.inventory.list_projects()]
        return {
            "url": url,
            "account": f"{url}/mcp",
            "projects": [{"slug": slug, "url": f"{url}/p/{slug}/mcp"} for slug in slugs],
        }

    async def __call__(self, asgi: Asgi, receive: Receive, send: Send) -> None:
        """Take one request (ASGI)."""
        try:
            admitted = await self._door.admit(asgi)
        except Refused as refused:
            self._tell("refused", status=refused.status)
            await refused.respond()(asgi, receive, send)
            return
        gone = anyio.Event()
        asgi[_KEY] = (admitted, gone)
        asgi["user"] = _user_of(admitted)
        answer = _Answer(send)
        with self._sessions.request(admitted) as scope:
            await self._manager.handle_request(asgi, Patience(receive, gone), answer)
        if scope.cancelled_caught and not answer.begun:
            await Refused(401, None, "the token of this request is not valid any more").respond()(asgi, receive, send)

    def _visitor_of(self, ctx: Context) -> Visitor:
        admitted, gone = _came_by(ctx)
        identity = connection_of(ctx).session_id
        known = self._sessions.shaken.get(identity) if identity is not None else None
        name = known.name if known is not None else self._sessions.name_unspoken(admitted)
        return Visitor(Face.HTTP, admitted.scope, name, gone)

    def _opened(self, ctx: Context) -> None:
        """Keep the session that a handshake has opened, until the library ends it."""
        admitted, _ = _came_by(ctx)
        connection = connection_of(ctx)
        identity = connection.session_id
        if identity is not None and self._sessions.open(identity, admitted):
            connection.exit_stack.push_async_callback(self._closed, identity)
            self._tell("session_opened", session=identity, token=admitted.token.name)

    async def _closed(self, identity: str) -> None:
        await self._sessions.end(identity)
        self._tell("session_closed", session=identity)

    async def _watch(self) -> None:
        """End what a token has open as soon as it is revoked or over, and what nobody uses."""
        while True:
            await anyio.sleep(_WATCH_SECONDS)
            await look_after(self._end_what_is_over, "looking after sessions")

    async def _end_what_is_over(self) -> None:
        await self._sessions.end_idle()
        tokens = self._sessions.tokens()
        if tokens:
            valid = await to_thread.run_sync(self._book.filter_valid, tokens)
            for token in tokens - valid:
                await self._end_token(token)

    async def _end_token(self, token: str) -> None:
        for session in self._sessions.cut(token):
            await self._end_session(session)
        await self._sessions.end_unspoken(token)

    async def _end_session(self, session: HandshakeSession) -> None:
        """End a session as its client would."""
        asgi = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(b"mcp-session-id", session.identity.encode())],
            "user": _user_of(session.admitted),
        }
        await self._manager.handle_request(asgi, _no_body, _to_nobody)
        await self._sessions.end(session.identity)

    async def _stop_on_signal(self, server: "_Server", signals: Signals) -> None:
        async for _ in signals:
            if server.should_exit:
                server.force_exit = True
                continue
            self._tell("stopping")
            await self._stop(server)

    async def _stop(self, server: "_Server") -> None:
        """Have calls answered and processes ended, both at once since both take time; then the sessions; then leave."""
        async with anyio.create_task_group() as both:
            both.start_soon(self._conversation.stop)
            both.start_soon(self._sessions.end_work)
        server.should_exit = True
        async with anyio.create_task_group() as ending:
            for session in list(self._sessions.shaken.values()):
                ending.start_soon(self._end_session, session)
        await self._sessions.end_unspoken()

    def _tell(self, kind: str, **facts: Any) -> None:
        self._options.on_event(HttpEvent(kind, facts))


class _Answer:
    """`send` that knows whether anything was sent (ASGI)."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        self.begun = True
        await self._send(message)


class _Server(uvicorn.Server):
    """Leaves the signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _came_by(ctx: Context) -> tuple[Admitted, anyio.Event]:
    """Give what the door noted on the request that a message came with."""
    if ctx.request is None:
        raise AssertionError("a message that came with no request")
    found: tuple[Admitted, anyio.Event] = ctx.request.scope[_KEY]
    return found


def _user_of(admitted: Admitted) -> AuthenticatedUser:
    """Give whom the library takes the sender for. It refuses a session to all but who opened it.

    The endpoint is part of who that is: a session that was opened at one is not known at another.
    """
    token = AccessToken(token="", client_id=admitted.token.id, scopes=[], subject=admitted.endpoint)
    return AuthenticatedUser(token)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _to_nobody(_message: Message) -> None:
    pass
