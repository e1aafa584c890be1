"""Choose one of some workspaces: a numbered list on stderr, narrowed by what is typed; the answer is one line."""

import sys
from collections.abc import Sequence

from exeora_ws.errors import InvalidArguments

from exeora_cli import answer
from exeora_cli.plain import align, show_text

Row = tuple[str, ...]


def is_subsequence(typed: str, text: str) -> bool:
    """Whether all characters of `typed` are in `text`, in order: how a fuzzy search matches."""
    rest = iter(text.casefold())
    return all(character in rest for character in typed.casefold())


def narrow(rows: Sequence[Row], typed: str) -> list[Row]:
    """Give the rows that fit what was typed: those that hold it as it is, if any, else those that match fuzzily."""
    plain = [row for row in rows if any(typed.casefold() in cell.casefold() for cell in row[:2])]
    return plain or [row for row in rows if any(is_subsequence(typed, cell) for cell in row[:2])]


def pick(rows: Sequence[Row]) -> str:
    """Ask which row is meant, again and again while more than one fits; gives its first cell.

    Raises:
        InvalidArguments: reason `nothing_chosen`, at the end of the input or an empty line.
    """
    shown = list(rows)
    while True:
        _print(shown)
        typed = _read()
        if typed in [row[0] for row in shown]:
            return typed
        if typed.isdecimal():
            if 1 <= int(typed) <= len(shown):
                return shown[int(typed) - 1][0]
            answer.narrate([f"there is no number {typed}"])
            continue
        found = narrow(rows, typed)
        if len(found) == 1:
            return found[0][0]
        if not found:
            answer.narrate([f"nothing fits {typed!r}"])
        shown = found or list(rows)


def _print(rows: Sequence[Row]) -> None:
    numbered = [(f"{number})", *map(show_text, row)) for number, row in enumerate(rows, 1)]
    sys.stderr.write("".join(f"{line}\n" for line in align(numbered)) + "number, or part of a name: ")
    sys.stderr.flush()


def _read() -> str:
    line = sys.stdin.readline()
    if not line.strip():
        sys.stderr.write("\n")
        raise InvalidArguments("no workspace was chosen", reason="nothing_chosen", hint="exeora switch WORKSPACE")
    return line.strip()
