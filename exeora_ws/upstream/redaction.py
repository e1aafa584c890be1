"""What must not be read by anybody: every value that came out of the environment into a server's configuration.

A catalog is scrubbed of expanded values only, since it has to stay as the server wrote it. Errors, the tail of a
server's error output, logs and statuses also lose the literal values of its environment and headers.
"""

import base64
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

from exeora_ws.upstream.server import Server

MARK = "[redacted]"
MIN_CHARACTERS = 4
"""A shorter value is no secret, and taking every `1` out of a text would make it a lie."""

_MIN_LINE = 8


class Redactor:
    """Takes known values out of texts and JSON values, in the forms that programs print them."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = sorted({form for value in values for form in _forms(value)}, key=lambda f: (-len(f), f))
        self._longest = max(map(len, forms), default=0)
        self._pattern = re.compile("|".join(map(re.escape, forms))) if forms else None

    def scrub(self, text: str) -> str:
        """Give the text with every known value replaced."""
        return self._pattern.sub(MARK, text) if self._pattern else text

    def finds(self, text: str) -> bool:
        """Whether a known value stands in the text."""
        return bool(self._pattern and self._pattern.search(text))

    def scrub_value(self, value: Any) -> Any:
        """Give a JSON value with every known value replaced, in keys too; the very same object when there is none."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, dict):
            changed = {self.scrub(key): self.scrub_value(item) for key, item in value.items()}
            same = len(changed) == len(value) and all(k in value and changed[k] is value[k] for k in changed)
            return value if same else changed
        if isinstance(value, list):
            items = [self.scrub_value(item) for item in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
        return value

    def scrub_tail(self, data: bytes, *, limit: int) -> str:
        """Give the end of an output as text.

        Args:
            data: the last bytes that were kept of it.
            limit: how many are kept; that many are taken for cut at the front, where half a secret may stand.
        """
        text = data.decode("utf-8", "replace")
        if len(data) >= limit:
            _, newline, rest = text.partition("\n")
            text = rest if newline else text[self._longest :]
        return self.scrub(text)


def make_catalog_redactor(server: Server) -> Redactor:
    """The redactor of what a server says about itself."""
    return Redactor(server.secrets)


def make_redactor(server: Server) -> Redactor:
    """The redactor of everything else that is told about a server."""
    return Redactor(server.secrets | server.private)


def _forms(value: str) -> set[str]:
    pieces = {value, value.strip()}
    lines = value.splitlines()
    if len(lines) > 1:
        pieces |= {line.strip() for line in lines if len(line.strip()) >= _MIN_LINE}
    plain = {piece for piece in pieces if len(piece) >= MIN_CHARACTERS}
    return {form for piece in plain for form in _encodings(piece)}


def _encodings(text: str) -> set[str]:
    raw = text.encode("utf-8", "surrogatepass")
    return {
        text,
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        base64.b64encode(raw).decode().rstrip("="),
    }
