"""JSON from the accelerators of the standard library, without its package: importing that takes as long as Python does.

What is read here reads the same in every other reader: whatever JSON parsers disagree on is refused (`ValueError`),
and is for the protocol library to judge.
"""

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEPTH = 100
"""Deeper values are left to the library, whose parser has a limit of its own (200)."""
_SAFE = 1 << 63


def _read_object(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _read_integer(text: str) -> int:
    number = int(text)
    if not -_SAFE <= number < _SAFE or text == "-0":
        raise ValueError("an integer that not every parser keeps")
    return number


def _read_float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number that not every parser keeps")
    return number


def _refuse(_text: str) -> None:
    raise ValueError("a constant that JSON does not have")


class _Rules:
    """How the scanner reads."""

    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_read_object)
    array_hook = None
    parse_float = staticmethod(_read_float)
    parse_int = staticmethod(_read_integer)
    parse_constant = staticmethod(_refuse)


_rules: "Any" = _Rules()
_scan: "Any" = _json.make_scanner(_rules)


def parse(line: bytes) -> "Any":
    """Read one JSON value.

    Raises:
        ValueError: it is none, or one that not every parser would read the same.
    """
    text = line.decode().strip(" \t\r\n")
    try:
        value, end = _scan(text, 0)
    except (StopIteration, RecursionError):
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    if b"\\ud" in line or b"\\uD" in line:
        _encode(value).encode()  # half a character, which not every parser takes, cannot be written (a ValueError)
    if line.count(b"[") + line.count(b"{") > _DEPTH and _is_deep(value):
        raise ValueError("nested too deeply")
    return value


def _is_deep(value: "Any") -> bool:
    level = [value]
    for _ in range(_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _deny(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")


_write: "Any" = _json.make_encoder(None, _deny, _json.encode_basestring, None, ":", ",", False, False, False)


def _encode(value: "Any") -> str:
    return "".join(_write(value, 0))


def render(value: "Any") -> bytes:
    """Write one JSON value.

    Raises:
        UnicodeEncodeError: text in it holds half a character.
    """
    return _encode(value).encode()
