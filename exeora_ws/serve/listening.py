"""The socket to listen on, and how long a request is waited for."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import uvicorn
from starlette.types import Message, Receive
from uvicorn.protocols.http.h11_impl import H11Protocol

from exeora_ws.errors import ToolFailed

_BODY_SECONDS = 30.0
_HEAD_SECONDS = 15.0


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """Listen; port 0 takes a free one.

    Raises:
        ToolFailed: reason `port_taken`, `cannot_listen`.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        raise ToolFailed(
            f"port {port} is taken" if taken else f"cannot listen on {host} port {port}: {error.strerror}",
            reason="port_taken" if taken else "cannot_listen",
            hint="exeora status shows running servers; --port takes another port",
        ) from error
    with listener:
        # Accepted sockets inherit it. asyncio would not set it here: it asks for a protocol number that this socket has
        # not got, and an answer in two writes would wait 40 ms for the client's acknowledgement of the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def url_of(listener: socket.socket, host: str) -> str:
    """Give where a listener is reached, without a path."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


class HurriedProtocol(H11Protocol):
    """Closes a connection on which no whole request head has come in time; uvicorn would keep it for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._waiting: asyncio.TimerHandle | None = None
        self._note()

    def data_received(self, data: bytes) -> None:
        """Take what came, and wait on for a head that is not whole yet."""
        super().data_received(data)
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _note(self) -> None:
        in_request = self.cycle is not None and not self.cycle.response_complete
        if in_request:
            self._stop_waiting()
        elif self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class QuietServer(uvicorn.Server):
    """Leaves the signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class Patience:
    """`receive` with an end to patience: a body must have come within `_BODY_SECONDS`; notes when the client goes."""

    def __init__(self, receive: Receive, gone: anyio.Event) -> None:
        self._receive = receive
        self._gone = gone
        self._deadline: float | None = anyio.current_time() + _BODY_SECONDS

    async def __call__(self) -> Message:
        """Give the next message of the request (ASGI)."""
        message: Message = {"type": "http.disconnect"}
        # A body that does not come is a client that has gone.
        with anyio.move_on_after(None if self._deadline is None else self._deadline - anyio.current_time()):
            message = await self._receive()
        if message["type"] == "http.disconnect":
            self._gone.set()
        elif not message.get("more_body", False):
            self._deadline = None
        return message
