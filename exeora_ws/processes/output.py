"""What a process wrote: bytes in, text out, the newest kept. Nothing here does I/O.

Text is decoded as UTF-8; a byte that is not UTF-8 becomes U+FFFD, a character is never cut in two.
"""

import codecs
import threading
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

_MERGE_BYTES = 8_192
_SLACK_BYTES = 65_536
_CHARACTER_BYTES = 4
"""The longest UTF-8 character; a limit below it could hold no progress."""


_CONTINUATION = 0x80
"""The two highest bits of every byte of a character but its first."""


class Stream(IntEnum):
    """Which of a command's two outputs."""

    STDOUT = 1
    STDERR = 2


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a process's output. Following `next_cursor` from the start gives every byte once."""

    text: str
    next_cursor: int
    skipped: int
    """Bytes between the cursor that was asked for and the first byte of `text`: written, and no longer kept."""


class Ring:
    """The last `limit` bytes of one stream. Cursors count every byte that was ever written."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self.end = 0
        """How many bytes were written altogether."""

    @property
    def start(self) -> int:
        """Cursor of the oldest byte that is kept."""
        return max(0, self.end - self._limit)

    def append(self, data: bytes) -> None:
        """Take what was written; the oldest bytes go."""
        self.end += len(data)
        self._data += data[-self._limit :]
        if len(self._data) > self._limit + _SLACK_BYTES:
            del self._data[: -self._limit]

    def read(self, cursor: int, limit: int, *, final: bool) -> Chunk:
        """Read on from `cursor`, at most `limit` bytes (no fewer than 4).

        Args:
            cursor: between 0 and `end`.
            limit: bytes.
            final: nothing more will come: a character that was begun and not finished is given as U+FFFD.
        """
        begin = max(cursor, self.start)
        if begin > cursor:
            begin += self._count_torn(begin)
        offset = begin - self.end + len(self._data)
        data = bytes(self._data[offset : offset + max(limit, _CHARACTER_BYTES)])
        text, used = decode_whole(data, final=final and begin + len(data) == self.end)
        return Chunk(text, begin + used, begin - cursor)

    def read_kept(self) -> bytes:
        """Give all that is kept, undecoded."""
        return bytes(self._data[-self._limit :])

    def _count_torn(self, begin: int) -> int:
        offset = begin - self.end + len(self._data)
        return count_torn(bytes(self._data[offset : offset + _CHARACTER_BYTES - 1]))


@dataclass(frozen=True, slots=True)
class Piece:
    """What was written in some time: all of it in `head`, or its beginning and its end around `left_out` bytes."""

    head: str
    left_out: int
    tail: str


class Fresh:
    """What was written since it was last taken: its first and its last `half` bytes. For any thread."""

    def __init__(self, half: int) -> None:
        self._half = half
        self._lock = threading.Lock()
        self._head = bytearray()
        self._tail = Ring(half)

    def append(self, data: bytes) -> None:
        """Take what was written."""
        with self._lock:
            room = max(0, self._half - len(self._head))
            self._head += data[:room]
            self._tail.append(data[room:])

    def take(self, *, final: bool) -> Piece:
        """Give it and begin anew. Unless it is `final`, a character that was only begun waits for the next time."""
        with self._lock:
            piece, begun = self._read(final=final)
            self._head, self._tail = bytearray(begun), Ring(self._half)
            return piece

    def _read(self, *, final: bool) -> tuple[Piece, bytes]:
        head, tail = bytes(self._head), self._tail
        if tail.start == 0:
            whole = head + tail.read_kept()
            text, used = decode_whole(whole, final=final)
            return Piece(text, 0, ""), whole[used:]
        text, used = decode_whole(head, final=False)
        rest = tail.read(0, tail.end, final=final)
        begun = tail.end - rest.next_cursor
        return Piece(text, len(head) - used + rest.skipped, rest.text), tail.read_kept()[-begun:] if begun else b""


def decode_whole(data: bytes, *, final: bool) -> tuple[str, int]:
    """Decode all whole characters; gives the text and how many bytes it took. `final` takes every byte."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final)
    pending, _ = decoder.getstate()
    return text, len(data) - len(pending)


def count_torn(data: bytes) -> int:
    """Count the bytes at the front (at most 3) that continue a character whose first byte was dropped."""
    head = data[: _CHARACTER_BYTES - 1]
    return next((n for n, byte in enumerate(head) if byte & 0xC0 != _CONTINUATION), len(head))


class Capture(Protocol):
    """Keeps what a command that is waited for writes."""

    def append(self, stream: Stream, data: bytes) -> None:
        """Take what was written."""
        ...


class Tail:
    """The last `limit` bytes of both outputs together; the oldest goes first, whichever wrote it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: deque[tuple[Stream, bytearray]] = deque()
        self._size = 0
        self._dropped = {Stream.STDOUT: 0, Stream.STDERR: 0}

    @property
    def truncated(self) -> bool:
        """Whether anything was dropped."""
        return any(self._dropped.values())

    def append(self, stream: Stream, data: bytes) -> None:
        """Take what was written."""
        if self._pieces and self._pieces[-1][0] is stream and len(self._pieces[-1][1]) < _MERGE_BYTES:
            self._pieces[-1][1].extend(data)
        else:
            self._pieces.append((stream, bytearray(data)))
        self._size += len(data)
        self.drop_oldest(self._size - self._limit)

    def drop_oldest(self, count: int) -> None:
        """Let go of so many of the oldest bytes; `truncated` is true then."""
        left = min(count, self._size)
        while left > 0:
            left -= self._drop(left)

    def text(self, stream: Stream) -> str:
        """Give what is kept of one output."""
        data = b"".join(piece for owner, piece in self._pieces if owner is stream)
        if self._dropped[stream]:
            data = data[count_torn(data) :]
        return data.decode("utf-8", "replace")

    def _drop(self, excess: int) -> int:
        stream, piece = self._pieces[0]
        count = min(excess, len(piece))
        self._dropped[stream] += count
        self._size -= count
        if count == len(piece):
            self._pieces.popleft()
        else:
            del piece[:count]
        return count


class HeadAndTail:
    """The first and the last bytes of each output, and how many were left out between them."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_limit = head
        self._heads = {Stream.STDOUT: bytearray(), Stream.STDERR: bytearray()}
        self._tails = {Stream.STDOUT: Ring(tail), Stream.STDERR: Ring(tail)}

    def append(self, stream: Stream, data: bytes) -> None:
        """Take what was written."""
        head = self._heads[stream]
        room = max(0, self._head_limit - len(head))
        head += data[:room]
        self._tails[stream].append(data[room:])

    def parts(self, stream: Stream) -> tuple[str, int, str]:
        """Give the head, the bytes left out, and the tail; without a gap everything is in the head."""
        head, tail = bytes(self._heads[stream]), self._tails[stream]
        if tail.start == 0:
            return (head + tail.read_kept()).decode("utf-8", "replace"), 0, ""
        text, used = decode_whole(head, final=False)
        rest = tail.read(0, tail.end, final=True)
        return text, len(head) - used + rest.skipped, rest.text
