"""What a call says while it works, kept until it is sent: of lines the newest, of another server's steps all."""

import threading
from collections import deque
from collections.abc import Callable

from exeora_ws.cancellation import Step

INTERVAL_SECONDS = 0.2
"""How often at most something is sent."""
FLUSH_SECONDS = 1.0
"""How long the steps that still wait hold up an answer, when the client does not read."""
_LINE_CHARACTERS = 500
_STEPS_WAITING = 256
"""Of more that come within one interval, the oldest are dropped."""

Said = tuple[float, float | None, str | None]
"""A number that grows, what it grows to, and the line."""


class Sayings:
    """For any thread; nothing here waits.

    Args:
        wake: called when there is something to send again.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._newest: str | None = None
        self._steps: deque[Step] = deque(maxlen=_STEPS_WAITING)
        self._told = False
        self._count = 0

    def say(self, line: str) -> None:
        """Have `line` sent, unless a newer one comes before its turn; a step in any case."""
        with self._lock:
            if isinstance(line, Step):
                self._steps.append(line)
            else:
                self._newest = line[:_LINE_CHARACTERS]
            told, self._told = self._told, True
        if not told:
            self._wake()

    def take_line(self) -> Said | None:
        """Take the newest line, if there is one that was not taken; what is said from now on wakes again."""
        with self._lock:
            self._told = False
            line, self._newest = self._newest, None
            if line is None:
                return None
            self._count += 1
            return self._count, None, line

    def take_step(self) -> Said | None:
        """Take the oldest step that was not taken."""
        with self._lock:
            if not self._steps:
                return None
            step = self._steps.popleft()
        return step.progress, step.total, None if step.message is None else step.message[:_LINE_CHARACTERS]
