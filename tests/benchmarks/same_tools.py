"""Five plain tools on other foundations, to compare with: fastmcp, the SDK's low-level server, or a bare loop.

python same_tools.py fastmcp|sdk|loop FOLDER RG

Each does the least that its name promises: no confinement, no limits, no policy, no record.
"""

import json
import os
import subprocess
import sys

FOLDER, RG = sys.argv[2], sys.argv[3]


def read_file(path: str) -> str:
    with open(os.path.join(FOLDER, path), encoding="utf-8") as stream:
        return stream.read()


def list_files(path: str) -> str:
    with os.scandir(os.path.join(FOLDER, path)) as found:
        return "\n".join(sorted(entry.name for entry in found))


def grep(pattern: str) -> str:
    argv = [RG, "--line-number", "--no-heading", "-e", pattern, "."]
    return subprocess.run(argv, cwd=FOLDER, capture_output=True, text=True, check=False).stdout


def edit_file(path: str, old: str, new: str) -> str:
    text = read_file(path)
    if text.count(old) != 1:
        raise ValueError("not once")
    with open(os.path.join(FOLDER, path), "w", encoding="utf-8") as stream:
        stream.write(text.replace(old, new))
    return "done"


def run_command(command: str) -> str:
    done = subprocess.run(["/bin/sh", "-c", command], cwd=FOLDER, capture_output=True, text=True, check=False)
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


TOOLS = [read_file, list_files, grep, edit_file, run_command]


def describe(tool) -> dict:
    names = tool.__code__.co_varnames[: tool.__code__.co_argcount]
    schema = {"type": "object", "properties": {n: {"type": "string"} for n in names}, "required": list(names)}
    return {"name": tool.__name__, "description": tool.__name__, "inputSchema": schema}


def serve_fastmcp() -> None:
    from fastmcp import FastMCP

    server = FastMCP("same tools")
    for tool in TOOLS:
        server.tool(tool)
    server.run(show_banner=False)


def serve_sdk() -> None:
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    by_name = {tool.__name__: tool for tool in TOOLS}

    async def list_tools(_ctx, _params):
        return types.ListToolsResult(tools=[types.Tool(**describe(tool)) for tool in TOOLS])

    async def call_tool(_ctx, params):
        text = await anyio.to_thread.run_sync(lambda: by_name[params.name](**params.arguments))
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    async def serve():
        server = Server("same tools", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)


def serve_loop() -> None:
    by_name = {tool.__name__: tool for tool in TOOLS}
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            info = {"name": "same tools", "version": "0"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        elif message["method"] == "tools/list":
            result = {"tools": [describe(tool) for tool in TOOLS]}
        else:
            text = by_name[message["params"]["name"]](**message["params"]["arguments"])
            result = {"content": [{"type": "text", "text": text}], "isError": False}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    {"fastmcp": serve_fastmcp, "sdk": serve_sdk, "loop": serve_loop}[sys.argv[1]]()
