"""A machine's own keys in the two buckets: written revision-checked, without reading (docs/decisions/0017)."""

import json
import re
from collections.abc import Mapping
from typing import Any

from exeora_ws.errors import ExecutorOffline, ToolFailed
from exeora_ws.fleet.line import Line

_SECONDS = 5.0
_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_OPERATION = "KV-Operation"
_WRONG_LAST = (10_071, 10_164)
_SEQUENCE = re.compile(r"wrong last sequence: (\d+)")


class KeyWriter:
    """Writes keys of one machine. For one thread.

    What stands there at first is not known: the first write of a key is refused by the server, which says what stands
    there, and made again over that. A refusal after that means that somebody else writes with this credential.

    Args:
        line: the machine's connection.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._revisions: dict[str, int] = {}
        self.rivals = 0
        """How often somebody else had written in between."""

    def put(self, bucket: str, key: str, value: bytes) -> None:
        """Write.

        Raises:
            ExeoraError: as `Line.request`; reason `fleet_failed`.
        """
        self._write(bucket, key, value, {})

    def delete(self, bucket: str, key: str) -> None:
        """Delete; raises as `put`."""
        self._write(bucket, key, b"", {_OPERATION: "DEL"})

    def _write(self, bucket: str, key: str, value: bytes, headers: Mapping[str, str]) -> None:
        subject = f"$KV.{bucket}.{key}"
        known = self._revisions.get(subject)
        answer = self._send(subject, value, headers, known or 0)
        last = _find_last(answer)
        if last is not None:
            self.rivals += known is not None
            answer = self._send(subject, value, headers, last)
        if "error" in answer:
            self._revisions.pop(subject, None)
            raise ToolFailed("the fleet's store did not take what was written", reason="fleet_failed")
        self._revisions[subject] = int(answer["seq"])

    def _send(self, subject: str, value: bytes, headers: Mapping[str, str], last: int) -> dict[str, Any]:
        answer = self._line.request(subject, value, _SECONDS, headers={**headers, _EXPECTED: str(last)})
        if answer.nobody:
            raise ExecutorOffline("the fleet has no store for what machines publish yet", reason="nobody_there")
        try:
            found = dict(json.loads(answer.data))
        except (ValueError, TypeError) as error:
            raise ToolFailed("the fleet's store answered something else", reason="fleet_failed") from error
        return found


def _find_last(answer: Mapping[str, Any]) -> int | None:
    """Give the revision that stands there in place of the expected one; None where that was not the trouble."""
    error = answer.get("error")
    if not isinstance(error, dict) or error.get("err_code") not in _WRONG_LAST:
        return None
    found = _SEQUENCE.search(str(error.get("description")))
    return int(found[1]) if found else None
