"""One connection to NATS, for a synchronous core: an event loop in a thread of its own, and a face that waits.

The library's own way of reconnecting is not used: it would send on a new connection what was meant for the old one,
and go on waiting for answers that cannot come. Here a connection that is lost fails whatever waits for it at once;
nothing is kept to be sent later; a new connection is made, with a new client, and everything subscribed again.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ExecutorOffline, ExeoraError, Forbidden, ToolFailed, ToolTimeout
from exeora_ws.fleet import nats_jwt
from exeora_ws.fleet.credentials import User
from exeora_ws.fleet.trust import SYSTEM, Trust

log = logging.getLogger("exeora")

CONNECT_SECONDS = 5.0
HEARTBEAT_SECONDS = 4.0
"""How often the server is asked whether it is there, and how long it may take to say so."""
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Between attempts, each somewhat longer or shorter: thousands that were lost at once do not come back at once."""
_GRACE_SECONDS = 1.0
_NO_RESPONDERS = "503"

T = TypeVar("T")


class LineState(StrEnum):
    """What becomes of a connection. `refused`: the servers do not take this credential."""

    CONNECTED = "connected"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Message:
    """What came in on a subscription, or as an answer."""

    subject: str
    data: bytes
    reply: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def nobody(self) -> bool:
        """Whether the servers say in place of an answer that nobody was there to take the question."""
        return not self.data and self.headers.get("Status") == _NO_RESPONDERS


Take = Callable[[Message], None]
"""Takes a message; called in the line's thread, so it must not block and may only `post`."""


Companion = Callable[[Client], Coroutine[Any, Any, None]]
"""Something done in the line's thread on each connection, until it is lost; must not fail."""


class Subscription:
    """Something subscribed to, on whatever connection there is."""

    def __init__(self, line: "Line", subject: str, queue: str, take: Take) -> None:
        self.subject, self.queue, self.take = subject, queue, take
        self._line = line
        self.held: Any = None
        """The library's subscription on the present connection."""

    def close(self) -> None:
        """End it."""
        self._line.unsubscribe(self)

    def withdraw(self) -> None:
        """End it, and come back when the server knows: whoever publishes there from now on is told that nobody is.

        Raises:
            ExeoraError: there is no connection; then the server will see for itself.
        """
        self._line.withdraw(self)


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
        self._urls = urls
        self._user = user
        self._inbox = inbox
        self._name = name
        self.trust = trust
        self._on_state = on_state
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._client: Client | None = None
        self._subscriptions: list[Subscription] = []
        self._companions: list[Companion] = []
        self._waiting: set[asyncio.Future[Any]] = set()
        self._posted: set[asyncio.Task[None]] = set()
        self._settled = threading.Event()
        self._refusal: ExeoraError | None = None
        self._stopping: asyncio.Event | None = None
        self._turns = 0

    # --- for any thread ---

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        client = self._client
        return client is not None and client.is_connected

    @property
    def urls(self) -> tuple[str, ...]:
        """Where servers are: those that were named, and the others of their cluster as far as they have told."""
        return self._urls

    @property
    def max_payload(self) -> int:
        """The most that one publication may hold, in bytes."""
        client = self._client
        return 1_048_576 if client is None else int(client.max_payload)

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
            self._loop.call_soon_threadsafe(self._stop)
        thread.join(CONNECT_SECONDS)

    def publish(self, subject: str, data: bytes, *, reply: str = "", seconds: float = 5.0) -> None:
        """Publish, and come back when it has left for the server.

        Raises:
            ExecutorOffline: reason `not_connected`: it was not sent, and will not be.
            ToolFailed: reason `message_too_large`.
        """
        self._wait(self._publish(subject, data, reply), seconds, None)

    def post(self, subject: str, data: bytes, *, reply: str = "") -> bool:
        """Publish without waiting, in order; False when there is no connection: then it will not be sent either."""
        if not self.connected:
            return False
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self._begin_post, subject, data, reply)
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
        return self._wait(self._request(subject, data, seconds, headers), seconds + _GRACE_SECONDS, cancellation)

    def subscribe(self, subject: str, take: Take, *, queue: str = "") -> Subscription:
        """Subscribe, on this connection and each that follows; when it comes back the server has it."""
        subscription = Subscription(self, subject, queue, take)
        self._wait(self._add(subscription), CONNECT_SECONDS, None)
        return subscription

    def accompany(self, work: Companion) -> None:
        """Have something done on this connection and each that follows."""
        self._wait(self._begin_companion(work), CONNECT_SECONDS, None)

    def run(self, work: Callable[[Client], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Do something with the library's client, in the line's thread, and wait for it.

        Raises:
            ExecutorOffline, ToolTimeout, ToolFailed: as `request`; reason `fleet_failed` when JetStream refuses.
        """
        return self._wait(self._run_with_client(work), seconds, None)

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; called by its own `close`."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._remove, subscription)

    def withdraw(self, subscription: Subscription) -> None:
        """End a subscription; called by its own `withdraw`."""
        self._wait(self._withdraw(subscription), CONNECT_SECONDS, None)

    def call_later(self, seconds: float, action: Callable[[], None]) -> None:
        """Have something that does not block done in the line's thread after some time, unless it is closed by then."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, action)

    def _wait(self, work: Coroutine[Any, Any, T], seconds: float, cancellation: Cancellation | None) -> T:
        if self._thread is None or threading.current_thread() is self._thread:
            work.close()
            raise ExecutorOffline("the line is closed", reason="not_connected")
        future = asyncio.run_coroutine_threadsafe(self._guard(work), self._loop)
        forget = cancellation.on_cancel(lambda: _give_up(future)) if cancellation is not None else lambda: None
        try:
            return future.result(seconds)
        except FutureTimeout:
            future.cancel()
            raise ToolTimeout(f"no answer within {seconds:g} s", reason="no_answer") from None
        except CancelledError:
            if cancellation is not None:
                cancellation.raise_if_cancelled()
            raise _lost() from None
        finally:
            forget()

    # --- in the line's thread ---

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        finally:
            with suppress(Exception):
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _run(self) -> None:
        self._stopping = asyncio.Event()
        failures = 0
        while not self._stopping.is_set():
            lost = asyncio.Event()
            try:
                client = await self._connect(lost)
            except _Refused as refused:
                self._note_refusal(str(refused))
                failures += 1
            except Exception as error:  # noqa: BLE001 - whatever it is, there is no connection; the next attempt follows
                log.debug("no connection to the fleet: %r", error)
                failures += 1
            else:
                failures = 0
                await self._live(client, lost)
            pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause * random.uniform(0.5, 1.5))  # noqa: S311  jitter
        await _drain_tasks()

    def _note_refusal(self, why: str) -> None:
        self._refusal = Forbidden(
            "the servers of the fleet do not take this credential",
            reason="credential_refused",
            hint="it may have been revoked: ask for a new one (exeora machine add)",
        )
        self._settled.set()
        self._on_state(LineState.REFUSED, why)

    async def _connect(self, lost: asyncio.Event) -> Client:
        """Make a connection with one of the servers, in turn."""
        url = self._urls[self._turns % len(self._urls)]
        self._turns += 1
        client, context = Client(), self.trust.make_context(url)

        def sign(nonce: str) -> bytes:
            if context is not None and not context.used:
                raise _PlainText("the server does not speak TLS")
            return nats_jwt.sign_nonce(self._user.seed, nonce)

        async def end() -> None:
            lost.set()

        async def note(error: Exception) -> None:
            log.debug("fleet connection: %r", error)

        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.connect(
                    [url],
                    name=self._name,
                    user_jwt_cb=lambda: bytearray(self._user.jwt.encode()),
                    signature_cb=sign,
                    inbox_prefix=self._inbox.encode(),
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    pending_size=0,
                    closed_cb=end,
                    error_cb=note,
                    tls=context,
                )
                await self._subscribe_all(client)
        except (nats.errors.Error, OSError, TimeoutError) as error:
            with suppress(Exception):
                await asyncio.wait_for(client.close(), _GRACE_SECONDS)
            if "authorization" in str(error).lower() or "revoked" in str(error).lower():
                raise _Refused(str(error)) from error
            raise
        return client

    async def _live(self, client: Client, lost: asyncio.Event) -> None:
        """Use a connection until it is lost or no longer wanted."""
        assert self._stopping is not None  # noqa: S101 - set before
        self._client, self._refusal = client, None
        self._learn(client)
        self._settled.set()
        self._on_state(LineState.CONNECTED, "")
        beside = [self._loop.create_task(work(client)) for work in self._companions]
        beside.append(self._loop.create_task(_beat(client, lost)))
        ends = {self._loop.create_task(self._stopping.wait()), self._loop.create_task(lost.wait())}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        self._client = None
        for task in (*beside, *ends, *self._waiting):
            task.cancel()
        why = "" if client.last_error is None else str(client.last_error)
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _GRACE_SECONDS)
        if self._stopping.is_set():
            return
        if "revoked" in why.lower():
            self._note_refusal(why)
        else:
            self._on_state(LineState.LOST, why)

    async def _subscribe_all(self, client: Client) -> None:
        """Have the server send what is subscribed to; also what is subscribed to meanwhile."""
        done: set[Subscription] = set()
        while fresh := [each for each in self._subscriptions if each not in done]:
            for subscription in fresh:
                await self._hold(client, subscription)
            # Not before the server has them is this a connection: who publishes to us shall not be told that nobody is.
            await client.flush(timeout=int(CONNECT_SECONDS))
            done.update(fresh)

    def _learn(self, client: Client) -> None:
        """Keep the other servers of the cluster that this one told of."""
        scheme = "tls" if self._urls[0].startswith("tls://") else "nats"
        found = [f"{scheme}://{server.netloc}" for server in client.discovered_servers]
        self._urls = tuple(dict.fromkeys((*self._urls, *found)))

    def _stop(self) -> None:
        if self._stopping is not None:
            self._stopping.set()

    async def _guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work that ends with the connection; the library's errors become ours here."""
        task = asyncio.ensure_future(work)
        self._waiting.add(task)
        try:
            return await task
        except nats.errors.NoRespondersError:
            raise ExecutorOffline("nobody is there to take it", reason="nobody_there") from None
        except nats.errors.TimeoutError:
            raise ToolTimeout("no answer in time", reason="no_answer") from None
        except nats.errors.MaxPayloadError:
            raise ToolFailed("a message is larger than the servers take", reason="message_too_large") from None
        except nats.js.errors.APIError as error:
            raise _refused_by_jetstream(error) from error
        except (nats.errors.Error, OSError) as error:
            raise _not_connected() from error
        finally:
            task.cancel()
            self._waiting.discard(task)

    def _require_client(self) -> Client:
        client = self._client
        if client is None or not client.is_connected:
            raise _not_connected()
        return client

    async def _run_with_client(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        return await work(self._require_client())

    async def _begin_companion(self, work: Companion) -> None:
        self._companions.append(work)
        client = self._client
        if client is not None and client.is_connected:
            task = self._loop.create_task(work(client))
            # It ends with the connection, as what waits does; nobody waits for this.
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _publish(self, subject: str, data: bytes, reply: str) -> None:
        await self._require_client().publish(subject, data, reply=reply)

    async def _request(self, subject: str, data: bytes, seconds: float, headers: Mapping[str, str] | None) -> Message:
        client = self._require_client()
        given = None if headers is None else dict(headers)
        return _read(await client.request(subject, data, timeout=seconds, headers=given))

    def _begin_post(self, subject: str, data: bytes, reply: str) -> None:
        task = self._loop.create_task(self._post(subject, data, reply))
        self._posted.add(task)
        task.add_done_callback(self._posted.discard)

    async def _post(self, subject: str, data: bytes, reply: str) -> None:
        try:
            await self._publish(subject, data, reply)
        except (ExeoraError, nats.errors.Error, OSError) as error:
            log.debug("not sent to the fleet: %r", error)

    async def _add(self, subscription: Subscription) -> None:
        self._subscriptions.append(subscription)
        client = self._client
        if client is not None and client.is_connected:
            await self._hold(client, subscription)
            await client.flush()

    async def _hold(self, client: Client, subscription: Subscription) -> None:
        async def take(message: Msg) -> None:
            try:
                subscription.take(_read(message))
            except Exception:
                log.exception("a message on %s could not be taken", message.subject)

        subscription.held = await client.subscribe(subscription.subject, queue=subscription.queue, cb=take)

    def _remove(self, subscription: Subscription) -> None:
        with suppress(ValueError):
            self._subscriptions.remove(subscription)
            if self.connected and subscription.held is not None:
                self._begin_unsubscribe(subscription.held)

    async def _withdraw(self, subscription: Subscription) -> None:
        with suppress(ValueError):
            self._subscriptions.remove(subscription)
        client = self._require_client()
        if subscription.held is not None:
            await subscription.held.unsubscribe()
            await client.flush(timeout=int(CONNECT_SECONDS))

    def _begin_unsubscribe(self, held: Any) -> None:
        async def end() -> None:
            with suppress(nats.errors.Error, OSError):
                await held.unsubscribe()

        task = self._loop.create_task(end())
        self._posted.add(task)
        task.add_done_callback(self._posted.discard)


class _PlainText(OSError):
    """A server that was to be spoken to over TLS has none: nothing is signed for it."""


class _Refused(Exception):
    """The credential is not taken."""


async def _beat(client: Client, lost: asyncio.Event) -> None:
    """See that the server is there; a network that is cut says nothing by itself."""
    while True:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        try:
            await client.flush(timeout=int(HEARTBEAT_SECONDS))
        except (nats.errors.Error, OSError):
            lost.set()
            return


async def _drain_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _read(message: Msg) -> Message:
    return Message(message.subject, message.data, message.reply, message.headers or {})


def _give_up(future: Any) -> None:
    future.cancel()


def _not_connected() -> ExecutorOffline:
    return ExecutorOffline("there is no connection to the fleet", reason="not_connected")


def _refused_by_jetstream(error: nats.js.errors.APIError) -> ExeoraError:
    if isinstance(error, nats.js.errors.ServiceUnavailableError):
        return ExecutorOffline("the store of the fleet has no leader just now", reason="fleet_unreachable")
    return ToolFailed(f"the store of the fleet refused: {error.description}", reason="fleet_failed")


def _lost() -> ExecutorOffline:
    return ExecutorOffline("the connection to the fleet was lost", reason="connection_lost")


__all__ = ["Cancelled", "Line", "LineState", "Message", "Subscription"]
