"""One tool for several projects: what the account endpoint publishes where a name exists in more than one. Pure.

With one project the full schema is kept and naming the project is optional. With several, their properties are put
together and naming the project is required; each server still validates its own arguments. The merged schema stands on
its own: every `$ref` in it leads somewhere, and no combinator is left at its root, where many clients refuse one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exeora_ws.names import ProjectId
from exeora_ws.upstream.catalog import PublishedTool
from exeora_ws.upstream.messages import Message
from exeora_ws.upstream.routing import PROJECT, PROJECT_SCHEMA, add_field, choose_field, take_field, walk_in_place
from exeora_ws.upstream.schema_refs import Definitions

_KEPT_AT_ROOT = (
    "$schema",
    "title",
    "description",
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
)
_KEPT_IF_EQUAL = ("title", "outputSchema", "icons", "execution", "_meta")
_ANY = "anyOf"


@dataclass(frozen=True)
class AccountTool:
    """One published name on the account endpoint."""

    name: str
    project_field: str
    """The routing field: `project`, or another where a tool has one of that name itself."""
    project_required: bool
    by_project: Mapping[ProjectId, PublishedTool]
    """What a call means, by the id of the project it names."""
    read_only: bool
    """Whether it changes nothing in any of them."""
    raw: Message
    """The entry for `tools/list`. Not to be changed."""

    def take_project(self, arguments: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """Split the project's selector off a call's arguments. Raises `InvalidArguments`."""
        return take_field(arguments, self.project_field)


def merge_catalogs(catalogs: Mapping[ProjectId, Sequence[PublishedTool]]) -> list[AccountTool]:
    """Put the catalogs of an account's projects together, by project id; order is that of the first appearance."""
    found: dict[str, dict[ProjectId, PublishedTool]] = {}
    for project, tools in catalogs.items():
        for tool in tools:
            found.setdefault(tool.name, {})[project] = tool
    return [merge_tool(by_project) for by_project in found.values()]


def merge_tool(by_project: Mapping[ProjectId, PublishedTool]) -> AccountTool:
    """Make the account's entry of one name; `by_project` is not empty."""
    tools = list(by_project.values())
    several = len(tools) > 1
    schema, field = merge_input_schemas([tool.raw["inputSchema"] for tool in tools])
    entry = {**_merge_facts(tools), "inputSchema": schema} if several else {**tools[0].raw, "inputSchema": schema}
    return AccountTool(tools[0].name, field, several, dict(by_project), all(tool.read_only for tool in tools), entry)


def merge_input_schemas(schemas: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], str]:
    """Merge the input schemas of one name in several projects, and add the project's routing field.

    Returns:
        The schema, and the routing field's name.
    """
    if len(schemas) == 1:
        field = choose_field(PROJECT, schemas[0])
        return add_field(schemas[0], field, PROJECT_SCHEMA), field
    distinct = list({json.dumps(schema, sort_keys=True): schema for schema in schemas}.values())
    merged = _merge(distinct)
    field = choose_field(PROJECT, *distinct)
    return add_field(merged, field, PROJECT_SCHEMA, required=True), field


def _merge(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    definitions = Definitions()
    variants: dict[str, list[Any]] = {}
    for schema in schemas:
        for name, found in _collect_properties(schema).items():
            variants.setdefault(name, []).extend(definitions.rewrite(part, schema) for part in found)
    merged: dict[str, Any] = {"type": "object"}
    if len(schemas) == 1:
        only = schemas[0]
        merged |= {key: definitions.rewrite_value(key, only[key], only) for key in _KEPT_AT_ROOT if key in only}
    merged["properties"] = {name: _alternatives(found) for name, found in variants.items()}
    required = _require_in_all(schemas)
    if required:
        merged["required"] = required
    if taken := definitions.finish():
        merged["$defs"] = taken
    return merged


def _collect_properties(schema: Mapping[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for part in walk_in_place(schema):
        properties = part.get("properties")
        for name, value in properties.items() if isinstance(properties, dict) else ():
            found.setdefault(name, []).append(value)
    return found


def _alternatives(schemas: Sequence[Any]) -> Any:
    distinct = list({json.dumps(schema, sort_keys=True): schema for schema in schemas}.values())
    return distinct[0] if len(distinct) == 1 else {_ANY: distinct}


def _require_in_all(schemas: Sequence[Mapping[str, Any]]) -> list[str]:
    lists: list[list[str]] = [schema.get("required", []) for schema in schemas]
    return [name for name in dict.fromkeys(lists[0]) if all(name in required for required in lists[1:])]


def _merge_facts(tools: Sequence[PublishedTool]) -> Message:
    """Keep what all say alike; of the description, the first; of the hints, what holds for every one."""
    first, others = tools[0].raw, [tool.raw for tool in tools[1:]]
    entry: Message = {key: first[key] for key in ("name", "description") if key in first}
    entry |= {
        key: first[key] for key in _KEPT_IF_EQUAL if key in first and all(o.get(key) == first[key] for o in others)
    }
    if any("annotations" in tool.raw for tool in tools):
        entry["annotations"] = _merge_annotations(tools)
    return entry


def _merge_annotations(tools: Sequence[PublishedTool]) -> Message:
    all_hints: list[Message] = [tool.raw.get("annotations", {}) for tool in tools]
    first, others = all_hints[0], all_hints[1:]
    same = {key: value for key, value in first.items() if all(o.get(key, _ABSENT) == value for o in others)}
    if not all(tool.read_only for tool in tools):
        return {**same, "readOnlyHint": False}
    return same


_ABSENT = object()
