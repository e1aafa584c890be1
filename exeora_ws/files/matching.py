r"""Where a text stands in a file, byte for byte or nearly, and what stands nearest when it does not.

Line ends are the one difference that an exact match forgives: a `\n` asked for matches `\r\n` too, because that is
how a caller sees a Windows file. Pure functions over bytes.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

MOST_LISTED = 100
"""Overlapping matches are counted up to here; beyond it the count is "more than"."""
_NEAREST_LINES = 20_000
_NEAREST_ASKED = 200
_NEAREST_SHOWN = 12
_WINDOW_ABOVE_BYTES = 50_000


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `start` to `end` of a file."""

    start: int
    end: int


def find_matches(data: bytes, wanted: bytes, *, most: int = MOST_LISTED + 1) -> list[Span]:
    """Find where `wanted` stands, overlaps included, at most `most` times, in order.

    When the text has lone newlines only, each matches a Windows line end too; if some matches are then byte for byte
    and others are not, only the former count.
    """
    if not _forgives_endings(data, wanted):
        return _find_exact(data, wanted, most, step=1)
    spans = _find_across_endings(data, wanted, most, step=1)
    exact = [span for span in spans if data[span.start : span.end] == wanted]
    return exact or spans


def find_all_apart(data: bytes, wanted: bytes) -> list[Span]:
    """Find every match from left to right, none overlapping the one before, as a replacement of all takes them."""
    if _forgives_endings(data, wanted):
        return _find_across_endings(data, wanted, len(data), step=len(wanted))
    return _find_exact(data, wanted, len(data), step=len(wanted))


def _forgives_endings(data: bytes, wanted: bytes) -> bool:
    return b"\n" in wanted and b"\r" not in wanted and b"\r\n" in data


def _find_exact(data: bytes, wanted: bytes, most: int, *, step: int) -> list[Span]:
    spans: list[Span] = []
    start = data.find(wanted)
    while start >= 0 and len(spans) < most:
        spans.append(Span(start, start + len(wanted)))
        start = data.find(wanted, start + step)
    return spans


def _find_across_endings(data: bytes, wanted: bytes, most: int, *, step: int) -> list[Span]:
    """Search with every line end made a newline, and give the spans as they are in `data`."""
    found = _find_exact(data.replace(b"\r\n", b"\n"), wanted, most, step=step)
    if not found:
        return []
    # Where the newline of each Windows line end has come to lie: the n-th is n bytes further left than its `\r` was.
    newlines = [position - number for number, position in enumerate(_positions(data, b"\r\n"))]
    return [
        Span(span.start + bisect_left(newlines, span.start), span.end + bisect_left(newlines, span.end))
        for span in found
    ]


def count_lines(data: bytes) -> int:
    r"""Count lines as every tool does: by `\n`, and a last one without it."""
    return data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


def find_line(data: bytes, position: int) -> int:
    """Give the number, from 1, of the line that holds byte `position`."""
    return data.count(b"\n", 0, position) + 1


def find_line_span(data: bytes, first: int, last: int) -> Span:
    """Give the bytes of lines `first` to `last` (from 1, both included); past the end means the last line."""
    starts = [0, *(position + 1 for position in _positions(data, b"\n"))]
    if starts[-1] == len(data) and len(starts) > 1:
        starts.pop()
    start = starts[first - 1] if first <= len(starts) else len(data)
    return Span(start, starts[last] if last < len(starts) else len(data))


def _positions(data: bytes, wanted: bytes) -> Iterator[int]:
    position = data.find(wanted)
    while position >= 0:
        yield position
        position = data.find(wanted, position + len(wanted))


def find_loose_matches(data: bytes, wanted: bytes, *, within: Span | None = None) -> list[Span]:
    """Find runs of whole lines equal to `wanted` but for white space; blank lines at its ends do not count.

    Each span ends before the last line's own line end, as `wanted` does without one; with one, after it.
    """
    asked = [b"".join(line.split()) for line in wanted.split(b"\n")]
    ends_line = wanted.endswith(b"\n")
    while asked and not asked[-1]:
        asked.pop()
    while asked and not asked[0]:
        asked.pop(0)
    if not asked:
        return []
    within = within or Span(0, len(data))
    lines = data[within.start : within.end].split(b"\n")
    starts, position = [], within.start
    for line in lines:
        starts.append(position)
        position += len(line) + 1
    bare = [b"".join(line.split()) for line in lines]
    return [
        Span(starts[index], _end_of_run(data, starts[index + len(asked) - 1], lines[index + len(asked) - 1], ends_line))
        for index in range(len(bare) - len(asked) + 1)
        if bare[index] == asked[0] and bare[index : index + len(asked)] == asked
    ]


def _end_of_run(data: bytes, start: int, line: bytes, ends_line: bool) -> int:
    end = start + len(line)
    if ends_line:
        return min(end + 1, len(data))
    return end - line.endswith(b"\r")


@dataclass(frozen=True, slots=True)
class Nearest:
    """The lines most like a text that was not found."""

    first_line: int
    last_line: int
    text: str
    """The lines themselves, at most a dozen."""
    difference: str
    """What keeps them from matching, in a few words."""


def find_nearest(data: bytes, wanted: bytes) -> Nearest | None:
    """Find the lines most like `wanted`; None when nothing is even close. Looks at a bounded part of a huge file."""
    asked = wanted.strip(b"\r\n").split(b"\n")
    start = _find_window(data, asked)
    above = data.count(b"\n", 0, start)
    lines = data[start:].split(b"\n", _NEAREST_LINES)[:_NEAREST_LINES]
    first = _vote(lines, asked)
    if first is None:
        first = _closest_line(lines, asked)
    if first is None:
        return None
    last = min(first + len(asked), len(lines))
    found = lines[first:last]
    shown = b"\n".join(found[:_NEAREST_SHOWN]).decode("utf-8", "replace")
    return Nearest(above + first + 1, above + last, shown[:2_000], _name_difference(found, asked))


def _find_window(data: bytes, asked: list[bytes]) -> int:
    """Give where to start looking: the top, or some way above the longest line asked for in a huge file."""
    if data.count(b"\n") <= _NEAREST_LINES:
        return 0
    anchor = data.find(max((line.strip() for line in asked), key=len))
    return max(data.rfind(b"\n", 0, max(anchor - _WINDOW_ABOVE_BYTES, 0)) + 1, 0)


def _vote(lines: list[bytes], asked: list[bytes]) -> int | None:
    """Let each line asked for that stands somewhere vote for where the whole would begin; rare lines weigh more."""
    places: dict[bytes, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(b"".join(line.split()), []).append(number)
    votes: dict[int, float] = {}
    for offset, line in enumerate(asked[:_NEAREST_ASKED]):
        bare = b"".join(line.split())
        here = places.get(bare, ()) if bare else ()
        for number in here[:200]:
            if number >= offset:
                votes[number - offset] = votes.get(number - offset, 0.0) + 1 / len(here)
    return max(votes, key=lambda first: (votes[first], -first), default=None)


def _closest_line(lines: list[bytes], asked: list[bytes]) -> int | None:
    """Find the line most like the longest one asked for."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - only a miss needs it

    offset = max(range(len(asked)), key=lambda index: len(asked[index].strip()))
    matcher = SequenceMatcher(b=asked[offset].strip()[:500].decode("utf-8", "replace"))
    best, best_ratio = None, 0.6
    for number, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:500].decode("utf-8", "replace"))
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = number, ratio
    return None if best is None else max(best - offset, 0)


def _name_difference(found: list[bytes], asked: list[bytes]) -> str:
    if [line.rstrip(b"\r") for line in found] == [line.rstrip(b"\r") for line in asked]:
        return "only the line ends differ"
    if [b"".join(line.split()) for line in found] == [b"".join(line.split()) for line in asked]:
        return "only white space differs"
    return "the text differs"
