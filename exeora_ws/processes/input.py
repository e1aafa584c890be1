"""Writing to a process that may not read: every write has a deadline, and waits alone."""

import os
import threading
from collections import deque
from typing import IO

from exeora_ws.processes.loop import Loop, Timer


class Write:
    """One piece of input on its way. `done` is set when it went in, when its time was over, or when no more can."""

    def __init__(self, data: bytes) -> None:
        self.accepted = 0
        """Bytes that the pipe took."""
        self.closed = False
        """Whether it ended because nobody reads that input any more."""
        self.done = threading.Event()
        self.timer: Timer | None = None
        self.rest = memoryview(data)

    def finish(self, *, closed: bool = False) -> None:
        """Let the writer go on."""
        if self.timer is not None:
            self.timer.cancel()
        self.closed = closed
        self.done.set()


class Input:
    """The writing end of one process's input. All methods run in the loop."""

    def __init__(self, loop: Loop, pipe: IO[bytes]) -> None:
        self._loop = loop
        self._pipe: IO[bytes] | None = pipe
        self._queue: deque[Write] = deque()
        self._watching = False
        self._ends = False
        os.set_blocking(pipe.fileno(), False)

    def write(self, write: Write, seconds: float) -> None:
        """Write after everything that is still on its way, at most `seconds` from now."""
        if self._pipe is None or self._ends:
            write.finish(closed=True)
            return
        write.timer = self._loop.after(seconds, lambda: self.withdraw(write))
        self._queue.append(write)
        self._push()

    def end(self) -> None:
        """Close the input once everything on its way went in."""
        self._ends = True
        self._push()

    def close(self) -> None:
        """Close the input now; what did not go in does not."""
        if self._pipe is None:
            return
        self._watch(wanted=False)
        self._pipe.close()
        self._pipe = None
        while self._queue:
            self._queue.popleft().finish(closed=True)

    def _push(self) -> None:
        while self._queue and self._pipe is not None:
            write = self._queue[0]
            try:
                count = os.write(self._pipe.fileno(), write.rest)
            except BlockingIOError:
                break
            except OSError:
                self.close()
                return
            write.accepted += count
            write.rest = write.rest[count:]
            if not write.rest:
                self._queue.popleft()
                write.finish()
        if self._ends and not self._queue:
            self.close()
        self._watch(wanted=bool(self._queue))

    def _watch(self, *, wanted: bool) -> None:
        if self._pipe is None or wanted is self._watching:
            return
        self._watching = wanted
        if wanted:
            self._loop.watch(self._pipe.fileno(), self._push, writable=True)
        else:
            self._loop.unwatch(self._pipe.fileno())

    def withdraw(self, write: Write) -> None:
        """Let a write end with what went in so far."""
        if write in self._queue:
            self._queue.remove(write)
            write.finish()
            self._push()
