"""How large a text is in an answer: as the JSON that has the most to escape, so that every face can carry it."""

import json
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from exeora_ws.limits import RESULT_TEXT_BYTES

T = TypeVar("T")
_MOST_BYTES = 12
"""What one character takes at most."""
_FRAME_BYTES = 80
"""What field names and numbers around a text take, at most."""


def count_json_bytes(text: str) -> int:
    """Count the bytes of a text as JSON writes it in ASCII: six for most characters beyond it and for controls."""
    if text.isascii():
        return len(msgspec.json.encode(text)) - 2  # the same, many times as fast
    return len(json.dumps(text)) - 2


def take_what_fits(items: Iterable[T], texts_of: Callable[[T], Iterable[str]]) -> tuple[tuple[T, ...], bool]:
    """Take items until an answer is full; gives them, and whether any was left out."""
    everything = tuple(items)
    most = sum(_FRAME_BYTES + _MOST_BYTES * sum(map(len, texts_of(item))) for item in everything)
    if most <= RESULT_TEXT_BYTES:
        return everything, False
    taken: list[T] = []
    room = RESULT_TEXT_BYTES
    for item in everything:
        room -= _FRAME_BYTES + sum(map(count_json_bytes, texts_of(item)))
        if room < 0:
            return tuple(taken), True
        taken.append(item)
    return tuple(taken), False


def keep_newest(one: str, other: str, room: int) -> tuple[str, str, bool]:
    """Cut two texts at their beginnings until both fit; gives them, and whether anything was cut."""
    sizes = count_json_bytes(one), count_json_bytes(other)
    if sum(sizes) <= room:
        return one, other, False
    return _keep_end(one, room * sizes[0] // sum(sizes)), _keep_end(other, room * sizes[1] // sum(sizes)), True


def _keep_end(text: str, room: int) -> str:
    while (size := count_json_bytes(text)) > room:
        text = text[len(text) - len(text) * room // size :]
    return text


def count_diff_bytes(text: str) -> int:
    """Count the bytes of a diff: those of the file, or what JSON makes of them where that is out of proportion."""
    return max(len(text.encode("utf-8", "surrogatepass")), count_json_bytes(text) // 4)
