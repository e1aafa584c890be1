"""Which toolsets there are and what is in each; a new one is one module and one line here."""

from collections.abc import Iterable, Mapping
from typing import Any

from exeora_ws.errors import InvalidArguments
from exeora_ws.tools.catalog import CATALOG, DEFAULT
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Tool
from exeora_ws.tools.workspaces import WORKSPACE_TOOLS
from exeora_ws.toolsets.agentexec import FILES_LEVEL, READ_LEVEL, TERMINAL_LEVEL
from exeora_ws.toolsets.engine.tools import ENGINE_TOOLS
from exeora_ws.toolsets.sandbox import SANDBOX_TOOLS

AnyTool = Tool[Any, Any, Services]

ENGINE = "engine"

TOOLSETS: Mapping[str, tuple[AnyTool, ...]] = {
    DEFAULT: tuple(CATALOG.values()),
    "workspaces": WORKSPACE_TOOLS,
    "agentexec": TERMINAL_LEVEL,
    "agentexec-files": FILES_LEVEL,
    "agentexec-read": READ_LEVEL,
    ENGINE: ENGINE_TOOLS,
    "sandbox": SANDBOX_TOOLS,
}


LEVELS: Mapping[str, str] = {"read": "agentexec-read", "files": "agentexec-files", "terminal": "agentexec"}
"""The levels of agentexec, each containing the one before, and the toolset that each is."""


def require_toolset(name: str) -> tuple[AnyTool, ...]:
    """Give the tools of a toolset.

    Raises:
        InvalidArguments: reason `unknown_toolset`.
    """
    tools = TOOLSETS.get(name)
    if tools is None:
        raise InvalidArguments(
            f"there is no toolset {name!r}", reason="unknown_toolset", hint="toolsets: " + ", ".join(TOOLSETS)
        )
    return tools


def collect_tools(names: Iterable[str]) -> dict[str, AnyTool]:
    """Put toolsets together, in order; one that is named twice, or lies within another, counts once.

    Raises:
        InvalidArguments: reason `unknown_toolset`, or `tool_names_collide` when two have different tools of one name.
    """
    collected: dict[str, AnyTool] = {}
    origins: dict[str, str] = {}
    for toolset in names:
        for tool in require_toolset(toolset):
            if collected.setdefault(tool.name, tool) is not tool:
                raise _refuse_collision(origins[tool.name], toolset)
            origins.setdefault(tool.name, toolset)
    return collected


def _refuse_collision(one: str, other: str) -> InvalidArguments:
    theirs = {tool.name for tool in require_toolset(other)}
    shared = [tool.name for tool in require_toolset(one) if tool.name in theirs]
    return InvalidArguments(
        f"toolsets {one!r} and {other!r} cannot be offered together: both have {', '.join(shared)}",
        reason="tool_names_collide",
        hint="serve them apart, each by a server of its own",
        data={"tools": shared},
    )


def find_toolsets_with(tool: str) -> list[str]:
    """Give the toolsets that have a tool of that name, the default one first."""
    return [name for name, tools in TOOLSETS.items() if any(each.name == tool for each in tools)]
