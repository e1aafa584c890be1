"""The sessions of the HTTP server: what each is called in the core, which token opened it, and when it ends.

A client of the handshake era opens a session and ends it. One of 2026-07-28 has none, so all its requests with one
token at one endpoint count as one, which ends when nothing has come for a while.
"""

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
from anyio import to_thread

from exeora_ws.serve.admission import Admitted

log = logging.getLogger("exeora")

IDLE_SECONDS = 1_800.0

Clock = Callable[[], float]


@dataclass(slots=True)
class _Unspoken:
    """A session that no handshake opened."""

    name: str
    token: str
    seen: float


@dataclass(frozen=True, slots=True)
class HandshakeSession:
    """A session that a handshake opened; `identity` is its name on the wire."""

    identity: str
    admitted: Admitted

    @property
    def name(self) -> str:
        """Its name in the core."""
        return f"http-{self.identity}"


@dataclass(slots=True)
class Sessions:
    """Keeps them. On the event loop only.

    Args:
        close: ends what a session has started, given its name; called in a thread.
        clock: seconds that only grow.
    """

    close: Callable[[str], object]
    clock: Clock = time.monotonic
    shaken: dict[str, HandshakeSession] = field(default_factory=dict)
    """Those of the handshake era, by identity."""
    _unspoken: dict[tuple[str, str], _Unspoken] = field(default_factory=dict)
    _requests: dict[anyio.CancelScope, str] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    """Names whose work was ended ahead of the session itself."""

    def open(self, identity: str, admitted: Admitted) -> bool:
        """Keep a session of the handshake era; False when it is kept already."""
        if identity in self.shaken:
            return False
        self.shaken[identity] = HandshakeSession(identity, admitted)
        return True

    async def end(self, identity: str) -> None:
        """End what such a session has started."""
        session = self.shaken.pop(identity, None)
        if session is not None and session.name not in self._ended:
            await self._close(session.name)
        self._ended.discard(f"http-{identity}")

    def name_unspoken(self, admitted: Admitted) -> str:
        """Give the name of the session that a request without one belongs to."""
        key = (admitted.token.id, admitted.endpoint)
        known = self._unspoken.get(key)
        if known is None:
            # A new name each time: the core takes nothing more from one that has ended.
            known = _Unspoken(f"http-{admitted.token.id}-{secrets.token_hex(4)}", admitted.token.id, self.clock())
            self._unspoken[key] = known
        known.seen = self.clock()
        return known.name

    @contextmanager
    def request(self, admitted: Admitted) -> Iterator[anyio.CancelScope]:
        """Count a request as in progress, and have it end when its token does."""
        with anyio.CancelScope() as scope:
            self._requests[scope] = admitted.token.id
            try:
                yield scope
            finally:
                del self._requests[scope]
                known = self._unspoken.get((admitted.token.id, admitted.endpoint))
                if known is not None:
                    known.seen = self.clock()

    def tokens(self) -> set[str]:
        """Give the ids of all tokens that something is open with."""
        return {
            *self._requests.values(),
            *(s.admitted.token.id for s in self.shaken.values()),
            *(s.token for s in self._unspoken.values()),
        }

    def cut(self, token: str) -> list[HandshakeSession]:
        """Break off the requests of a token; gives its sessions of the handshake era, which are still to be ended."""
        for scope, owner in list(self._requests.items()):
            if owner == token:
                scope.cancel()
        return [s for s in self.shaken.values() if s.admitted.token.id == token]

    async def end_unspoken(self, token: str | None = None) -> None:
        """End the sessions without a handshake: one token's, or all."""
        await self._end_where(lambda session: token in (None, session.token))

    async def end_work(self) -> None:
        """End what all sessions have started, while their connections still carry answers. For the end of a server."""
        names = {session.name for session in self.shaken.values()}
        self._ended |= names
        async with anyio.create_task_group() as closing:
            for name in names:
                closing.start_soon(self._close, name)
            closing.start_soon(self.end_unspoken)

    async def end_idle(self) -> None:
        """End those without a handshake that nothing has come from for `IDLE_SECONDS`; the library ends the others."""
        busy = Counter(self._requests.values())
        limit = self.clock() - IDLE_SECONDS
        await self._end_where(lambda session: session.seen < limit and not busy[session.token])

    async def _end_where(self, over: Callable[[_Unspoken], bool]) -> None:
        ended = [key for key, session in self._unspoken.items() if over(session)]
        names = [self._unspoken.pop(key).name for key in ended]
        async with anyio.create_task_group() as closing:
            for name in names:
                closing.start_soon(self._close, name)

    async def _close(self, name: str) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await to_thread.run_sync(self.close, name)
            except Exception:
                log.exception("session %s could not be ended", name)
