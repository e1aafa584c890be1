"""A server's own list of tools, read to its end: every page once, loops cut, nothing without a bound."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from exeora_ws.upstream.messages import Message
from exeora_ws.upstream.peer import ProtocolError

MAX_PAGES = 500
MAX_TOOLS = 5_000
"""Far beyond what a project may publish; what lies past it is not even counted."""

MAX_BYTES = 16_000_000

Ask = Callable[[str, Mapping[str, Any]], Message]
"""Asks the server and gives the raw result."""


@dataclass(frozen=True)
class Listing:
    """What a server offers, as it says it.

    Args:
        tools: raw entries, each name once; an entry without a usable name is among them.
        warnings: what was cut or doubled.
    """

    tools: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()

    def find(self, name: str) -> Message | None:
        """The entry of that name."""
        return next((t for t in self.tools if isinstance(t, dict) and t.get("name") == name), None)


def list_tools(ask: Ask) -> Listing:
    """Follow `tools/list` through its pages.

    Raises:
        ProtocolError: a page holds no list.
        Exception: whatever `ask` raises.
    """
    collected = _Collected()
    cursors: set[str] = set()
    cursor: Any = None
    for _ in range(MAX_PAGES):
        page = ask("tools/list", {} if cursor is None else {"cursor": cursor})
        tools = page.get("tools")
        if not isinstance(tools, list):
            raise ProtocolError("its tools/list holds no list of tools")
        collected.add(tools)
        cursor = page.get("nextCursor")
        if cursor is None or cursor == "":
            return collected.finish()
        key = json.dumps(cursor)
        if key in cursors:
            return collected.finish("its list of tools runs in a circle; it was cut there")
        cursors.add(key)
        if collected.full:
            return collected.finish(f"its list of tools does not end; it was cut after {len(collected.tools)}")
    return collected.finish(f"its list of tools has more than {MAX_PAGES} pages; the rest was left out")


class _Collected:
    def __init__(self) -> None:
        self.tools: list[Any] = []
        self.size = 0
        self._seen: dict[str, Any] = {}
        self._doubled: list[str] = []

    @property
    def full(self) -> bool:
        return len(self.tools) >= MAX_TOOLS or self.size >= MAX_BYTES

    def add(self, tools: list[Any]) -> None:
        for tool in tools:
            if self.full:
                return
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str):
                if name in self._seen:
                    self._note_double(name, tool)
                    continue
                self._seen[name] = tool
            self.tools.append(tool)
            self.size += len(json.dumps(tool))

    def finish(self, *warnings: str) -> Listing:
        doubled = [f"it lists {name!r} more than once and differently; the first is taken" for name in self._doubled]
        return Listing(tuple(self.tools), (*warnings, *doubled))

    def _note_double(self, name: str, tool: Any) -> None:
        if tool != self._seen[name] and name not in self._doubled:
            self._doubled.append(name)
