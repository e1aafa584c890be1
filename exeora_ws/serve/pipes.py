"""Standard input and output as the wire, taken away from everything else in the process.

The library's own transport drops a line that is no message, and the client waits for ever; and it repairs bytes that
are not UTF-8 silently, which would end up in somebody's file. Imports little: it is used before anything else is.
"""

import fcntl
import os
from _thread import allocate_lock
from select import select

from exeora_ws.limits import MESSAGE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_PIPE_BYTES = 1_048_576
"""What Linux lets everybody have."""
_CHUNK_BYTES = 65_536
_MOST_CHUNK_BYTES = 1_048_576


class StandardStreams:
    """Private descriptors of input and output; 0 reads nothing from now on and 1 leads to standard error.

    So a stray `print` and a child that inherits them cannot touch the wire. Undone at the end.
    """

    def __enter__(self) -> "Self":
        """Take them."""
        self.wire_in, self.wire_out = (fcntl.fcntl(d, fcntl.F_DUPFD_CLOEXEC, 3) for d in (0, 1))
        for descriptor in (self.wire_in, self.wire_out):
            _widen(descriptor)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no standard error
            os.dup2(nothing, 1)
        os.close(nothing)
        return self

    def __exit__(
        self, _kind: "type[BaseException] | None", _error: "BaseException | None", _trace: "TracebackType | None"
    ) -> None:
        """Give them back."""
        os.dup2(self.wire_in, 0)
        os.dup2(self.wire_out, 1)


def _widen(descriptor: int) -> None:
    """Let a pipe hold a long message whole, so that its two ends need not take turns at every 64 KB."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (OSError, AttributeError):  # no pipe, more than this user may have, or not Linux
        return


class TooLong:
    """Stands in the place of a line of more than `MESSAGE_BYTES`, which was thrown away."""


class LineReader:
    """Lines from a descriptor of any kind. For one thread at a time."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.ended = False
        """Whether nothing comes any more but what has been read."""
        self._ready: list[bytes | TooLong] = []
        self._line = bytearray()
        self._skipping = False

    def has_line(self, seconds: float) -> bool:
        """Whether `read` gives something at once, or does within so many seconds."""
        while not self._ready and not self.ended:
            if not select([self.descriptor], [], [], seconds)[0]:
                return False
            self._fill()
        return True

    def read(self) -> "bytes | TooLong | None":
        """Wait for a line; gives it without its end, empty ones left out, and None at the end of the input.

        A last line without an end counts.
        """
        while not self._ready:
            if self.ended:
                return None
            self._fill()
        return self._ready.pop(0)

    def take_ready(self) -> "list[bytes | TooLong]":
        """Give the lines that have been read and not been given."""
        ready, self._ready = self._ready, []
        return ready

    def read_some(self) -> "list[bytes | TooLong]":
        """Read what is there, or wait for something; gives the lines that are whole by now, if any."""
        self._fill()
        return self.take_ready()

    def _fill(self) -> None:
        """Wait for some bytes and split them into lines."""
        try:
            # A long message comes in fewer pieces that are larger.
            chunk = os.read(self.descriptor, _MOST_CHUNK_BYTES if self._line else _CHUNK_BYTES)
        except OSError:  # as good as the end
            chunk = b""
        if not chunk:
            self.ended = True
            chunk = b"\n"
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._line += end
            if self._skipping or len(self._line) > MESSAGE_BYTES:
                if not self.ended:
                    self._ready.append(TooLong())
            elif self._line.strip():
                self._ready.append(bytes(self._line))
            self._line, self._skipping = bytearray(), False
        self._line += rest
        if len(self._line) > MESSAGE_BYTES:
            self._line, self._skipping = bytearray(), True


class LineWriter:
    """Lines to a descriptor, from any thread, each whole. A reader that has stopped reading holds up who writes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = allocate_lock()

    def write(self, line: bytes) -> None:
        """Write a line and its end.

        Raises:
            OSError: nobody reads any more.
        """
        rest = memoryview(line + b"\n")
        with self._turn:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
