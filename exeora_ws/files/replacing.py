"""Replacing text in bytes: which place is meant, and what to say when it is none or several. Pure."""

from dataclasses import dataclass

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.files.endings import adopt_endings
from exeora_ws.files.matching import (
    MOST_LISTED,
    Span,
    count_lines,
    find_all_apart,
    find_line,
    find_line_span,
    find_loose_matches,
    find_matches,
    find_nearest,
)

_LINES_NAMED = 20


@dataclass(frozen=True, slots=True)
class Replacement:
    """What to replace by what. Both texts are literal."""

    old: str
    new: str
    every: bool = False
    """Replace every match instead of requiring exactly one."""
    loose: bool = False
    """When nothing matches exactly, look for whole lines that differ in white space only."""
    first_line: int | None = None
    """Look only from this line on (from 1) …; with an empty `old`, the lines themselves are replaced."""
    last_line: int | None = None
    """… to this one, included; past the end means the last line."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The file's new bytes, and how they came about."""

    data: bytes
    count: int
    loose: bool
    spans: tuple[Span, ...]
    """What was replaced, in the old bytes."""


def replace_text(data: bytes, replacement: Replacement, shown: str) -> Replaced:
    """Replace text in the bytes of a UTF-8 file named `shown`.

    Raises:
        InvalidArguments: `empty_old_text`, `nothing_to_change`, `not_unicode`.
        ToolFailed: `no_match`, `ambiguous_match`.
    """
    old, new = encode_side(replacement.old, "old"), encode_side(replacement.new, "new")
    if not old and replacement.first_line is not None:
        return _replace_lines(data, _find_within(data, replacement), new)
    if not old:
        raise InvalidArguments("the old text is empty, so it names no place in the file", reason="empty_old_text")
    if old == new:
        raise InvalidArguments("the old and the new text are the same", reason="nothing_to_change")
    within = _find_within(data, replacement)
    spans, loose = _find_spans(data, old, replacement, within)
    if not spans:
        raise explain_miss(data, old, new, shown)
    if len(spans) > 1 and not replacement.every:
        raise _explain_ambiguity(data, spans, shown)
    return _splice(data, spans, old, new, loose=loose)


def encode_side(text: str, which: str) -> bytes:
    """Encode one side of a replacement. Raises `InvalidArguments`, `not_unicode`, for half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArguments(f"the {which} text holds half a surrogate pair", reason="not_unicode") from None


def _find_within(data: bytes, replacement: Replacement) -> Span:
    if replacement.first_line is None and replacement.last_line is None:
        return Span(0, len(data))
    first = 1 if replacement.first_line is None else replacement.first_line
    last = replacement.last_line
    lines = count_lines(data)
    if first < 1 or first > max(lines, 1) or (last is not None and last < first):
        raise InvalidArguments(
            f"lines {first} to {last or 'the end'} are no range of a file with {lines} lines",
            reason="invalid_range",
            data={"totalLines": lines},
        )
    return find_line_span(data, first, data.count(b"\n") + 1 if last is None else last)


def _replace_lines(data: bytes, span: Span, new: bytes) -> Replaced:
    """Put other lines in the place of whole lines; the last of them ends as the last one there did."""
    if new and data[span.start : span.end].endswith(b"\n") and not new.endswith(b"\n"):
        new += b"\n"
    return _splice(data, [span], data[span.start : span.end].replace(b"\r\n", b"\n"), new, loose=False)


def _find_spans(data: bytes, old: bytes, replacement: Replacement, within: Span) -> tuple[list[Span], bool]:
    part = data[within.start : within.end]
    found = find_all_apart(part, old) if replacement.every else find_matches(part, old)
    spans = [Span(span.start + within.start, span.end + within.start) for span in found]
    if spans or not replacement.loose:
        return spans, False
    return find_loose_matches(data, old, within=within), True


def _splice(data: bytes, spans: list[Span], old: bytes, new: bytes, *, loose: bool) -> Replaced:
    parts, position = [], 0
    for span in spans:
        asked = data[span.start : span.end].replace(b"\r\n", b"\n") if loose else old
        parts += [data[position : span.start], adopt_endings(data, span, asked, new)]
        position = span.end
    parts.append(data[position:])
    return Replaced(b"".join(parts), len(spans), loose, tuple(spans))


def _explain_ambiguity(data: bytes, spans: list[Span], shown: str) -> ToolFailed:
    lines = [find_line(data, span.start) for span in spans[:_LINES_NAMED]]
    count = str(len(spans)) if len(spans) <= MOST_LISTED else f"more than {MOST_LISTED}"
    more = ", …" if len(spans) > _LINES_NAMED else ""
    return ToolFailed(
        f"{shown}: the old text stands there {count} times, on lines {', '.join(map(str, lines))}{more}",
        reason="ambiguous_match",
        hint="include more of the lines around the one that is meant",
        data={"lines": lines, "matches": min(len(spans), MOST_LISTED), "more": len(spans) > MOST_LISTED},
    )


def explain_miss(data: bytes, old: bytes, new: bytes, shown: str) -> ToolFailed:
    """Make the answer to a text that does not stand in the file: what is nearest, and whether `new` is there."""
    facts: dict[str, object] = {}
    message = f"{shown}: the old text does not stand there"
    hint = "read the file again and copy the text from it"
    already = find_matches(data, new, most=_LINES_NAMED) if new.strip() else []
    if already:
        lines = [find_line(data, span.start) for span in already]
        message += f"; the new text already does, on line {', '.join(map(str, lines))}"
        hint = "the change seems to have been made already"
        facts |= {"alreadyApplied": True, "newTextLines": lines}
    nearest = find_nearest(data, old)
    if nearest is not None:
        message += f"; nearest are lines {nearest.first_line} to {nearest.last_line} ({nearest.difference})"
        facts["nearest"] = {
            "firstLine": nearest.first_line,
            "lastLine": nearest.last_line,
            "text": nearest.text,
            "difference": nearest.difference,
        }
    if old.endswith(b"\n") and data.endswith(old.rstrip(b"\r\n")) and old.strip():
        message += "; the file ends there without a newline"
        hint = "leave out the newline at the end of the old text"
    return ToolFailed(message, reason="no_match", hint=hint, data=facts or None)
