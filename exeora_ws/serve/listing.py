"""Tools as `tools/list` shows them: in what words, and how many to a page."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from exeora_ws.errors import Code, InvalidArguments
from exeora_ws.limits import LIST_PAGE_BYTES
from exeora_ws.tools.call import AnyTool

_ERROR_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "Only in a failed call: what went wrong, and what to do next.",
    "properties": {
        "code": {"enum": [str(code) for code in Code if code is not Code.INTERNAL_ERROR]},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "hint": {"type": "string"},
        "data": {"type": "object"},
    },
    "required": ["code", "message"],
}


def describe_tool(tool: AnyTool, *, account: bool) -> dict[str, Any]:
    """Give a tool as MCP publishes it, with all four annotations."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema(account=account),
        "outputSchema": describe_output(tool.output_schema),
        "annotations": {"title": tool.title, **tool.hints.to_dict()},
    }


def describe_output(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Let a failure through the schema of the result.

    The official TypeScript client (1.x) checks structured content against it even when `isError` is set, and
    throws away the answer that does not fit.
    """
    properties = {**schema.get("properties", {}), "error": _ERROR_SCHEMA}
    done = {"required": list(schema.get("required", []))}
    rest = {k: v for k, v in schema.items() if k not in ("properties", "required", "type")}
    return {"type": "object", "properties": properties, "anyOf": [done, {"required": ["error"]}], **rest}


def page_of(entries: Sequence[Mapping[str, Any]], cursor: str | None) -> tuple[list[Mapping[str, Any]], str | None]:
    """Give the page that starts at `cursor`, and the cursor of the next or None.

    A page holds at most `LIST_PAGE_BYTES` of JSON: the SDK's client refuses a server-sent event of more than a MiB.

    Raises:
        InvalidArguments: reason `invalid_cursor`, for a cursor that no page gave.
    """
    start = _parse_cursor(cursor, len(entries))
    size = 0
    for index in range(start, len(entries)):
        size += len(msgspec.json.encode(entries[index]))
        if size > LIST_PAGE_BYTES and index > start:
            return list(entries[start:index]), _write_cursor(index)
    return list(entries[start:]), None


def _write_cursor(start: int) -> str:
    return base64.urlsafe_b64encode(b"from:%d" % start).decode()


def _parse_cursor(cursor: str | None, count: int) -> int:
    if cursor is None:
        return 0
    try:
        prefix, _, number = base64.urlsafe_b64decode(cursor.encode("ascii")).partition(b":")
        start = int(number)
    except ValueError:
        prefix, start = b"", 0
    if prefix != b"from" or not 0 < start <= count:
        raise InvalidArguments("cursor: not one that tools/list gave", reason="invalid_cursor")
    return start
