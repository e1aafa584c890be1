"""One thread in which everything about running commands is decided: descriptors, timers and posted calls.

Nothing that runs here may block. The clock is handed in, so a test turns the loop by hand under a clock of its own.
"""

import heapq
import itertools
import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

Action = Callable[[], None]
Clock = Callable[[], float]


_LOG = logging.getLogger("exeora")


class Timer:
    """Something to do later, unless it is cancelled first."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        """Forget it."""
        self.action = None


class Loop:
    """Waits for whatever comes first and calls its action. Only `post`, `start` and `stop` are for other threads."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._posted: deque[Action] = deque()
        self._waking, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        self._selector.register(self._waking, selectors.EVENT_READ, self._drain_wake)
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._posting = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Turn in a thread of its own."""
        self._thread = threading.Thread(target=self._turn_until_stopped, name="processes", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and let go of the descriptors. Timers that are left are forgotten."""
        self.post(self._stop)
        if self._thread is not None:
            self._thread.join()
        with self._posting:
            self._closed = True
            self._selector.close()
            os.close(self._waking)
            os.close(self._wake)

    def post(self, action: Action) -> None:
        """Have `action` run in the loop, soon; after `stop`, never. From any thread."""
        with self._posting, suppress(BlockingIOError):
            if not self._closed:
                self._posted.append(action)
                os.write(self._wake, b"\0")

    def after(self, seconds: float, action: Action) -> Timer:
        """Have `action` run in the loop after `seconds`."""
        timer = Timer(action)
        heapq.heappush(self._timers, (self.clock() + seconds, next(self._order), timer))
        return timer

    def watch(self, descriptor: int, action: Action, *, writable: bool = False) -> None:
        """Call `action` whenever the descriptor can be read (or written)."""
        event = selectors.EVENT_WRITE if writable else selectors.EVENT_READ
        self._selector.register(descriptor, event, action)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching, if it was watched."""
        with suppress(KeyError):
            self._selector.unregister(descriptor)

    def turn(self, longest: float | None = None) -> None:
        """Wait for the next events, at most `longest` seconds, and do all that is due."""
        for key, _ in self._selector.select(self._patience(longest)):
            # An earlier action of this turn may have let go of this descriptor.
            if self._selector.get_map().get(key.fd) is key:
                key.data()
        while self._timers and self._timers[0][0] <= self.clock():
            _, _, timer = heapq.heappop(self._timers)
            if timer.action is not None:
                timer.action()
        for _ in range(len(self._posted)):
            self._posted.popleft()()

    def _patience(self, longest: float | None) -> float | None:
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        if self._posted:
            return 0
        due = max(0.0, self._timers[0][0] - self.clock()) if self._timers else None
        return min((t for t in (due, longest) if t is not None), default=None)

    def _turn_until_stopped(self) -> None:
        while not self._stopped:
            try:
                self.turn()
            except Exception:  # noqa: BLE001 - a bug in one action must not leave every other command unwatched
                _LOG.exception("an action of the process loop failed")

    def _stop(self) -> None:
        self._stopped = True

    def _drain_wake(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._waking, 4096)


def _pipe() -> tuple[int, int]:
    """Make what `pipe2` makes where there is none (macOS)."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    return reading, writing
