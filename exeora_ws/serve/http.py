"""MCP over HTTP, both eras of the protocol at each endpoint.

`/mcp` is the account's, `/p/PROJECT/mcp` a project's, `/p/PROJECT/TOOLSET/mcp` a project's with another toolset.
"""

import logging
import os
import socket
import warnings
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import uvicorn
from anyio import to_thread
from mcp.shared.exceptions import MCPDeprecationWarning
from starlette.types import Receive, Send

from exeora_ws.serve.admission import Door, Refused
from exeora_ws.serve.endpoint import Asgi, HttpEndpoint
from exeora_ws.serve.hosts import choose_hosts
from exeora_ws.serve.lifetime import Signals, end_before_leaving, end_upstreams, look_after, prepare_for_long
from exeora_ws.serve.listening import HurriedProtocol, QuietServer, listen, url_of
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.manual import Manual
from exeora_ws.serve.options import HttpEvent, HttpOptions
from exeora_ws.serve.running import announce_server
from exeora_ws.serve.sessions import HandshakeSession, Sessions
from exeora_ws.tools.core import CallMaker, Core, Tokens

log = logging.getLogger("exeora")

_WATCH_SECONDS = 0.5
_KEEP_ALIVE_SECONDS = 30
_DRAIN_SECONDS = 1


def serve_http(core: Core, book: Tokens, options: HttpOptions) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP; then answer what is in flight, end all sessions, and return within 5 s.

    Call it in the main thread.

    Args:
        core: what is served.
        book: who may come in.
        options: how.

    Raises:
        InvalidArguments: a host that is not loopback, without a proxy that is.
        ToolFailed: reason `port_taken`, `cannot_listen`.
    """
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    keep_log(core.places)
    hosts = choose_hosts(options.host, behind_proxy=options.behind_proxy, allowed=options.allowed_hosts)
    with listen(options.host, options.port) as listener:
        url = url_of(listener, options.host)
        site = Site(core, book, hosts, options)
        with announce_server(core.places, face="http", url=url):
            anyio.run(end_before_leaving, partial(site.serve, listener, url), core)
    options.on_event(HttpEvent("stopped"))
    if not site.all_ended:
        # A call does not end although it was told to: its thread would keep the process.
        logging.shutdown()
        os._exit(1)


class Site:
    """The server: its door, its endpoints, its sessions."""

    def __init__(self, core: Core, book: Tokens, hosts: frozenset[str], options: HttpOptions) -> None:
        self._core = core
        self._book = book
        self._options = options
        self._sessions = Sessions(core.close_session)
        toolsets = options.toolsets
        self._door = Door(book, core.inventory, hosts, behind_proxy=options.behind_proxy, toolsets=frozenset(toolsets))
        offered: list[tuple[str | None, CallMaker]] = [(None, options.calls or core.calls), *toolsets.items()]
        self._endpoints = {
            name: HttpEndpoint(
                calls, Manual() if name else options.manual, self._sessions, self._tell, options.capacity
            )
            for name, calls in offered
        }
        """By toolset; None for the endpoints that name none."""

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        return all(endpoint.all_ended for endpoint in self._endpoints.values())

    async def serve(self, listener: socket.socket, url: str, signals: Signals) -> None:
        """Serve until a signal comes."""
        server = QuietServer(
            uvicorn.Config(
                self,
                http=HurriedProtocol,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=self._options.capacity.connections,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_DRAIN_SECONDS,
            )
        )
        async with AsyncExitStack() as opened:
            for endpoint in self._endpoints.values():
                await opened.enter_async_context(endpoint.open(self._core))
            beside = await opened.enter_async_context(anyio.create_task_group())
            beside.start_soon(self._watch)
            beside.start_soon(self._stop_on_signal, server, signals)
            self._tell("ready", **self._describe(url))
            beside.start_soon(prepare_for_long, self._core)
            await server.serve(sockets=[listener])
            beside.cancel_scope.cancel()

    def _describe(self, url: str) -> dict[str, Any]:
        slugs = [project.slug for project in self._core.inventory.list_projects()]
        return {
            "url": url,
            "account": f"{url}/mcp",
            "projects": [{"slug": slug, "url": f"{url}/p/{slug}/mcp"} for slug in slugs],
            "toolsets": [
                {"slug": slug, "toolset": name, "url": f"{url}/p/{slug}/{name}/mcp"}
                for slug in slugs
                for name in self._options.toolsets
            ],
        }

    async def __call__(self, asgi: Asgi, receive: Receive, send: Send) -> None:
        """Take one request (ASGI)."""
        try:
            admitted = await self._door.admit(asgi)
        except Refused as refused:
            self._tell("refused", status=refused.status)
            await refused.respond()(asgi, receive, send)
            return
        await self._endpoints[admitted.toolset].handle(admitted, asgi, receive, send)

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
        await self._endpoints[session.admitted.toolset].end_session(session)

    async def _stop_on_signal(self, server: QuietServer, signals: Signals) -> None:
        async for _ in signals:
            if server.should_exit:
                server.force_exit = True
                continue
            self._tell("stopping")
            await self._stop(server)

    async def _stop(self, server: QuietServer) -> None:
        """Have calls answered and processes ended, all at once since each takes time; then the sessions; then leave."""
        async with anyio.create_task_group() as all_at_once:
            for endpoint in self._endpoints.values():
                all_at_once.start_soon(endpoint.stop)
            all_at_once.start_soon(self._sessions.end_work)
            all_at_once.start_soon(end_upstreams, self._core)
        server.should_exit = True
        async with anyio.create_task_group() as ending:
            for session in list(self._sessions.shaken.values()):
                ending.start_soon(self._end_session, session)
        await self._sessions.end_unspoken()

    def _tell(self, kind: str, **facts: Any) -> None:
        self._options.on_event(HttpEvent(kind, facts))
