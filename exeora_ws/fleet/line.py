"""One connection to NATS, for a synchronous core: an event loop in a thread of its own, and a face that waits."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any, TypeVar

from nats.aio.client import Client

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExecutorOffline, ExeoraError, Forbidden, ToolTimeout
from exeora_ws.fleet.connection import (
    CONNECT_SECONDS,
    Companion,
    Connection,
    Interest,
    LineState,
    Message,
    Take,
    Whereabouts,
)
from exeora_ws.fleet.credentials import User
from exeora_ws.fleet.translation import connection_lost
from exeora_ws.fleet.trust import SYSTEM, Trust

__all__ = ["Line", "LineState", "Message", "Subscription"]

_GRACE_SECONDS = 1.0
_PAYLOAD_BYTES = 1_048_576
"""What servers take unless told otherwise."""

T = TypeVar("T")


class Subscription:
    """Something subscribed to, until it is closed."""

    def __init__(self, line: "Line", interest: Interest) -> None:
        self._line = line
        self._interest = interest

    def close(self) -> None:
        """End it."""
        self._line.unsubscribe(self._interest)

    def withdraw(self) -> None:
        """End it, and come back when the server knows: whoever publishes there from now on is told that nobody is.

        Raises:
            ExeoraError: there is no connection; then the server will see for itself.
        """
        self._line.withdraw(self._interest)


class Line:
    """A connection that is made again whenever it is lost. Thread-safe.

    Args:
        urls: servers, any of which will do.
        user: whom to be.
        inbox: prefix of its inboxes.
        name: what the servers' logs call it.
        trust: by what the servers' certificates are judged.
        on_state: told of what becomes of the connection, with a sentence where there is something to say; in the
            line's thread, must not block.
    """

    def __init__(
        self,
        urls: tuple[str, ...],
        user: User,
        inbox: str,
        *,
        name: str,
        trust: Trust = SYSTEM,
        on_state: Callable[[LineState, str], None] = lambda _state, _why: None,
    ) -> None:
        self.trust = trust
        self._on_state = on_state
        self._loop = asyncio.new_event_loop()
        self._connection = Connection(urls, Whereabouts(user, inbox, name, trust), self._note)
        self._thread: threading.Thread | None = None
        self._settled = threading.Event()
        self._refusal: ExeoraError | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        client = self._connection.client
        return client is not None and client.is_connected

    @property
    def alive_at(self) -> float:
        """When something last came from a server, by `read_uptime`."""
        return self._connection.alive_at

    @property
    def urls(self) -> tuple[str, ...]:
        """Where servers are: those that were named, and the others of their cluster as far as they have told."""
        return self._connection.urls

    @property
    def max_payload(self) -> int:
        """The most that one publication may hold, in bytes."""
        client = self._connection.client
        return _PAYLOAD_BYTES if client is None else int(client.max_payload)

    def open(self, seconds: float = 10.0) -> None:
        """Connect for the first time, and stay so from then on.

        Raises:
            ExecutorOffline: reason `fleet_unreachable`.
            Forbidden: reason `credential_refused`.
        """
        self.start()
        try:
            if not self.await_connected(seconds):
                raise ExecutorOffline(
                    "no NATS server of the fleet answers", reason="fleet_unreachable", hint="is exeora gateway running?"
                )
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Begin to connect, for as long as it takes."""
        self._thread = threading.Thread(target=self._turn, name="fleet-line", daemon=True)
        self._thread.start()

    def await_connected(self, seconds: float) -> bool:
        """Wait for the first connection; False when there has been none in that time.

        Raises:
            Forbidden: reason `credential_refused`.
        """
        settled = self._settled.wait(seconds)
        if self._refusal is not None:
            raise self._refusal
        return settled

    def close(self) -> None:
        """End the connection and the thread. A second time does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._connection.stop)
        thread.join(CONNECT_SECONDS)

    def publish(self, subject: str, data: bytes, *, reply: str = "", seconds: float = 5.0) -> None:
        """Publish, and come back when the connection has it.

        Raises:
            ExecutorOffline: reason `not_connected`: it was not sent, and will not be.
            ToolFailed: reason `message_too_large`.
        """
        self._wait(self._connection.publish(subject, data, reply), seconds, None)

    def post(self, subject: str, data: bytes, *, reply: str = "") -> bool:
        """Publish without waiting, in order; False when there is no connection: then it will not be sent either."""
        if not self.connected:
            return False
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self._connection.begin_post, subject, data, reply)
            return True
        return False

    def request(
        self,
        subject: str,
        data: bytes,
        seconds: float,
        *,
        headers: Mapping[str, str] | None = None,
        cancellation: Cancellation | None = None,
    ) -> Message:
        """Publish a question and wait for its one answer.

        Raises:
            ExecutorOffline: reason `nobody_there`, `not_connected`, or `connection_lost` while it waited.
            ToolTimeout: reason `no_answer`.
            Cancelled: meanwhile.
        """
        return self._wait(
            self._connection.request(subject, data, seconds, headers), seconds + _GRACE_SECONDS, cancellation
        )

    def subscribe(self, subject: str, take: Take, *, queue: str = "") -> Subscription:
        """Subscribe, on this connection and each that follows; when it comes back the server has it."""
        interest = Interest(subject, queue, take)
        self._wait(self._connection.add(interest), CONNECT_SECONDS, None)
        return Subscription(self, interest)

    def accompany(self, work: Companion) -> None:
        """Have something done on this connection and each that follows."""
        self._wait(self._connection.accompany(work), CONNECT_SECONDS, None)

    def run(self, work: Callable[[Client], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Do something with the library's client, in the line's thread, and wait for it.

        Raises:
            ExecutorOffline, ToolTimeout, ToolFailed: as `request`; reason `fleet_failed` when JetStream refuses.
        """
        return self._wait(self._connection.run_with_client(work), seconds, None)

    def unsubscribe(self, interest: Interest) -> None:
        """End a subscription; called by its own `close`."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._connection.remove, interest)

    def withdraw(self, interest: Interest) -> None:
        """End a subscription; called by its own `withdraw`."""
        self._wait(self._connection.withdraw(interest), CONNECT_SECONDS, None)

    def call_later(self, seconds: float, action: Callable[[], None]) -> None:
        """Have something that does not block done in the line's thread after some time, unless it is closed by then."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, action)

    def _wait(self, work: Coroutine[Any, Any, T], seconds: float, cancellation: Cancellation | None) -> T:
        if self._thread is None or threading.current_thread() is self._thread:
            work.close()
            raise ExecutorOffline("the line is closed", reason="not_connected")
        future = asyncio.run_coroutine_threadsafe(self._connection.guard(work), self._loop)
        forget = cancellation.on_cancel(lambda: _drop(future)) if cancellation is not None else lambda: None
        try:
            return future.result(seconds)
        except FutureTimeout:
            future.cancel()
            raise ToolTimeout(f"no answer within {seconds:g} s", reason="no_answer") from None
        except CancelledError:
            if cancellation is not None:
                cancellation.raise_if_cancelled()
            raise connection_lost() from None
        finally:
            forget()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._connection.run())
        finally:
            with suppress(Exception):
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _note(self, state: LineState, why: str) -> None:
        """In the line's thread."""
        if state is LineState.CONNECTED:
            self._refusal = None
        elif state is LineState.REFUSED:
            self._refusal = Forbidden(
                "the servers of the fleet do not take this credential",
                reason="credential_refused",
                hint="it may have been revoked: ask for a new one (exeora machine add)",
            )
        if state is not LineState.LOST:
            self._settled.set()
        self._on_state(state, why)


def _drop(future: Any) -> None:
    future.cancel()
