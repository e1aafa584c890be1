"""The explicit list of the default toolset's tools, in the order they are published.

A family's module, with the room behind it, is imported when one of its tools is asked for: a call to one tool does not
pay for the others.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Tool

DEFAULT = "exeora"
"""What this toolset is called beside the others."""

AnyTool = Tool[Any, Any, Services]
Family = Callable[[], tuple[AnyTool, ...]]


def _load_files() -> tuple[AnyTool, ...]:
    from exeora_ws.tools.files import FILE_TOOLS

    return FILE_TOOLS


def _load_processes() -> tuple[AnyTool, ...]:
    from exeora_ws.tools.processes import PROCESS_TOOLS

    return PROCESS_TOOLS


def _load_workspaces() -> tuple[AnyTool, ...]:
    from exeora_ws.tools.workspaces import WORKSPACE_TOOLS

    return WORKSPACE_TOOLS


def _load_guidance() -> tuple[AnyTool, ...]:
    from exeora_ws.tools.guidance import GUIDANCE_TOOLS

    return GUIDANCE_TOOLS


FAMILIES: Mapping[Family, tuple[str, ...]] = {
    _load_files: ("read_file", "list_files", "grep", "edit_file", "write_file", "apply_patch"),
    _load_processes: ("run_command", "start_command", "get_command_output", "send_command_input", "kill_command"),
    _load_workspaces: (
        "list_git_workspaces",
        "create_workspace",
        "attach_workspace",
        "detach_workspace",
        "remove_workspace",
        "list_workspaces",
        "list_projects",
    ),
    _load_guidance: ("list_skills", "get_agent_prompt"),
}
"""What is in each family, in order (a test holds this equal to the families themselves)."""


class Catalog(Mapping[str, AnyTool]):
    """Tools by name, in order."""

    def __init__(self, families: Mapping[Family, tuple[str, ...]]) -> None:
        self._family_of = {name: family for family, names in families.items() for name in names}

    def __getitem__(self, name: str) -> AnyTool:
        return next(tool for tool in self._family_of[name]() if tool.name == name)

    def __contains__(self, name: object) -> bool:
        return name in self._family_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._family_of)

    def __len__(self) -> int:
        return len(self._family_of)


CATALOG: Mapping[str, AnyTool] = Catalog(FAMILIES)
