r"""Which line ends an inserted text takes, so that an edit of some lines leaves the ends of the others alone.

A caller that writes `\r` itself speaks in bytes and is taken at its word.
"""

from exeora_ws.files.matching import Span

_LINES_COMPARED = 1_000


def adopt_endings(data: bytes, span: Span, old: bytes, new: bytes) -> bytes:
    """Give `new` with the line ends of the place it goes to: of `span` in `data`, which matched `old`."""
    if b"\n" not in new or b"\r" in new or b"\r" in old:
        return new
    region = data[span.start : span.end]
    if b"\n" not in region:
        return new.replace(b"\n", _ending_at(data, span.end))
    if b"\r\n" not in region:
        return new
    if region.count(b"\r\n") == region.count(b"\n"):
        return new.replace(b"\n", b"\r\n")
    return _join(_match_lines(region.split(b"\n"), old.split(b"\n"), new.split(b"\n")), new)


def _ending_at(data: bytes, position: int) -> bytes:
    """Give the line end of the line at `position`; on a last line without one, that of the line before."""
    newline = data.find(b"\n", position)
    if newline < 0:
        newline = data.rfind(b"\n", 0, position)
    return b"\r\n" if newline > 0 and data[newline - 1 : newline] == b"\r" else b"\n"


def _match_lines(region: list[bytes], old: list[bytes], new: list[bytes]) -> list[bytes]:
    """Give the line end for each line of `new` but the last: its own where the line stays, its neighbour's else."""
    endings = [b"\r\n" if line.endswith(b"\r") else b"\n" for line in region[:-1]]
    result: list[bytes] = []
    for tag, first, last, new_first, new_last in _compare(old, new):
        for index in range(new_first, new_last):
            inside = min(first + index - new_first, last - 1) if tag != "insert" else first - 1
            result.append(endings[max(min(inside, len(endings) - 1), 0)])
    return result[: len(new) - 1]


def _compare(old: list[bytes], new: list[bytes]) -> list[tuple[str, int, int, int, int]]:
    from difflib import SequenceMatcher  # noqa: PLC0415 - only mixed line ends need it

    if max(len(old), len(new)) > _LINES_COMPARED:
        return [("replace", 0, len(old), 0, len(new))]
    return list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())


def _join(endings: list[bytes], new: bytes) -> bytes:
    lines = new.split(b"\n")
    return b"".join(line + end for line, end in zip(lines, [*endings, b""], strict=True))
