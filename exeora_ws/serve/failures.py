"""How many failed attempts a peer may make. Success is never held up: on loopback all users share one address."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable

_PEERS = 1_000


class FailureLimit:
    """Counts failures per peer over a sliding time.

    Args:
        count: failures that are answered plainly within `seconds`.
        seconds: how long a failure counts.
        clock: seconds that only grow.
    """

    def __init__(self, count: int = 20, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self._seconds = seconds
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def note_failure(self, peer: str) -> float | None:
        """Count a failure; gives after how many seconds the peer may fail again when it has failed too often."""
        now = self._clock()
        times = self._failures.setdefault(peer, deque(maxlen=self._count))
        self._failures.move_to_end(peer)
        while len(self._failures) > _PEERS:
            self._failures.popitem(last=False)
        while times and now - times[0] >= self._seconds:
            times.popleft()
        if len(times) == self._count:
            return self._seconds - (now - times[0])
        times.append(now)
        return None
