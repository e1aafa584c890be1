"""Hunks: replacements that may say where they belong, as patch texts do. Pure.

A plain hunk must match exactly once. A hunk out of a patch text is whole lines: a line number chooses the nearest of
several matches; anchors, lines that stand above, choose the first match below them; without either, one match must be
the only one below the hunk before.
"""

from dataclasses import dataclass

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.files.endings import adopt_endings
from exeora_ws.files.matching import Span, find_line, find_line_span, find_matches
from exeora_ws.files.replacing import Replacement, encode_side, explain_miss, replace_text


@dataclass(frozen=True, slots=True)
class Hunk:
    """Replace `old` by `new`: text that must stand there once."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class LineHunk(Hunk):
    """Replace whole lines by others.

    Args:
        old: the lines; empty to insert.
        new: the lines that shall stand there.
        line: where `old` began in the file the patch was made for, from 1; for an insertion the line before it.
        anchors: lines above it, each below the one before, compared without the white space around them.
        at_end: whether the lines are the file's last.
    """

    line: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False


def apply_hunks(data: bytes, hunks: tuple[Hunk, ...], shown: str) -> bytes:
    """Apply hunks in order.

    Raises:
        InvalidArguments: `empty_old_text`, `nothing_to_change`, `not_unicode`, `missing_field`.
        ToolFailed: `no_match`, `ambiguous_match`.
    """
    if not hunks:
        raise InvalidArguments("oldString, newString: required for update", reason="missing_field")
    position, moved = 0, 0
    for hunk in hunks:
        if not isinstance(hunk, LineHunk):
            data = replace_text(data, Replacement(hunk.old, hunk.new), shown).data
            continue
        old, new = encode_side(hunk.old, "old"), encode_side(hunk.new, "new")
        if old and not data.endswith(b"\n") and old.endswith(b"\n") and not _find_lines(data, old):
            # Patch texts of agents cannot say that the last line has no newline.
            old, new = old[:-1], new.removesuffix(b"\n")
        span = _place(data, hunk, old, position, moved)
        if span is None:
            raise explain_miss(data, old or b"\n", new, shown)
        inserted = adopt_endings(data, span, old, new)
        if not old:
            inserted = _separate(data, span.start, inserted)
        data = data[: span.start] + inserted + data[span.end :]
        position = span.start + len(inserted)
        moved += hunk.new.count("\n") - hunk.old.count("\n")
    return data


def _place(data: bytes, hunk: LineHunk, old: bytes, position: int, moved: int) -> Span | None:
    if hunk.line is not None:
        return _place_by_line(data, old, hunk.line + moved)
    for anchor in hunk.anchors:
        position = _find_anchor(data, anchor, position)
    if not old:
        end = position if hunk.anchors else len(data)
        return Span(end, end)
    spans = _find_lines(data, old, position)
    if hunk.at_end:
        return spans[-1] if spans else None
    if len(spans) > 1 and not hunk.anchors:
        raise ToolFailed(
            f"the lines of a hunk stand there {len(spans)} times",
            reason="ambiguous_match",
            hint="give more lines of context, or the line above after @@",
            data={"lines": [find_line(data, span.start) for span in spans[:20]]},
        )
    return spans[0] if spans else None


def _place_by_line(data: bytes, old: bytes, line: int) -> Span | None:
    if not old:
        end = find_line_span(data, 1, line).end if line > 0 else 0
        return Span(end, end)
    return min(_find_lines(data, old), key=lambda span: abs(find_line(data, span.start) - line), default=None)


def _find_lines(data: bytes, old: bytes, position: int = 0) -> list[Span]:
    """Find where `old` stands as whole lines, from `position` on."""
    found = (Span(span.start + position, span.end + position) for span in find_matches(data[position:], old))
    return [
        span
        for span in found
        if (span.start == 0 or data[span.start - 1 : span.start] == b"\n")
        and (old.endswith(b"\n") or span.end == len(data))
    ]


def _find_anchor(data: bytes, anchor: str, position: int) -> int:
    """Give where the line after the anchor begins.

    Raises:
        ToolFailed: `no_match`.
    """
    wanted = encode_side(anchor, "old").strip()
    while position < len(data):
        end = data.find(b"\n", position) + 1 or len(data)
        if data[position:end].strip() == wanted:
            return end
        position = end
    raise ToolFailed(f"the line {anchor.strip()[:200]!r} does not stand there", reason="no_match")


def _separate(data: bytes, position: int, new: bytes) -> bytes:
    """Start inserted lines on a line of their own, at the end of a file that has no final newline."""
    return b"\n" + new if position and data[position - 1 : position] != b"\n" else new
