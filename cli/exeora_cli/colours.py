"""Colour, for a person's terminal and for nothing else."""

import os
from typing import Any

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def wants_colour(stream: Any) -> bool:
    """Whether what goes to a stream may have colour: a terminal that can show it, and `NO_COLOR` not set."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("NO_COLOR")


def colour(text: str, name: str | None) -> str:
    """Give text in a colour; as it is for None and where there is nothing to see of it."""
    return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if name is not None and text.strip() else text
