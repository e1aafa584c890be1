"""Choose one of some workspaces without a terminal: a numbered list on stderr, narrowed by the lines that come."""

import sys
from collections.abc import Sequence

from exeora_cli import answer
from exeora_cli.fuzzy import Row, narrow
from exeora_cli.plain import align, show_text


def choose(rows: Sequence[Row]) -> str | None:
    """Ask which row is meant, again and again while more than one fits; gives its first cell.

    None at the end of the input, or for an empty line.
    """
    shown = list(rows)
    while True:
        _print(shown)
        typed = sys.stdin.readline().strip()
        if not typed:
            sys.stderr.write("\n")
            return None
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
