"""Run one command to its end and say how it went (contract, section 7)."""

from collections import deque
from collections.abc import Callable
from functools import partial

from exeora_ws.cancellation import Cancellation
from exeora_ws.processes.command import Command, Owner
from exeora_ws.processes.output import Capture, Stream
from exeora_ws.processes.process import Finish, Process
from exeora_ws.processes.supervisor import Supervisor

CANCEL_GRACE_SECONDS = 1.5
"""Between TERM and KILL for a caller that has gone: dead within two seconds altogether."""

_FEED_BYTES = 1_000_000

OnOutput = Callable[[Stream, bytes], None]
"""Called in the caller's thread with everything, in order; while it does not return, the command is not read."""


class _Feed:
    """Output on its way from the loop to the caller's thread; a full one holds up the command, not the loop."""

    def __init__(self, capture: Capture, *, wanted: bool) -> None:
        self._capture = capture
        self._wanted = wanted
        self._pieces: deque[tuple[Stream, bytes]] = deque()
        self._size = 0

    def put(self, stream: Stream, data: bytes) -> bool:
        """Take output, in the loop, under the process's lock."""
        self._capture.append(stream, data)
        if self._wanted:
            self._pieces.append((stream, data))
            self._size += len(data)
        return self._size < _FEED_BYTES

    def take(self, process: Process) -> list[tuple[Stream, bytes]]:
        """Wait for output and take it all; empty once the command has finished and all was taken."""
        with process.changed:
            process.changed.wait_for(lambda: self._pieces or process.finish is not None)
            pieces = list(self._pieces)
            self._pieces.clear()
            self._size = 0
        if pieces:
            process.loop.post(process.resume)
        return pieces


def run(
    supervisor: Supervisor,
    command: Command,
    owner: Owner,
    *,
    capture: Capture,
    timeout: float | None,
    cancellation: Cancellation,
    on_output: OnOutput | None = None,
) -> Finish:
    """Run a command and wait for its end.

    It has ended when its process has exited, and at most 100 ms later, whoever holds its output open; what it left
    running is in the answer and is being ended. After `timeout` seconds the whole tree is ended first.

    Args:
        supervisor: where it runs.
        command: what to run; its input is empty.
        owner: for whom.
        capture: keeps its output.
        timeout: seconds; None for no limit.
        cancellation: ends the whole tree, within two seconds.
        on_output: see `OnOutput`.

    Raises:
        Cancelled: the call was taken back; nothing is left.
        ExeoraError: as `spawn`.
    """
    cancellation.raise_if_cancelled()
    feed = _Feed(capture, wanted=on_output is not None)
    process = supervisor.launch(command, owner, feed.put, timeout=timeout).process
    end = partial(process.end, CANCEL_GRACE_SECONDS)
    forget = cancellation.on_cancel(lambda: process.loop.post(end))
    try:
        while pieces := feed.take(process):
            for stream, data in pieces:
                if on_output is not None:
                    on_output(stream, data)
    except BaseException:
        # The caller's own failure or Ctrl-C: what runs for nobody does not run on.
        process.loop.post(end)
        process.wait_gone(CANCEL_GRACE_SECONDS + 1)
        raise
    finally:
        forget()
    cancellation.raise_if_cancelled()
    return process.require_finish()
