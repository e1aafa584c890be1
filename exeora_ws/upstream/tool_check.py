"""Whether one tool's entry can be published: clients check a list as a whole, one bad entry costs them all. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from exeora_ws.upstream.messages import Message, is_deeper

MAX_DEPTH = 100
"""Levels of an entry; recursive readers of clients give up somewhere beyond."""

_FIELDS: Mapping[str, type] = {
    "title": str,
    "description": str,
    "annotations": dict,
    "outputSchema": dict,
    "icons": list,
    "execution": dict,
    "_meta": dict,
}
_ANNOTATIONS: Mapping[str, type] = {
    "title": str,
    "readOnlyHint": bool,
    "destructiveHint": bool,
    "idempotentHint": bool,
    "openWorldHint": bool,
}
_KINDS = {str: "a string", dict: "an object", list: "a list", bool: "true or false"}


class BadTool(Exception):
    """One tool cannot be published; the message says why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name


def check_tool(raw: Any) -> Message:
    """Give the entry as it can be published, the same object where nothing had to be mended.

    Mended are: a null where the protocol has an absent field; a missing `type` of an input schema; `true` and `false`
    as a property's schema, which mean `{}` and `{"not": {}}`.

    Raises:
        BadTool: it cannot be published.
    """
    name = raw.get("name") if isinstance(raw, dict) else None
    if not isinstance(name, str) or not name:
        raise BadTool("?", "it has no name")
    shown = repr(name[:80])
    try:
        _check_text(raw)
        tool = _check_fields(raw)
        schema = _check_schema(tool.get("inputSchema"), "inputSchema")
        if "outputSchema" in tool:
            _check_schema(tool["outputSchema"], "outputSchema", typed=True)
    except _Fault as fault:
        raise BadTool(shown, str(fault)) from None
    return tool if schema is tool["inputSchema"] else {**tool, "inputSchema": schema}


class _Fault(Exception):
    pass


def _check_text(raw: Any) -> None:
    if is_deeper(raw, MAX_DEPTH):
        raise _Fault(f"it is nested deeper than {MAX_DEPTH} levels")
    try:
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _Fault("it holds half a character") from None


def _check_fields(raw: Message) -> Message:
    nulls = [key for key in _FIELDS if key in raw and raw[key] is None]
    tool = {key: value for key, value in raw.items() if key not in nulls} if nulls else raw
    _check_kinds(tool, _FIELDS, "")
    annotations = tool.get("annotations")
    if annotations is not None:
        empty = [key for key in _ANNOTATIONS if key in annotations and annotations[key] is None]
        if empty:
            annotations = {key: value for key, value in annotations.items() if key not in empty}
            tool = {**tool, "annotations": annotations}
        _check_kinds(annotations, _ANNOTATIONS, "annotations.")
    return tool


def _check_kinds(value: Mapping[str, Any], kinds: Mapping[str, type], prefix: str) -> None:
    for key, kind in kinds.items():
        if key in value and not isinstance(value[key], kind):
            raise _Fault(f"{prefix}{key} is not {_KINDS[kind]}")


def _check_schema(schema: Any, where: str, *, typed: bool = False) -> Any:
    if not isinstance(schema, dict):
        raise _Fault(f"{where} is not an object" if schema is not None else f"it has no {where}")
    if "type" not in schema and not typed:
        # Absent means anything, and arguments are always an object.
        schema = {"type": "object", **schema}
    if schema.get("type") != "object":
        raise _Fault(f"{where} does not describe an object")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or not all(isinstance(p, dict | bool) for p in properties.values()):
        raise _Fault(f"{where}.properties does not hold schemas")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise _Fault(f"{where}.required is not a list of names")
    if any(isinstance(p, bool) for p in properties.values()):
        mended = {name: _mend_boolean(p) for name, p in properties.items()}
        return {**schema, "properties": mended}
    return schema


def _mend_boolean(schema: Any) -> Any:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema
