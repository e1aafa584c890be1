"""A command in the supervisor's table, as its callers use it: read, wait, write, signal."""

import time
from dataclasses import dataclass
from functools import partial

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.limits import OUTPUT_CHUNK_BYTES
from exeora_ws.processes.command import Listing, Output, Owner
from exeora_ws.processes.ending import FORCE_SECONDS
from exeora_ws.processes.input import Write
from exeora_ws.processes.output import Ring
from exeora_ws.processes.process import Process
from exeora_ws.processes.tree import send_to_group

INPUT_SECONDS = 5.0
"""How long a write waits for a process that does not read."""


@dataclass(eq=False)
class Running:
    """One command, until nothing of it is left to tell. Thread-safe."""

    id: str
    owner: Owner
    line: str
    process: Process
    ring: Ring | None
    """Its output, when it runs on its own; None for one that somebody waits for."""
    private: bool
    """Whether only its own session can see it."""
    since: float
    """Seconds of the epoch."""

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self.process.finish is None

    def is_visible_to(self, owner: Owner) -> bool:
        """Whether this caller may know of it: a started one of its own workspace."""
        same_place = (self.owner.project, self.owner.workspace) == (owner.project, owner.workspace)
        return self.ring is not None and same_place and (not self.private or self.owner.session == owner.session)

    def show(self) -> Listing:
        """Give its line in a list."""
        finish = self.process.finish
        code, signal = (finish.code, finish.signal) if finish is not None else (None, None)
        return Listing(self.id, self.owner, self.line, self.process.child.pid, self.since, finish is None, code, signal)

    def read(
        self,
        cursor: int = 0,
        *,
        limit: int = OUTPUT_CHUNK_BYTES,
        wait: float = 0.0,
        cancellation: Cancellation | None = None,
    ) -> Output:
        """Read its output from `cursor` on.

        Args:
            cursor: absolute byte offset; 0 is the start, what is no longer kept is counted as skipped.
            limit: bytes.
            wait: seconds to wait for something new; its end is something new.
            cancellation: stops the wait.

        Raises:
            InvalidArguments: reason `cursor_out_of_range`.
            Cancelled: while waiting.
        """
        deadline = time.monotonic() + wait
        forget = cancellation.on_cancel(self.process.notify) if cancellation is not None else None
        try:
            with self.process.changed:
                while True:
                    if cancellation is not None:
                        cancellation.raise_if_cancelled()
                    output = self._read_now(cursor, limit)
                    left = deadline - time.monotonic()
                    if output.chunk.text or output.chunk.skipped or not output.running or left <= 0:
                        return output
                    self.process.changed.wait(left)
        finally:
            if forget is not None:
                forget()

    def wait_end(self, seconds: float, cancellation: Cancellation | None = None) -> bool:
        """Wait at most `seconds` for its end; gives whether it has ended.

        Raises:
            Cancelled: while waiting.
        """
        forget = cancellation.on_cancel(self.process.notify) if cancellation is not None else None
        try:
            with self.process.changed:
                self.process.changed.wait_for(
                    lambda: not self.live or (cancellation is not None and cancellation.cancelled), max(0.0, seconds)
                )
            if cancellation is not None:
                cancellation.raise_if_cancelled()
            return not self.live
        finally:
            if forget is not None:
                forget()

    def send(self, data: bytes, *, seconds: float = INPUT_SECONDS, cancellation: Cancellation | None = None) -> int:
        """Write to its input; gives how many bytes went in within `seconds`. It holds up nobody else.

        Raises:
            ToolFailed: reason `not_running`; `input_closed`, where `data.bytesWritten` says how much went in.
            Cancelled: the rest was withdrawn.
        """
        self._require_live()
        stdin, loop = self.process.input, self.process.loop
        if stdin is None:
            raise AssertionError("a started command has an input")
        write = Write(data)
        loop.post(lambda: stdin.write(write, seconds))
        withdraw = partial(loop.post, lambda: stdin.withdraw(write))
        forget = cancellation.on_cancel(withdraw) if cancellation is not None else None
        # The loop keeps the deadline; the second more is for a supervisor that closes meanwhile.
        write.done.wait(seconds + 1)
        if cancellation is not None and forget is not None:
            forget()
            cancellation.raise_if_cancelled()
        if write.closed:
            raise ToolFailed(
                "the process does not read its input any more",
                reason="input_closed",
                data={"bytesWritten": write.accepted},
            )
        return write.accepted

    def end_input(self) -> None:
        """Close its input once everything on its way went in.

        Raises:
            ToolFailed: reason `not_running`.
        """
        self._require_live()
        if self.process.input is not None:
            self.process.loop.post(self.process.input.end)

    def end(self, grace: float) -> None:
        """End it with everything it started, `grace` seconds between asking and forcing; returns when it is gone."""
        self.process.loop.post(partial(self.process.end, grace))
        self.process.wait_gone(grace + FORCE_SECONDS + 1)

    def signal(self, number: int) -> None:
        """Send a signal to its process group, as a terminal does.

        Raises:
            ToolFailed: reason `not_running`.
        """
        self._require_live()
        send_to_group(self.process.child.tree.root, number)

    def _require_live(self) -> None:
        if not self.live:
            raise ToolFailed("the process has ended", reason="not_running", hint="read its output")

    def _read_now(self, cursor: int, limit: int) -> Output:
        ring, finish = self.ring, self.process.finish
        if ring is None:
            raise AssertionError("only a started command is read")
        if not 0 <= cursor <= ring.end:
            raise InvalidArguments(
                f"cursor: {cursor} is not between 0 and {ring.end}, the bytes written so far",
                reason="cursor_out_of_range",
                hint="pass nextCursor of the previous answer",
            )
        chunk = ring.read(cursor, limit, final=finish is not None)
        code, signal = (finish.code, finish.signal) if finish is not None else (None, None)
        return Output(chunk, finish is None, code, signal)
