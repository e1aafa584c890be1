r"""Text out of files of any size: one pass that counts, one read of what was asked for.

Lines end at `\n` and nowhere else (contract, section 3); `\r` stays in the text. Memory is one buffer and the answer.
"""

import os
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.files.faults import translated
from exeora_ws.files.kinds import HEAD_BYTES, require_text
from exeora_ws.files.sizes import count_json_bytes
from exeora_ws.files.spot import Spot
from exeora_ws.limits import READ_BYTES, RESULT_TEXT_BYTES
from exeora_ws.storage import FileSignature, is_settled, sign_file

BOM = b"\xef\xbb\xbf"
_NEWLINE = 0x0A
_BUFFER_BYTES = 262_144
_LARGE_BYTES = 1_000_000
"""Files above this take a moment to count."""
_KEPT = 16


@dataclass(frozen=True, slots=True)
class TextRange:
    """Part of a text file. Lines and columns count from 1, columns in bytes."""

    content: str
    total_lines: int
    first_line: int
    truncated: bool
    """Whether the file goes on after `content`."""
    next_line: int | None
    """The line to go on from; None at the end."""
    next_column: int | None
    """The column in `next_line` to go on from, when a line longer than the limit was cut."""
    replaced: int
    """How many U+FFFD in `content` stand for bytes that are not UTF-8."""
    raw: bytes
    """The bytes behind `content`, with the byte order mark when it begins at the file's beginning."""


@dataclass(frozen=True, slots=True)
class _Census:
    """What one pass over the file found out."""

    start: int | None
    """Offset of the line asked for; None when the file has fewer."""
    total_lines: int
    end: int


class _Counts:
    """What was counted in large files, so that whoever reads on has nothing counted again. Thread-safe.

    It is used as long as a file's times say that nobody has written it; one that was written just now is counted anew.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[FileSignature, tuple[_Census, int]] = OrderedDict()

    def keep(self, signature: FileSignature, census: _Census, line: int, start: int) -> None:
        """Keep a count, and where the line starts that is likely to be asked for next.

        Args:
            signature: the file's, from before it was counted.
            census: the count.
            line: the line.
            start: the offset of its first byte.
        """
        if not is_settled(signature):
            return
        with self._lock:
            self._known[signature] = (replace(census, start=start), line)
            self._known.move_to_end(signature)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    def recall(self, descriptor: int, signature: FileSignature, wanted: int) -> _Census | None:
        """Give a count that still holds, if it says where line `wanted` starts."""
        with self._lock:
            census, line = self._known.get(signature, (None, 0))
        if census is None or census.start is None or line != wanted:
            return None
        return census if os.pread(descriptor, 1, census.start - 1) == b"\n" else None


_COUNTS = _Counts()


def read_text(
    spot: Spot,
    *,
    offset: int = 1,
    limit: int | None = None,
    column: int = 1,
    max_bytes: int = READ_BYTES,
    cancellation: Cancellation | None = None,
) -> TextRange:
    """Read lines `offset` to `offset + limit - 1`, at most `max_bytes`, cut at a line's end.

    A single line longer than `max_bytes` is cut at a character and continued with `column`. A UTF-8 BOM is no text.

    Less is given of a text that JSON would make larger than an answer may be.

    Raises:
        InvalidArguments: `invalid_range`, `offset_past_end` (states the line count), `column_past_end`.
        PathNotFound, ToolFailed: nothing there, no regular file, `binary`, `permission_denied`, `stale`.
        Cancelled: during the count.
    """
    _check_range(offset, limit, column)
    descriptor = spot.open_file()
    try:
        with translated(spot.shown):
            return _read(descriptor, spot.shown, offset, limit, column, max_bytes, cancellation or Cancellation())
    finally:
        os.close(descriptor)


def number_lines(text: TextRange, *, separator: str = "| ") -> str:
    """Put its number before each line, right-aligned to the largest."""
    lines = text.content.split("\n")
    ended = lines[-1] == ""
    lines = lines[:-1] if ended else lines
    width = len(str(text.first_line + len(lines) - 1))
    numbered = "\n".join(f"{number:>{width}}{separator}{line}" for number, line in enumerate(lines, text.first_line))
    return numbered + "\n" if ended and lines else numbered


def _check_range(offset: int, limit: int | None, column: int) -> None:
    for name, value in (("offset", offset), ("limit", 1 if limit is None else limit), ("column", column)):
        if value < 1:
            raise InvalidArguments(f"{name}: counts from 1, not {value}", reason="invalid_range")


def _read(  # noqa: PLR0917 - the arguments of `read_text`, checked
    descriptor: int,
    shown: str,
    offset: int,
    limit: int | None,
    column: int,
    max_bytes: int,
    cancellation: Cancellation,
) -> TextRange:
    head = os.pread(descriptor, HEAD_BYTES, 0)
    require_text(head, shown)
    base = len(BOM) if head.startswith(BOM) else 0
    signature = sign_file(descriptor)
    known = _COUNTS.recall(descriptor, signature, offset)
    census = _count_lines(descriptor, base, offset, cancellation) if known is None else known
    if census.start is None:
        raise InvalidArguments(
            f"{shown}: offset {offset} is past the end: the file has {_lines(census.total_lines)}",
            reason="offset_past_end",
            data={"totalLines": census.total_lines},
        )
    start = census.start + column - 1
    if column > 1:
        _require_column(descriptor, census, start, shown)
    raw = os.pread(descriptor, min(max_bytes + 1, census.end - start), start)
    if len(raw) < min(max_bytes + 1, census.end - start):
        raise ToolFailed(f"{shown}: became shorter while it was being read", reason="stale", hint="read it again")
    part, content, replaced = _fit(raw, limit, max_bytes, shown)
    truncated = start + len(part) < census.end
    cut_inside = truncated and not part.endswith(b"\n")
    next_line = offset + part.count(b"\n")
    if truncated and not cut_inside and census.end > _LARGE_BYTES:
        _COUNTS.keep(signature, census, next_line, start + len(part))
    return TextRange(
        content=content,
        total_lines=census.total_lines,
        first_line=offset,
        truncated=truncated,
        next_line=next_line if truncated else None,
        next_column=column + len(part) if cut_inside else None,
        replaced=replaced,
        raw=head[:base] + part if start == base else part,
    )


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _count_lines(descriptor: int, base: int, wanted: int, cancellation: Cancellation) -> _Census:
    """Count every line up to where the file ends now, and note where line `wanted` starts."""
    end = os.fstat(descriptor).st_size or sys.maxsize  # what says 0 may be made while it is read, as under /proc
    buffer = bytearray(_BUFFER_BYTES)
    position, newlines, unended = base, 0, False
    start: int | None = base if wanted == 1 else None
    os.lseek(descriptor, base, os.SEEK_SET)
    while size := min(os.readv(descriptor, [buffer]), end - position):
        cancellation.raise_if_cancelled()
        here = buffer.count(b"\n", 0, size)
        if start is None and newlines + here >= wanted - 1:
            start = position + _find_newline(buffer, size, wanted - 1 - newlines) + 1
        newlines += here
        position += size
        unended = buffer[size - 1] != _NEWLINE
    total = newlines + unended
    past = start is not None and start >= position and wanted > 1
    return _Census(None if past else start, total, position)


def _find_newline(buffer: bytearray, size: int, number: int) -> int:
    """Find the `number`-th newline (from 1) by halving: in all no more bytes are looked at than the buffer has."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        before = buffer.count(b"\n", low, middle)
        if before >= number:
            high = middle
        else:
            low, number = middle, number - before
    return low


def _require_column(descriptor: int, census: _Census, start: int, shown: str) -> None:
    position = census.start or 0
    while position < min(start, census.end):
        chunk = os.pread(descriptor, min(_BUFFER_BYTES, start - position), position)
        if not chunk or b"\n" in chunk:
            break
        position += len(chunk)
    if position < start or start >= census.end:
        raise InvalidArguments(f"{shown}: the line has fewer bytes than that column", reason="column_past_end")


def _cut(raw: bytes, limit: int | None, max_bytes: int) -> bytes:
    """Take at most `limit` lines and `max_bytes`, whole lines if there is one, else whole characters."""
    if limit is not None:
        raw = _take_lines(raw, limit)
    if len(raw) <= max_bytes:
        return raw
    newline = raw.rfind(b"\n", 0, max_bytes)
    return raw[: newline + 1] if newline >= 0 else trim_character(raw[:max_bytes])


def _fit(raw: bytes, limit: int | None, max_bytes: int, shown: str) -> tuple[bytes, str, int]:
    """Cut, and cut again while the text would be too long as JSON; gives the bytes, and them decoded for showing."""
    while True:
        part = _cut(raw, limit, max_bytes)
        if b"\0" in part:
            require_text(part, shown)
        content, replaced = decode_shown(part)
        size = count_json_bytes(content)
        if size <= RESULT_TEXT_BYTES:
            return part, content, replaced
        max_bytes = max(1, len(part) * RESULT_TEXT_BYTES // size)


def _take_lines(raw: bytes, limit: int) -> bytes:
    if raw.count(b"\n") < limit:
        return raw
    return raw[: _find_newline(bytearray(raw), len(raw), limit) + 1]


def trim_character(raw: bytes) -> bytes:
    """Take off a UTF-8 character that the end cuts in two; never everything."""
    for back in range(1, min(4, len(raw))):
        try:
            raw[-back:].decode()
        except UnicodeDecodeError as error:
            if error.start == 0 and error.reason == "unexpected end of data":
                return raw[:-back]
    return raw


def decode_shown(raw: bytes) -> tuple[str, int]:
    """Decode for showing; gives also how many U+FFFD stand for bytes that are not UTF-8."""
    try:
        return raw.decode(), 0
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        return text, text.count("\ufffd") - raw.count(b"\xef\xbf\xbd")
