"""A connection to NATS that is made again whenever it is lost; everything here runs in one event loop.

The library's own way of reconnecting is not used: it would send on a new connection what was meant for the old one,
and go on waiting for answers that cannot come. Here a connection that is lost fails whatever waits for it at once;
nothing is kept to be sent later; a new connection is made, with a new client, and everything subscribed again.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from exeora_ws.errors import ExeoraError
from exeora_ws.fleet import nats_jwt
from exeora_ws.fleet.clock import read_uptime
from exeora_ws.fleet.credentials import User
from exeora_ws.fleet.translation import not_connected, translated
from exeora_ws.fleet.trust import Trust

log = logging.getLogger("exeora")

CONNECT_SECONDS = 5.0
HEARTBEAT_SECONDS = 2.0
"""How often the server is asked whether it is there."""
PATIENCE_SECONDS = 5.0
"""How long it may take to say so."""
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Between attempts, each somewhat longer or shorter: thousands that were lost at once do not come back at once."""
_GRACE_SECONDS = 1.0
_NO_RESPONDERS = "503"
_REVOKED = "revoked"

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


@dataclass(slots=True, eq=False)
class Interest:
    """Something subscribed to, on whatever connection there is."""

    subject: str
    queue: str
    take: Take
    held: Any = None
    """The library's subscription on the present connection."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """How a connection is made.

    Args:
        user: whom to be.
        inbox: prefix of its inboxes.
        name: what the servers' logs call it.
        trust: by what the servers' certificates are judged.
    """

    user: User
    inbox: str
    name: str
    trust: Trust


class Connection:
    """The connection. Only the plain attributes may be read from other threads.

    Args:
        urls: servers, any of which will do.
        how: see there.
        on_state: told of what becomes of it; must not block.
    """

    def __init__(self, urls: tuple[str, ...], how: Whereabouts, on_state: Callable[[LineState, str], None]) -> None:
        self.urls = urls
        self.alive_at = read_uptime()
        """When something last came from a server."""
        self.client: Client | None = None
        """The library's, while there is a connection."""
        self._how = how
        self._on_state = on_state
        self._interests: list[Interest] = []
        self._companions: list[Companion] = []
        self._waiting: set[asyncio.Future[Any]] = set()
        self._posted: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._turns = 0

    async def run(self) -> None:
        """Be connected, whenever that can be, until `stop`."""
        failures = 0
        while not self._stopping.is_set():
            failures = 0 if await self._connect_once() else failures + 1
            pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause * random.uniform(0.5, 1.5))  # noqa: S311  jitter
        await _drain_tasks()

    def stop(self) -> None:
        """End it."""
        self._stopping.set()

    async def _connect_once(self) -> bool:
        """Connect, and stay so until it is lost; False when there was no connection."""
        lost = asyncio.Event()
        try:
            client = await self._connect(lost)
        except _Refused as refused:
            self._tell(LineState.REFUSED, str(refused))
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no connection; the next attempt follows
            log.debug("no connection to the fleet: %r", error)
            return False
        await self._live(client, lost)
        return True

    async def _connect(self, lost: asyncio.Event) -> Client:
        """Make a connection with one of the servers, in turn."""
        url = self.urls[self._turns % len(self.urls)]
        self._turns += 1
        client, context = Client(), self._how.trust.make_context(url)

        def sign(nonce: str) -> bytes:
            if context is not None and not context.used:
                raise _PlainText("the server does not speak TLS")
            return nats_jwt.sign_nonce(self._how.user.seed, nonce)

        async def end() -> None:
            lost.set()

        async def note(error: Exception) -> None:
            log.debug("fleet connection: %r", error)

        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.connect(
                    [url],
                    name=self._how.name,
                    user_jwt_cb=lambda: bytearray(self._how.user.jwt.encode()),
                    signature_cb=sign,
                    inbox_prefix=self._how.inbox.encode(),
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
            if "authorization" in str(error).lower() or _REVOKED in str(error).lower():
                raise _Refused(str(error)) from error
            raise
        return client

    async def _live(self, client: Client, lost: asyncio.Event) -> None:
        """Use a connection until it is lost or no longer wanted."""
        self.client, self.alive_at = client, read_uptime()
        self._learn(client)
        self._tell(LineState.CONNECTED, "")
        create = asyncio.get_running_loop().create_task
        beside = [create(work(client)) for work in self._companions]
        beside.append(create(self._beat(client, lost)))
        ends = {create(self._stopping.wait()), create(lost.wait())}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        self.client = None
        for task in (*beside, *ends, *self._waiting):
            task.cancel()
        why = "" if client.last_error is None else str(client.last_error)
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _GRACE_SECONDS)
        if not self._stopping.is_set():
            self._tell(LineState.REFUSED if _REVOKED in why.lower() else LineState.LOST, why)

    def _tell(self, state: LineState, why: str) -> None:
        try:
            self._on_state(state, why)
        except Exception:
            log.exception("what became of a connection could not be told")

    async def _subscribe_all(self, client: Client) -> None:
        """Have the server send what is subscribed to; also what is subscribed to meanwhile."""
        done: set[Interest] = set()
        while fresh := [each for each in self._interests if each not in done]:
            for interest in fresh:
                await self._hold(client, interest)
            # Not before the server has them is this a connection: who publishes to us shall not be told that nobody is.
            await _settle(client)
            done.update(fresh)

    async def _beat(self, client: Client, lost: asyncio.Event) -> None:
        """See that the server is there; a network that is cut says nothing by itself."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                await client.flush(timeout=int(PATIENCE_SECONDS))
            except (nats.errors.Error, OSError):
                lost.set()
                return
            self.alive_at = read_uptime()

    def _learn(self, client: Client) -> None:
        """Keep the other servers of the cluster that this one told of."""
        scheme = "tls" if self.urls[0].startswith("tls://") else "nats"
        found = [f"{scheme}://{server.netloc}" for server in client.discovered_servers]
        self.urls = tuple(dict.fromkeys((*self.urls, *found)))

    def require_client(self) -> Client:
        """Give the library's client.

        Raises:
            ExecutorOffline: reason `not_connected`.
        """
        client = self.client
        if client is None or not client.is_connected:
            raise not_connected()
        return client

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work that ends with the connection; raises what `translated` does."""
        task = asyncio.ensure_future(work)
        self._waiting.add(task)
        try:
            with translated():
                return await task
        finally:
            task.cancel()
            self._waiting.discard(task)

    async def run_with_client(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Do something with the library's client."""
        return await work(self.require_client())

    async def accompany(self, work: Companion) -> None:
        """Have something done on this connection and each that follows."""
        self._companions.append(work)
        client = self.client
        if client is not None and client.is_connected:
            task = asyncio.get_running_loop().create_task(work(client))
            # It ends with the connection, as what waits does; nobody waits for this.
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def publish(self, subject: str, data: bytes, reply: str) -> None:
        """Publish."""
        await self.require_client().publish(subject, data, reply=reply)

    async def request(self, subject: str, data: bytes, seconds: float, headers: Mapping[str, str] | None) -> Message:
        """Publish a question and wait for its one answer."""
        given = None if headers is None else dict(headers)
        return _read(await self.require_client().request(subject, data, timeout=seconds, headers=given))

    def begin_post(self, subject: str, data: bytes, reply: str) -> None:
        """Publish without anybody waiting for it; what cannot be sent is dropped."""
        self._begin(self.publish(subject, data, reply))

    async def add(self, interest: Interest) -> None:
        """Subscribe, on this connection and each that follows; when it comes back the server has it."""
        self._interests.append(interest)
        client = self.client
        if client is not None and client.is_connected:
            await self._hold(client, interest)
            await _settle(client)

    def remove(self, interest: Interest) -> None:
        """Unsubscribe, soon."""
        with suppress(ValueError):
            self._interests.remove(interest)
            if self.client is not None and interest.held is not None:
                self._begin(interest.held.unsubscribe())

    async def withdraw(self, interest: Interest) -> None:
        """Unsubscribe; when it comes back the server knows."""
        with suppress(ValueError):
            self._interests.remove(interest)
        client = self.require_client()
        if interest.held is not None:
            await interest.held.unsubscribe()
            await _settle(client)

    async def _hold(self, client: Client, interest: Interest) -> None:
        async def take(message: Msg) -> None:
            self.alive_at = read_uptime()
            try:
                interest.take(_read(message))
            except Exception:
                log.exception("a message on %s could not be taken", message.subject)

        interest.held = await client.subscribe(interest.subject, queue=interest.queue, cb=take)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        async def finish() -> None:
            try:
                with translated():
                    await work
            except ExeoraError as error:
                log.debug("not sent to the fleet: %r", error)

        task = asyncio.get_running_loop().create_task(finish())
        self._posted.add(task)
        task.add_done_callback(self._posted.discard)


class _PlainText(OSError):
    """A server that was to be spoken to over TLS has none: nothing is signed for it."""


class _Refused(Exception):
    """The credential is not taken."""


async def _settle(client: Client) -> None:
    """Come back when the server knows what was subscribed to.

    The library's question overtakes what waits to be written, so the first answer says nothing yet; by then that has
    been written, and the second one comes after it.
    """
    for _ in range(2):
        await client.flush(timeout=int(CONNECT_SECONDS))


async def _drain_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _read(message: Msg) -> Message:
    return Message(message.subject, message.data, message.reply, message.headers or {})
