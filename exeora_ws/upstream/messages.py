"""JSON-RPC messages as lines of bytes: what is one, and what is noise. Pure.

Messages stay plain JSON values: nothing is sieved through models, so what an upstream says is what is passed on.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]

_HUGE_EXPONENT = re.compile(rb"[0-9.][eE]\+?[0-9]{3}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_MEMBER = re.compile(rb'"jsonrpc"\s*:')
_ID = re.compile(rb'"id"\s*:\s*([0-9]{1,18})\s*[,}]')


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that means to be the answer to a request of ours and cannot be understood."""

    id: int


def parse_message(line: bytes) -> Message | Unreadable | None:
    """Read one line; None for noise: a banner, a log line, anything that is no JSON-RPC message.

    A byte that is not UTF-8, and half a character (a lone surrogate), become U+FFFD: one bad character in one answer
    is no reason to end a session.
    Numbers that JSON does not have (`NaN`, `1e999`) make an answer unreadable: our own clients could not read it.
    """
    stripped = line.strip()
    if not stripped.startswith(b"{"):
        return None
    try:
        found = parse_json(stripped)
    except (ValueError, RecursionError):
        return _find_id(stripped)
    return found if isinstance(found, dict) and found.get("jsonrpc") == "2.0" else None


def parse_json(data: bytes) -> Any:
    """Read what somebody else has written, mended as `parse_message` says.

    Raises:
        ValueError, RecursionError: it is no JSON, or holds numbers that JSON does not have.
    """
    # Checking every number costs a call for each of them; only such a line can hold one too large.
    parse_float = _require_finite if _HUGE_EXPONENT.search(data) else None
    found = json.loads(data.decode("utf-8", "replace"), parse_constant=_refuse_constant, parse_float=parse_float)
    return _mend(found) if _SURROGATE.search(data) else found


def format_message(message: Message) -> bytes:
    """Give a message as one line of ASCII, without the newline.

    Raises:
        ValueError: it holds what JSON cannot.
    """
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def is_deeper(value: Any, limit: int) -> bool:
    """Whether a JSON value has more than `limit` levels; does not call itself for each."""
    level = [value]
    for _ in range(limit):
        level = [item for part in level for item in _children(part)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return [_mend(item) for item in value] if isinstance(value, list) else value


def _require_finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number too large")
    return value


def _refuse_constant(_text: str) -> None:
    raise ValueError("a number that is none")


def _find_id(line: bytes) -> Unreadable | None:
    found = _ID.findall(line) if _MEMBER.search(line) else []
    return Unreadable(int(found[0])) if found and len(set(found)) == 1 else None
