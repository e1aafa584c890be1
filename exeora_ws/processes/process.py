"""One command's life, decided in the loop: running, draining or ending, finished, gone.

*Finished*: the caller has its answer. *Gone*: nothing of the tree is left, and nothing is held. When the command ends
by itself the answer comes first and what it left running is ended after it; when it is ended by us, the answer waits
until the tree is gone.
"""

import fcntl
import os
import struct
import termios
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from exeora_ws.limits import RUN_DRAIN_MS
from exeora_ws.processes.ending import GRACE_SECONDS, Ending
from exeora_ws.processes.input import Input
from exeora_ws.processes.loop import Loop, Timer
from exeora_ws.processes.output import Stream
from exeora_ws.processes.spawn import Child, may_have_left, name_signal
from exeora_ws.processes.table import find_program

ANSWER_SECONDS = RUN_DRAIN_MS / 1000 * 0.95
DRAIN_SECONDS = RUN_DRAIN_MS / 1000 * 0.8
"""Of the 100 ms that an answer may take after the exit; the rest is for looking what was left running."""

LOOK_AGAIN_SECONDS = 0.001

_BLOCK_BYTES = 65_536

Sink = Callable[[Stream, bytes], bool]
"""Takes output, in the loop and under the process's lock; gives whether it can take more at once."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that a command left running."""

    pid: int
    program: str


@dataclass(frozen=True, slots=True)
class Finish:
    """How a command ended."""

    code: int | None
    """Exit code; None after a signal or when we ended it for its time."""
    signal: str | None
    """Name of the signal that ended it."""
    timed_out: bool
    seconds: float
    leftovers: tuple[Leftover, ...]
    """What it left running when it ended by itself (being ended now), or what could not be killed."""
    killed: bool
    """Whether we ended it."""


@dataclass(eq=False)
class Process:
    """A running command. Other threads read `finish` and `gone` under `changed`; all methods run in the loop."""

    loop: Loop
    child: Child
    sink: Sink
    on_gone: Callable[[], None]
    changed: threading.Condition = field(default_factory=threading.Condition)
    finish: Finish | None = None
    gone: bool = False

    def __post_init__(self) -> None:
        self.started_at = self.loop.clock()
        self.input = Input(self.loop, self.child.stdin) if self.child.stdin is not None else None
        self._outputs: dict[Stream, IO[bytes]] = {}
        self._exit = self.child.open_exit_descriptor()
        self._code: int | None = None
        self._exited_at = self.started_at
        self._paused = False
        self._ending: Ending | None = None
        self._deadline: Timer | None = None
        self._draining: Timer | None = None
        self._pace: Timer | None = None
        self._timed_out = False

    def attach(self, timeout: float | None) -> None:
        """Begin to watch: output, exit, and the time when it is limited (seconds)."""
        for stream, pipe in ((Stream.STDOUT, self.child.stdout), (Stream.STDERR, self.child.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._outputs[stream] = pipe
        self._watch_outputs()
        if self._exit is not None:
            self.loop.watch(self._exit, self._exited)
        else:
            threading.Thread(target=self._wait_for_exit, name="exit", daemon=True).start()
        if timeout is not None:
            self._deadline = self.loop.after(timeout, self._time_over)

    def end(self, grace: float = GRACE_SECONDS) -> None:
        """End the whole tree. Once begun, a second call changes nothing."""
        if self.finish is None and self._ending is None and self._draining is None:
            self._ending = Ending(self.child.tree, grace=grace, clock=self.loop.clock)
            self._step()

    def resume(self) -> None:
        """Read on after the sink was full."""
        if self._paused and self.finish is None:
            self._paused = False
            self._watch_outputs()

    def require_finish(self) -> Finish:
        """Give how it ended, once it has."""
        if self.finish is None:
            raise AssertionError("the command has not finished")
        return self.finish

    def wait_gone(self, seconds: float) -> bool:
        """Wait, in another thread, until nothing is left of it."""
        with self.changed:
            return self.changed.wait_for(lambda: self.gone, max(0.0, seconds))

    def notify(self) -> None:
        """Have every waiting thread look again."""
        with self.changed:
            self.changed.notify_all()

    def _watch_outputs(self) -> None:
        for stream, pipe in self._outputs.items():
            self.loop.watch(pipe.fileno(), lambda stream=stream: self._read(stream))  # type: ignore[misc]

    def _read(self, stream: Stream) -> None:
        pipe = self._outputs[stream]
        try:
            block = os.read(pipe.fileno(), _BLOCK_BYTES)
        except BlockingIOError:
            return
        if block:
            self._take(stream, block)
            return
        self.loop.unwatch(pipe.fileno())
        del self._outputs[stream]
        pipe.close()
        if not self._outputs and self._draining is not None:
            self._conclude()

    def _take(self, stream: Stream, block: bytes) -> None:
        with self.changed:
            more = self.sink(stream, block)
            self.changed.notify_all()
        if not more and self._code is None and not self._paused:
            self._paused = True
            for pipe in self._outputs.values():
                self.loop.unwatch(pipe.fileno())

    def _exited(self) -> None:
        code = self.child.poll()
        if code is None or self._code is not None:
            return
        self._code = code
        self._exited_at = self.loop.clock()
        if self._exit is not None:
            self.loop.unwatch(self._exit)
        self.resume()
        if self._ending is not None:
            self._hurry()
        elif self._outputs:
            self._draining = self.loop.after(DRAIN_SECONDS, self._conclude)
        else:
            self._conclude()

    def _hurry(self) -> None:
        """Take the next step of the ending now: what it waits for has happened."""
        if self._pace is not None:
            self._pace.cancel()
        self._step()

    def _wait_for_exit(self) -> None:
        self.child.wait()
        self.loop.post(self._exited)

    def _time_over(self) -> None:
        if self._code is None and self._ending is None:
            self._timed_out = True
            self.end()

    def _conclude(self) -> None:
        """Answer, after it ended by itself; then end what it left."""
        if self._draining is not None:
            self._draining.cancel()
        tree = self.child.tree
        found = tree.find_members() if may_have_left() else []
        if tree.unsure and self.loop.clock() < self._exited_at + ANSWER_SECONDS:
            self._draining = self.loop.after(LOOK_AGAIN_SECONDS, self._conclude)
            return
        self._publish([Leftover(entry.pid, find_program(entry.pid)) for entry in found], killed=False)
        self._ending = Ending(tree, clock=self.loop.clock, found=found)
        if found or tree.unsure:
            self._step()
        else:
            self._let_go()

    def _step(self) -> None:
        """Go on ending the tree."""
        if self._ending is None or self.gone:
            return
        pause = self._ending.advance()
        if pause is not None:
            self._pace = self.loop.after(pause, self._step)
            return
        if self._code is None and (code := self.child.poll()) is not None:
            self._code = code
        if self._code is None:
            self.child.give_up()
        left = [Leftover(entry.pid, find_program(entry.pid)) for entry in self._ending.survivors]
        self._publish(left, killed=True)
        self._let_go()

    def _publish(self, left: Sequence[Leftover], *, killed: bool) -> None:
        if self.finish is not None:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._read_rest()
        self._close()
        code = self._code
        with self.changed:
            self.finish = Finish(
                code=code if code is not None and code >= 0 and not self._timed_out else None,
                signal=name_signal(-code) if code is not None and code < 0 else None,
                timed_out=self._timed_out,
                seconds=(self.loop.clock() if killed else self._exited_at) - self.started_at,
                leftovers=tuple(left),
                killed=killed,
            )
            self.changed.notify_all()

    def _read_rest(self) -> None:
        """Take what stands in the pipes now, and no more: somebody may go on writing for ever."""
        for stream, pipe in self._outputs.items():
            (count,) = struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4))
            with suppress(BlockingIOError):
                if count and (block := os.read(pipe.fileno(), count)):
                    self._take(stream, block)

    def _close(self) -> None:
        for pipe in self._outputs.values():
            self.loop.unwatch(pipe.fileno())
            pipe.close()
        self._outputs.clear()
        if self.input is not None:
            self.input.close()
        if self._exit is not None:
            self.loop.unwatch(self._exit)
            os.close(self._exit)
            self._exit = None

    def _let_go(self) -> None:
        with self.changed:
            self.gone = True
            self.changed.notify_all()
        self.on_gone()
