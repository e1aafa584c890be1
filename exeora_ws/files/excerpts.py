"""The line around a match, out of a file open inside the root, at the cost of the part that is shown."""

import os
from dataclasses import dataclass

from exeora_ws.files.reading import BOM, trim_character
from exeora_ws.limits import GREP_LINE_CHARACTERS

_BEFORE_CHARACTERS = 100
_SPAN_BYTES = 4 * GREP_LINE_CHARACTERS
_TRANSCODED_BYTES = 20_000_000
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text of a line; `cut` when it is not the whole of it."""

    text: str
    cut: bool


class LineReader:
    """Reads lines of one open file by byte offset, as ripgrep gives them: in UTF-8, behind the BOM."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        head = os.pread(descriptor, len(BOM), 0)
        self._base = len(BOM) if head == BOM else 0
        encoding = _UTF16.get(head[:2])
        self._text = None if encoding is None else self._transcode(encoding)

    def _transcode(self, encoding: str) -> bytes:
        raw = os.pread(self._descriptor, _TRANSCODED_BYTES, 2)
        return raw.decode(encoding, "replace").encode()

    def _read(self, start: int, end: int) -> bytes:
        if self._text is not None:
            return self._text[start:end]
        return os.pread(self._descriptor, end - start, self._base + start)

    def read_line(self, offset: int, column: int) -> Excerpt:
        """Give the line that starts at `offset`, cut to the limit around byte `column` (from 1) when it is long."""
        if self._text is not None and offset >= len(self._text):
            return Excerpt("", cut=True)  # too far down a UTF-16 file to be shown
        middle = offset + column - 1
        first = max(offset, middle - _SPAN_BYTES)
        before = self._read(first, middle)
        after = self._read(middle, middle + _SPAN_BYTES + 1)
        newline = after.find(b"\n")
        ended = newline >= 0 or len(after) <= _SPAN_BYTES
        after = after[:newline].removesuffix(b"\r") if newline >= 0 else after
        head = _decode_tail(before) if first > offset else before.decode("utf-8", "replace")
        tail = (after if ended else trim_character(after)).decode("utf-8", "replace")
        return _fit(head, tail, whole=ended and first == offset)


def _fit(head: str, tail: str, *, whole: bool) -> Excerpt:
    if whole and len(head) + len(tail) <= GREP_LINE_CHARACTERS:
        return Excerpt(head + tail, cut=False)
    keep = max(_BEFORE_CHARACTERS, GREP_LINE_CHARACTERS - len(tail))
    text = (head[-keep:] + tail)[:GREP_LINE_CHARACTERS]
    return Excerpt(text, cut=True)


def _decode_tail(raw: bytes) -> str:
    """Decode bytes that may begin inside a character."""
    return raw.decode("utf-8", "replace").lstrip("\ufffd")
