"""Our side of a JSON-RPC conversation: ids, waiting, progress, cancellation. Any thread may ask; one reads.

How bytes travel is a connection's business (`transport_stdio.py`, `transport_http.py`).
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolTimeout
from exeora_ws.upstream.messages import Message, Unreadable

log = logging.getLogger("exeora")

OnProgress = Callable[[Message], None]
"""Takes the parameters of a progress notification as sent, less the token: `progress`, `total`?, `message`?"""

METHOD_NOT_FOUND = -32601


class RemoteError(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: Any, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ProtocolError(Exception):
    """The server answered with something that is no answer."""


class ConnectionLost(Exception):
    """There is no server to answer any more. `unseen` says that the request certainly did nothing."""

    def __init__(self, why: str, *, unseen: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.unseen = unseen


class Connection(Protocol):
    """Carries messages one way; the other way it calls `Peer.receive`, `Peer.fail` and `Peer.lose`."""

    def begin(self, version: str) -> None:
        """Go on in the protocol version that was agreed on."""
        ...

    def send(self, message: Message) -> None:
        """Send, without waiting for anybody. Raises `ConnectionLost`."""
        ...

    def abandon(self, request_id: int) -> None:
        """Let go of what is held for a request that nobody waits for any more."""
        ...

    def exit_code(self) -> int | None:
        """Give the exit code of a process that has ended; None where there is none."""
        ...

    def stderr_tail(self) -> bytes:
        """Give the end of its error output."""
        ...

    def close(self) -> None:
        """End it, with everything it started. May be called twice."""
        ...


class _Pending:
    def __init__(self, on_progress: OnProgress | None) -> None:
        self.on_progress = on_progress
        self.settled = threading.Event()
        self.answer: Message | None = None
        self.error: Exception | None = None


class Peer:
    """One conversation.

    Args:
        on_notification: told every notification but progress, in the reading thread; must not ask anything itself.
    """

    def __init__(self, on_notification: Callable[[str], None]) -> None:
        self._on_notification = on_notification
        self._lock = threading.Lock()
        self._pending: dict[int, _Pending] = {}
        self._last_id = 0
        self._lost: ConnectionLost | None = None
        self._connection: Connection | None = None

    def attach(self, connection: Connection) -> None:
        """Say what carries the messages, before anything is asked."""
        self._connection = connection

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        seconds: float,
        cancellation: Cancellation | None = None,
        on_progress: OnProgress | None = None,
        withdraw: bool = True,
    ) -> Message:
        """Ask, and wait for the answer; gives the raw result object.

        Args:
            method: the JSON-RPC method.
            params: its parameters, sent as they are but for a progress token.
            seconds: how long to wait; the request is withdrawn then.
            cancellation: withdraws it too.
            on_progress: asks for progress and is told it, always before the answer is given.
            withdraw: whether to tell the server that nobody waits any more (never of `initialize`).

        Raises:
            RemoteError, ProtocolError, ConnectionLost: see there.
                ToolTimeout, Cancelled: we gave up.
        """
        pending = _Pending(on_progress)
        request_id = self._register(pending)
        body = dict(params)
        if on_progress is not None:
            body["_meta"] = {**body.get("_meta", {}), "progressToken": request_id}
        forget = cancellation.on_cancel(pending.settled.set) if cancellation else _nothing
        try:
            self._send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": body})
            pending.settled.wait(seconds)
        finally:
            forget()
            with self._lock:
                self._pending.pop(request_id, None)
        if pending.error is None and pending.answer is None:
            self._give_up(request_id, cancellation, withdraw=withdraw)
            if cancellation is not None:
                cancellation.raise_if_cancelled()
            raise ToolTimeout(f"no answer within {round(seconds, 1):g} s")
        return _read_answer(pending)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server something. Raises `ConnectionLost`."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        self._send(message if params is None else {**message, "params": dict(params)})

    def receive(self, message: Message | Unreadable) -> None:
        """Take what came in: an answer, a notification, or a request of the server's own."""
        if isinstance(message, Unreadable):
            self.fail(message.id, ProtocolError("its answer cannot be read as JSON"))
        elif "method" not in message:
            self._settle(message)
        elif "id" in message:
            self._reply(message)
        elif message["method"] == "notifications/progress":
            self._report(message.get("params"))
        elif isinstance(message["method"], str):
            self._on_notification(message["method"])

    def fail(self, request_id: int, error: Exception) -> None:
        """End the wait of one request."""
        with self._lock:
            pending = self._pending.pop(request_id, None)
        if pending is not None:
            pending.error = error
            pending.settled.set()

    def lose(self, error: ConnectionLost) -> None:
        """End every wait, now and later. The first reason stays."""
        with self._lock:
            self._lost = self._lost or error
            waiting = list(self._pending)
        for request_id in waiting:
            self.fail(request_id, error)

    @property
    def lost(self) -> ConnectionLost | None:
        """Why nothing can be asked any more; None while it can."""
        return self._lost

    @property
    def waiting(self) -> bool:
        """Whether any request is not answered yet."""
        return bool(self._pending)

    def waits_for(self, request_id: int) -> bool:
        """Whether this request is not answered yet."""
        return request_id in self._pending

    def _register(self, pending: _Pending) -> int:
        with self._lock:
            if self._lost is not None:
                raise ConnectionLost(self._lost.why, unseen=True)
            self._last_id += 1
            self._pending[self._last_id] = pending
            return self._last_id

    def _send(self, message: Message) -> None:
        if self._connection is None:
            raise AssertionError("asked before attached")
        self._connection.send(message)

    def _give_up(self, request_id: int, cancellation: Cancellation | None, *, withdraw: bool) -> None:
        cancelled = cancellation is not None and cancellation.cancelled
        reason = "cancelled by the caller" if cancelled else "timed out"
        try:
            if withdraw:
                self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})
        except ConnectionLost:
            log.debug("an upstream was gone before a request could be withdrawn")
        if self._connection is not None:
            self._connection.abandon(request_id)

    def _settle(self, message: Message) -> None:
        request_id = message.get("id")
        if not isinstance(request_id, int) or isinstance(request_id, bool):
            return
        with self._lock:
            pending = self._pending.pop(request_id, None)
        if pending is not None:
            pending.answer = message
            pending.settled.set()

    def _report(self, params: Any) -> None:
        token = params.get("progressToken") if isinstance(params, dict) else None
        with self._lock:
            pending = self._pending.get(token) if isinstance(token, int) else None
        if pending is None or pending.on_progress is None:
            return
        try:
            pending.on_progress({key: value for key, value in params.items() if key != "progressToken"})
        except Exception:
            # The caller's own fault; the thread that reads for all the others goes on.
            log.exception("a progress callback failed")

    def _reply(self, message: Message) -> None:
        """Answer a server's own request: we offer nothing but `ping`."""
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": "not offered by this client"}
        try:
            self._send(answer)
        except ConnectionLost:
            log.debug("an upstream was gone before its request could be answered")


def _read_answer(pending: _Pending) -> Message:
    if pending.error is not None:
        raise pending.error
    answer = pending.answer or {}
    if "error" in answer:
        raise _read_error(answer["error"])
    result = answer.get("result")
    if not isinstance(result, dict):
        raise ProtocolError("its answer holds no result object")
    return result


def _read_error(error: Any) -> RemoteError:
    if not isinstance(error, dict):
        return RemoteError(None, "an error without description")
    message = error.get("message")
    return RemoteError(error.get("code"), message if isinstance(message, str) else "", error.get("data"))


def _nothing() -> None:
    return
