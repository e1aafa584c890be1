"""The explicit list of the engine's tools, in the order they are published."""

from typing import Any

from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Tool
from exeora_ws.toolsets.engine.editing import EDIT_FILE
from exeora_ws.toolsets.engine.logs import READ_LOGS
from exeora_ws.toolsets.engine.reading import LIST_FILES, READ_FILE, SEARCH_FILES
from exeora_ws.toolsets.engine.shell import RUN_SHELL
from exeora_ws.toolsets.engine.writing import REVERT_FILE, WRITE_FILE

ENGINE_TOOLS: tuple[Tool[Any, Any, Services], ...] = (
    READ_FILE,
    WRITE_FILE,
    EDIT_FILE,
    SEARCH_FILES,
    LIST_FILES,
    REVERT_FILE,
    RUN_SHELL,
    READ_LOGS,
)
