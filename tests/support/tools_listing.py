"""Writes `exeora_ws/serve/tools.json`: the default tools as a project's own endpoint lists them.

python -m support.tools_listing
"""

from pathlib import Path

import msgspec
from exeora_ws.serve.listing import describe_tool
from exeora_ws.serve.reception import LISTING
from exeora_ws.tools.catalog import CATALOG


def render() -> bytes:
    tools = [describe_tool(tool, account=False) for tool in CATALOG.values() if not tool.account_only]
    return msgspec.json.encode(tools) + b"\n"


if __name__ == "__main__":
    Path(LISTING).write_bytes(render())
