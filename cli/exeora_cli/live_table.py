"""A table at a terminal that is there at once and fills as the answers come; each row is painted where it stands."""

import os
import shutil
import sys
import time
from collections.abc import Sequence

from exeora_cli import answer
from exeora_cli.colours import colour, wants_colour
from exeora_cli.plain import measure

Cells = tuple[str, ...]
Styles = tuple[str | None, ...]

_ERASE_LINE = "\x1b[K"
_ERASE_BELOW = "\x1b[J"
_PAUSE_SECONDS = 0.05
_ABOVE = 2
"""Lines of the terminal that stay free: what is painted must not scroll."""


def lay_out(rows: Sequence[Cells], styles: Sequence[Styles], *, coloured: bool, width: int | None = None) -> list[str]:
    """Set columns below each other, two spaces apart, each cell in its colour; nothing trails.

    Args:
        rows: the cells.
        styles: the name of a colour, or None, for each of them.
        coloured: whether to use them.
        width: cut each line there.
    """
    widths = [max(measure(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [_join(row, style if coloured else (), widths, width) for row, style in zip(rows, styles, strict=True)]


def _join(row: Cells, styles: Styles, widths: Sequence[int], width: int | None) -> str:
    last = max((i for i, cell in enumerate(row) if cell), default=-1)
    parts, at = [], 0
    for i, cell in enumerate(row[: last + 1]):
        padded = cell if i == last else cell + " " * (widths[i] - measure(cell) + 2)
        if width is not None:
            padded = _cut(padded, width - at)
        at += measure(padded)
        parts.append(colour(padded, styles[i] if i < len(styles) else None))
    return "".join(parts)


def _cut(text: str, width: int) -> str:
    while measure(text) > width:
        text = text[:-1]
    return text


class LiveTable:
    """Paints a table again and again in the same place, and at last in full.

    Args:
        heading: its first row.
    """

    def __init__(self, heading: Cells) -> None:
        self._heading = heading
        self._painted = 0
        self._painted_at = -_PAUSE_SECONDS

    @property
    def is_due(self) -> bool:
        """Whether painting again would show something that was not there a moment ago."""
        return time.monotonic() - self._painted_at >= _PAUSE_SECONDS

    def paint(self, rows: Sequence[Cells], styles: Sequence[Styles]) -> None:
        """Show how far it has come; what does not fit on the screen is left for the end."""
        columns, lines = shutil.get_terminal_size()
        room = max(1, lines - _ABOVE)
        every = self._lay_out(rows, styles, width=columns - 1)
        shown = every if len(every) <= room else [*every[: room - 1], f"… {len(every) - room + 1} more"]
        self._print("".join(f"{line}{_ERASE_LINE}\n" for line in shown) + _ERASE_BELOW)
        self._painted, self._painted_at = len(shown), time.monotonic()

    def finish(self, rows: Sequence[Cells], styles: Sequence[Styles]) -> None:
        """Show all of it."""
        lines = self._lay_out(rows, styles, width=None)
        self._print(_ERASE_BELOW * bool(self._painted) + "".join(f"{line}\n" for line in lines))
        self._painted = 0

    def _lay_out(self, rows: Sequence[Cells], styles: Sequence[Styles], *, width: int | None) -> list[str]:
        heading: Styles = ("dim",) * len(self._heading)
        return lay_out([self._heading, *rows], [heading, *styles], coloured=wants_colour(sys.stdout), width=width)

    def _print(self, text: str) -> None:
        """Print over what was painted before."""
        back = f"\x1b[{self._painted}F" if self._painted else ""
        answer.print_bytes((back + text).encode("utf-8", "surrogateescape"))


def can_paint() -> bool:
    """Whether stdout is a terminal where a line can be painted over."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
