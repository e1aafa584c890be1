"""agentexec over HTTP on this machine alone: a loopback address, and a token that clients must send."""

import hmac
import logging
import os
import signal
import socket
from collections.abc import Callable
from functools import partial

import anyio
import uvicorn
from starlette.datastructures import Headers
from starlette.types import Receive, Send

from exeora_ws.app import App
from exeora_ws.errors import InvalidArguments
from exeora_ws.names import ProjectId
from exeora_ws.serve.admission import Refused
from exeora_ws.serve.endpoint import Asgi
from exeora_ws.serve.failures import FailureLimit
from exeora_ws.serve.hosts import LOOPBACK, is_host_allowed, is_loopback, is_origin_allowed
from exeora_ws.serve.listening import HurriedProtocol, QuietServer, listen, url_of
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.mounted import MountedExec
from exeora_ws.serve.running import announce_server
from exeora_ws.tools.call import Calls

TOKEN_VARIABLE = "AGENTEXEC_TOKEN"  # noqa: S105  the name of it
_PATH = "/mcp"
_BEARER = "bearer "
_LAST_PORT = 65_535


class _Guarded:
    """The application behind a token, for loopback."""

    def __init__(self, inner: MountedExec, token: str) -> None:
        self._inner = inner
        self._token = token.encode()
        self._failures = FailureLimit()

    async def __call__(self, asgi: Asgi, receive: Receive, send: Send) -> None:
        try:
            self._judge(asgi)
        except Refused as refused:
            await refused.respond()(asgi, receive, send)
            return
        await self._inner(asgi, receive, send)

    def _judge(self, asgi: Asgi) -> None:
        headers = Headers(scope=asgi)
        if not is_host_allowed(headers.get("host"), LOOPBACK | _own_host(asgi)):
            raise Refused(421, None, "this server does not answer to that Host")
        if not is_origin_allowed(headers.get("origin"), LOOPBACK):
            raise Refused(403, None, "this server takes nothing from that Origin")
        if asgi["path"].rstrip("/") != _PATH:
            raise Refused(404, None, f"there is nothing here: MCP is at {_PATH}")
        given = headers.get("authorization", "")
        sent = given[len(_BEARER) :].strip() if given.lower().startswith(_BEARER) else ""
        if not hmac.compare_digest(sent.encode(), self._token):
            raise self._refuse_stranger(asgi)

    def _refuse_stranger(self, asgi: Asgi) -> Refused:
        client = asgi.get("client")
        wait = self._failures.note_failure(str(client[0] if client else ""))
        if wait is not None:
            return Refused(429, None, "too many attempts with no valid token", {"Retry-After": str(int(wait) + 1)})
        message = f"the token is needed: send what {TOKEN_VARIABLE} holds, as Authorization: Bearer …"
        return Refused(401, None, message, {"WWW-Authenticate": 'Bearer realm="agentexec"'})


def _own_host(asgi: Asgi) -> frozenset[str]:
    """The address that was connected to, which may be any of 127.0.0.0/8."""
    server = asgi.get("server")
    host = str(server[0]) if server else ""
    return frozenset((host,)) if is_loopback(host) else frozenset()


def parse_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT.

    Raises:
        InvalidArguments: reason `wrong_value`; `host_not_loopback` for an address that others could reach.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise InvalidArguments("http: expected an address and a port, as 127.0.0.1:8123", reason="wrong_value")
    if not is_loopback(host):
        raise InvalidArguments(
            f"http: {host!r} is not a loopback address, and this server speaks no TLS",
            reason="host_not_loopback",
            hint="mount exeora_ws.serve.agentexec(…) behind a server that does",
        )
    return host, int(port)


def require_token() -> str:
    """Give the token that clients must send.

    Raises:
        InvalidArguments: reason `missing_token`.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise InvalidArguments(f"{TOKEN_VARIABLE}: set it to the token that clients must send", reason="missing_token")
    return token


def serve_mounted(app: App, calls: Calls, project: ProjectId, address: str, on_ready: Callable[[str], None]) -> None:
    """Serve agentexec over HTTP until SIGTERM, SIGINT or SIGHUP; then end what runs, and return.

    Args:
        app: the core.
        calls: the way of a call, as `open_agentexec` gave it.
        project: likewise.
        address: where to listen, loopback only; port 0 takes a free one.
        on_ready: told the URL, once it answers.

    Raises:
        InvalidArguments: as `parse_address` and `require_token`.
        ToolFailed: it cannot listen there.
    """
    host, port = parse_address(address)
    token = require_token()
    keep_log(app.places)
    with listen(host, port) as listener:
        url = url_of(listener, host) + _PATH
        with announce_server(app.places, face="http", url=url):
            ended = anyio.run(
                partial(_serve, MountedExec(app, calls, project), token, listener, partial(on_ready, url))
            )
    if not ended:
        # A call does not end although it was told to: its thread would keep the process.
        logging.shutdown()
        os._exit(1)


async def _serve(mounted: MountedExec, token: str, listener: socket.socket, on_ready: Callable[[], None]) -> bool:
    config = uvicorn.Config(
        _Guarded(mounted, token), http=HurriedProtocol, lifespan="off", ws="none", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = QuietServer(config)

    async def stop_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async for _ in signals:
                await mounted.aclose()
                server.should_exit = True

    async with anyio.create_task_group() as beside:
        beside.start_soon(stop_on_signal)
        on_ready()
        await server.serve(sockets=[listener])
        beside.cancel_scope.cancel()
    return mounted.all_ended
