"""Messages larger than one publication may be: cut into frames, and put together again. No I/O.

A message that fits is sent as it is; it begins with a brace. A frame of a longer one begins with a NUL, an id of the
message, its own number, how many there are, and then its bytes.
"""

import secrets
import struct
from dataclasses import dataclass, field

from exeora_ws.errors import ToolFailed
from exeora_ws.limits import FLEET_MESSAGE_BYTES

_HEAD = struct.Struct("!c8sII")
_MARK = b"\0"
_SLACK = 512
"""Left below the server's limit: headers and subjects do not count, but proxies of others may add."""
_MESSAGES_AT_ONCE = 8


def split(message: bytes, max_payload: int) -> list[bytes]:
    """Give what to publish for one message, in order.

    Raises:
        ToolFailed: reason `message_too_large`.
    """
    if len(message) > FLEET_MESSAGE_BYTES:
        raise ToolFailed(
            f"a message of {len(message)} bytes is larger than the fleet carries ({FLEET_MESSAGE_BYTES})",
            reason="message_too_large",
        )
    room = max_payload - _SLACK
    if len(message) <= room:
        return [message]
    identity, step = secrets.token_bytes(8), room - _HEAD.size
    count = -(-len(message) // step)
    return [
        _HEAD.pack(_MARK, identity, number, count) + message[number * step : (number + 1) * step]
        for number in range(count)
    ]


@dataclass(slots=True)
class _Partial:
    count: int
    parts: dict[int, bytes] = field(default_factory=dict)
    size: int = 0


class Assembler:
    """Puts the messages of one sender together. Not thread-safe. Frames may come in any order."""

    def __init__(self) -> None:
        self._partial: dict[bytes, _Partial] = {}

    def add(self, data: bytes) -> bytes | None:
        """Take what has come; gives a whole message as soon as there is one.

        Raises:
            ToolFailed: reason `message_too_large` or `bad_message`.
        """
        if not data.startswith(_MARK):
            return data
        if len(data) < _HEAD.size:
            raise ToolFailed("a frame without a head", reason="bad_message")
        _, identity, number, count = _HEAD.unpack_from(data)
        partial = self._partial.setdefault(identity, _Partial(count))
        if number >= count or count != partial.count or len(self._partial) > _MESSAGES_AT_ONCE:
            self._partial.clear()
            raise ToolFailed("frames that do not belong together", reason="bad_message")
        if number not in partial.parts:
            partial.parts[number] = data[_HEAD.size :]
            partial.size += len(data) - _HEAD.size
        if partial.size > FLEET_MESSAGE_BYTES:
            del self._partial[identity]
            raise ToolFailed("a message larger than the fleet carries", reason="message_too_large")
        if len(partial.parts) < count:
            return None
        del self._partial[identity]
        return b"".join(partial.parts[at] for at in range(count))
