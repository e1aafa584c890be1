"""The explicit list of the default toolset's tools, in the order they are published."""

from collections.abc import Mapping
from typing import Any

from exeora_ws.tools.files import FILE_TOOLS
from exeora_ws.tools.guidance import GUIDANCE_TOOLS
from exeora_ws.tools.processes import PROCESS_TOOLS
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Tool
from exeora_ws.tools.workspaces import WORKSPACE_TOOLS

DEFAULT = "exeora"
"""What this toolset is called beside the others."""

TOOLS: tuple[Tool[Any, Any, Services], ...] = (*FILE_TOOLS, *PROCESS_TOOLS, *WORKSPACE_TOOLS, *GUIDANCE_TOOLS)

CATALOG: Mapping[str, Tool[Any, Any, Services]] = {tool.name: tool for tool in TOOLS}
