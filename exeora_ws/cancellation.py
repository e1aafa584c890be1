"""How a caller takes a call back, and how a call says that it is getting on. Thread-safe, no event loop."""

import threading
from collections.abc import Callable
from typing import Self

from exeora_ws.errors import Cancelled

Progress = Callable[[str], None]
"""Called with one short line whenever there is something to say; may drop lines, never blocks."""


class Step(str):
    """A line of progress that came with numbers of its own, from another server; they are passed on as they are.

    Args:
        progress: grows with each step.
        total: what it grows to, if that is known.
        message: what was said; without it the numbers are the line.
    """

    __slots__ = ("message", "progress", "total")

    def __new__(cls, progress: float, total: float | None = None, message: str | None = None) -> Self:
        """Make one."""
        numbers = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
        step = super().__new__(cls, message or numbers)
        step.progress, step.total, step.message = progress, total, message
        return step

    progress: float
    total: float | None
    message: str | None


def no_progress(_line: str) -> None:
    """Say nothing: the progress of a caller that did not ask for any."""


class Cancellation:
    """Set once, by the face, when the caller goes away or asks for the end. Callbacks run in the setter's thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0

    @property
    def cancelled(self) -> bool:
        """Whether the call has been taken back."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Take the call back. A second time does nothing."""
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` run on cancellation (at once when already cancelled); returns a function that forgets it."""
        with self._lock:
            if not self._event.is_set():
                key = self._next
                self._next += 1
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        callback()
        return lambda: None

    def _forget(self, key: int) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`; True when cancelled."""
        return self._event.wait(seconds)

    def raise_if_cancelled(self) -> None:
        """Stop here when the caller has gone.

        Raises:
            Cancelled: the call was taken back.
        """
        if self._event.is_set():
            raise Cancelled("the call was cancelled")
