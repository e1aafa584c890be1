"""Standard input and output as the wire, taken away from everything else in the process.

The library's own transport reads in a thread that nothing can call back, so that a server asked to end would wait for
its client's next line; it drops a line that is no message, and the client waits for ever; and it repairs bytes that
are not UTF-8 silently, which would end up in somebody's file.
"""

import asyncio
import fcntl
import os
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

from exeora_ws.limits import MESSAGE_BYTES

_CHUNK_BYTES = 65_536
_CHUNKS_AHEAD = 4


@contextmanager
def divert_standard_streams() -> Iterator[tuple[int, int]]:
    """Give private descriptors of input and output; 0 reads nothing from now on and 1 leads to standard error.

    So a stray `print` and a child that inherits them cannot touch the wire. Undone at the end.
    """
    wire_in, wire_out = (fcntl.fcntl(d, fcntl.F_DUPFD_CLOEXEC, 3) for d in (0, 1))
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nothing, 1)
    os.close(nothing)
    try:
        yield wire_in, wire_out
    finally:
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)


class TooLong(Exception):
    """Stands in the place of a line of more than `MESSAGE_BYTES`, which was thrown away."""


class LineReader:
    """Lines from a descriptor of any kind. Made on the event loop; waiting for a line can be cancelled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = threading.Semaphore(_CHUNKS_AHEAD)
        # A daemon, since nothing can end a read of a pipe that its other end keeps open.
        threading.Thread(target=self._read, name="wire in", daemon=True).start()

    def _read(self) -> None:
        chunk = b"-"
        while chunk:
            self._room.acquire()
            try:
                chunk = os.read(self._descriptor, _CHUNK_BYTES)
            except OSError:  # as good as the end
                chunk = b""
            with suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)

    async def lines(self) -> AsyncIterator[bytes | TooLong]:
        """Give each line without its end, empty ones left out; a last one without an end counts."""
        line = bytearray()
        skipping = False
        while chunk := await self._chunks.get():
            self._room.release()
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                line += end
                if skipping or len(line) > MESSAGE_BYTES:
                    yield TooLong()
                elif line.strip():
                    yield bytes(line)
                line, skipping = bytearray(), False
            line += rest
            if len(line) > MESSAGE_BYTES:
                line, skipping = bytearray(), True
        if line.strip() and not skipping:
            yield bytes(line)


class LineWriter:
    """Lines to a descriptor. Made on the event loop; a reader that has stopped reading holds up nothing but `write`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="wire out", daemon=True).start()

    async def write(self, line: bytes) -> None:
        """Write a line and its end, whole.

        Raises:
            OSError: nobody reads any more.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((line + b"\n", done))
        await done

    def _work(self) -> None:
        while True:
            line, done = self._lines.get()
            failure: OSError | None = None
            try:
                _write_whole(self._descriptor, line)
            except OSError as error:
                failure = error
            with suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(_settle, done, failure)


def _write_whole(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _settle(done: asyncio.Future[None], failure: OSError | None) -> None:
    if done.done():  # its writer was cancelled
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)
