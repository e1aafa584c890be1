"""JSON from the accelerators of the standard library, without its package: importing that takes longer than Python.

What is read here reads the same in every other reader: whatever JSON parsers disagree on is refused (`ValueError`),
and is for the protocol library to judge.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from _json import encode_basestring, make_encoder, make_scanner
except ImportError:  # an implementation of Python without them
    from json.encoder import py_encode_basestring as encode_basestring
    from json.scanner import make_scanner

    make_encoder = None

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
    memo: "dict[str, str]" = {}  # noqa: RUF012  what the slower scanner expects


_scan = make_scanner(_Rules())


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


def _make_encode() -> "Any":
    if make_encoder is None:
        from json import JSONEncoder

        return JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    write = make_encoder(None, _deny, encode_basestring, None, ":", ",", False, False, False)
    return lambda value: "".join(write(value, 0))


_encode = _make_encode()


def render(value: "Any") -> bytes:
    """Write one JSON value.

    Raises:
        UnicodeEncodeError: text in it holds half a character.
    """
    text: str = _encode(value)
    return text.encode()
