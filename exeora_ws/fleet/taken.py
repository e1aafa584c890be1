"""The calls that a machine has in hand, and the ids of all that came, so that no copy runs."""

import threading

from exeora_ws.errors import ExecutorOffline, ExeoraError, ToolFailed
from exeora_ws.fleet.clock import FleetClock
from exeora_ws.fleet.hand import CallInHand

WHOLE_SECONDS = 30.0
"""How long the frames of one call may take."""
_REMEMBER_SECONDS = 60.0
"""How much longer than its deadline an id is remembered."""


class Taken:
    """Keeps them. Thread-safe.

    Args:
        at_once: calls in hand; further ones are refused.
        clock: the fleet's time.
    """

    def __init__(self, at_once: int, clock: FleetClock) -> None:
        self._at_once = at_once
        self._clock = clock
        self._lock = threading.Lock()
        self._hand: dict[str, CallInHand] = {}
        self._remembered: dict[str, int] = {}
        """Until when each id is kept, in the fleet's milliseconds."""
        self._changed = threading.Condition(self._lock)
        self.closed = False
        """Whether no more are taken."""

    def remember(self, identity: str) -> bool:
        """Remember a call; gives whether it came before."""
        until = self._clock.now_ms() + int((WHOLE_SECONDS + _REMEMBER_SECONDS) * 1000)
        with self._lock:
            known = identity in self._remembered
            self._remembered.setdefault(identity, until)
            return known

    def remember_until(self, identity: str, deadline: int) -> None:
        """Remember a call until no copy of it can be on its way."""
        with self._lock:
            self._remembered[identity] = deadline + int(_REMEMBER_SECONDS * 1000)

    def admit(self, call: CallInHand) -> ExeoraError | None:
        """Take a call in hand; gives what refuses it."""
        with self._lock:
            if self.closed:
                return leaving()
            if len(self._hand) >= self._at_once:
                return ToolFailed(
                    f"the machine has {self._at_once} calls in hand; this one has not run",
                    reason="machine_busy",
                    hint="try again when some have ended",
                )
            self._hand[call.id] = call
        return None

    def find(self, identity: str) -> CallInHand | None:
        """Give a call that is in hand."""
        return self._hand.get(identity)

    def list(self) -> list[CallInHand]:
        """Give all that are in hand."""
        with self._lock:
            return list(self._hand.values())

    def drop(self, call: CallInHand) -> None:
        """Let go of a call: it was answered, or nobody waits for an answer."""
        with self._changed:
            self._hand.pop(call.id, None)
            self._changed.notify_all()

    def finish(self, call: CallInHand, done: dict[str, object]) -> None:
        """Answer a call; one for which there is no connection stays in hand until there is."""
        if call.finish(done):
            self.drop(call)

    def await_none(self, seconds: float) -> bool:
        """Wait until none is in hand; False when some are after that time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._hand, seconds)

    def forget(self) -> None:
        """Forget the ids of which no copy can come."""
        now = self._clock.now_ms()
        with self._lock:
            over = [identity for identity, until in self._remembered.items() if until < now]
            for identity in over:
                if identity not in self._hand:
                    del self._remembered[identity]


def leaving() -> ExecutorOffline:
    """Make the error of a call that comes when the machine leaves."""
    return ExecutorOffline("the machine is leaving the fleet; the call has not run", reason="leaving")
