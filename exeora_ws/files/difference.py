r"""Unified diffs that `patch` and `git apply` take: lines end at `\n` only, a missing last newline is marked.

Only what lies between the common head and tail is compared, and a change too large to compare is shown as one
replacement: the cost is bounded, the diff is right.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from exeora_ws.files.sizes import count_diff_bytes
from exeora_ws.limits import DIFF_BYTES

_CONTEXT = 3
_COMPARED_LINES = 2_000
_QUOTED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_LAST_CONTROL = "\x1f"

Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Diff:
    """A diff as text. `truncated` says that it was cut, at a line, because it is longer than results may be."""

    text: str
    truncated: bool


def diff_contents(path: str, before: bytes | None, after: bytes | None, *, max_bytes: int = DIFF_BYTES) -> Diff:
    """Compare two contents of one path; None where there is no file.

    Content that is not UTF-8 shows U+FFFD for what cannot be decoded; binary content is only named.
    """
    if before == after:
        return Diff("", truncated=False)
    old_name = "/dev/null" if before is None else quote_name(f"a/{path}")
    new_name = "/dev/null" if after is None else quote_name(f"b/{path}")
    if b"\0" in (before or b"") or b"\0" in (after or b""):
        return Diff(f"Binary files {old_name} and {new_name} differ\n", truncated=False)
    old, new = _split(before or b""), _split(after or b"")
    hunks = _format_hunks(old, new, _find_groups(old, new))
    return _collect([f"--- {old_name}\n", f"+++ {new_name}\n"], hunks, max_bytes)


def diff_with_header(path: str, before: bytes | None, after: bytes | None, header: str, *, max_bytes: int) -> Diff:
    """Compare as `diff_contents` does, under git's own header lines, which also carry what no hunk can."""
    body = diff_contents(path, before, after, max_bytes=max_bytes)
    return Diff(header + body.text, body.truncated)


def quote_name(name: str) -> str:
    """Give a file name as git writes it in a diff: in C quotes when it holds a quote, backslash or control character.

    A name with a space ends in a tab, so that `patch` sees where it ends.
    """
    try:
        name.encode()
        special = any(char in _QUOTED or char <= _LAST_CONTROL or char == "\x7f" for char in name)
    except UnicodeEncodeError:
        special = True
    if not special:
        return name + "\t" if " " in name else name
    return '"' + "".join(_quote_character(char) for char in name) + '"'


def _quote_character(char: str) -> str:
    if char in _QUOTED:
        return _QUOTED[char]
    if char <= _LAST_CONTROL or char == "\x7f" or "\udc80" <= char <= "\udcff":
        return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))
    return char


def _split(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _find_groups(old: list[bytes], new: list[bytes]) -> Iterable[list[Opcode]]:
    """Give the hunks as groups of opcodes, three lines of context around each."""
    head = _count_common(old, new)
    tail = _count_common(old[head:][::-1], new[head:][::-1])
    opcodes = _compare(old, new, head, len(old) - tail, len(new) - tail)
    if head:
        opcodes.insert(0, ("equal", 0, head, 0, head))
    if tail:
        opcodes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return _group(opcodes)


def _count_common(old: list[bytes], new: list[bytes]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _compare(old: list[bytes], new: list[bytes], head: int, old_end: int, new_end: int) -> list[Opcode]:
    """Compare what lies between the common head and tail."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - slow to import, and reads never need it

    before, after = old[head:old_end], new[head:new_end]
    if not before and not after:
        return []
    if len(before) > _COMPARED_LINES or len(after) > _COMPARED_LINES or not before or not after:
        tag = "insert" if not before else "replace" if after else "delete"
        return [(tag, head, old_end, head, new_end)]
    matcher = SequenceMatcher(None, before, after)
    return [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in matcher.get_opcodes()]


def _group(opcodes: list[Opcode]) -> Iterator[list[Opcode]]:
    """Cut a list of opcodes at long stretches of equal lines."""
    group: list[Opcode] = []
    for index, (tag, i, j, k, m) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, i, j, k, m))
            continue
        if group and (j - i > 2 * _CONTEXT or index == len(opcodes) - 1):
            end = min(_CONTEXT, j - i)
            yield [*group, ("equal", i, i + end, k, k + end)]
            group = []
        if not group:
            keep = min(_CONTEXT, j - i)
            group = [("equal", j - keep, j, m - keep, m)] if index < len(opcodes) - 1 else []
        else:
            group.append((tag, i, j, k, m))
    if any(tag != "equal" for tag, *_ in group):
        yield group


def _format_hunks(old: list[bytes], new: list[bytes], groups: Iterable[list[Opcode]]) -> Iterator[str]:
    for group in groups:
        (_, old_first, _, new_first, _), (_, _, old_last, _, new_last) = group[0], group[-1]
        yield f"@@ -{_range(old_first, old_last)} +{_range(new_first, new_last)} @@\n"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from _mark(" ", old[i:j])
            else:
                yield from _mark("-", old[i:j])
                yield from _mark("+", new[k:m])


def _range(first: int, last: int) -> str:
    count = last - first
    if count == 1:
        return str(first + 1)
    return f"{first + 1 if count else first},{count}"


def _mark(mark: str, lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        text = mark + line.decode("utf-8", "replace")
        yield text if text.endswith("\n") else text + "\n\\ No newline at end of file\n"


def _collect(header: list[str], hunks: Iterator[str], max_bytes: int) -> Diff:
    parts, size = header, 0
    for part in hunks:
        size += count_diff_bytes(part)
        if size > max_bytes:
            return Diff("".join(parts), truncated=True)
        parts.append(part)
    return Diff("".join(parts), truncated=False)
