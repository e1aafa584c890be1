"""Times as documents have them, and durations as people type them."""

import re
from datetime import UTC, datetime

from exeora_ws.errors import InvalidArguments

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"([0-9]{1,6})([mhdw])\Z")


def write_time(seconds: float) -> str:
    """Give seconds since 1970 as ISO 8601 has them, in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def parse_duration(text: str, option: str) -> float:
    """Read `30d`, `12h`, `90m`, `2w`; gives seconds.

    Raises:
        InvalidArguments: anything else, and nothing at all.
    """
    found = _DURATION.match(text)
    if found is None or int(found[1]) == 0:
        raise InvalidArguments(
            f"{option}: expected a number and m, h, d or w, as in 30d; got {text!r}", reason="invalid_duration"
        )
    return int(found[1]) * _UNITS[found[2]]
