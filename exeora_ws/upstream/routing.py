"""The routing fields of a published tool: added to its schema, taken off a call, never seen by the upstream. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from exeora_ws.errors import InvalidArguments

WORKSPACE = "workspace"
PROJECT = "project"
PREFIX = "__exeora_"

WORKSPACE_SCHEMA: Mapping[str, Any] = {
    "type": "string",
    "description": "Exeora workspace to run this in, by slug or id. Omitted or `main`: the project root.",
}
PROJECT_SCHEMA: Mapping[str, Any] = {"type": "string", "description": "Exeora project to run this in, by slug or id."}

_IN_PLACE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "$ref")
"""Keywords whose schemas speak about the same object as the one they stand in."""


def choose_field(plain: str, *schemas: Mapping[str, Any]) -> str:
    """Give the routing field's name: `workspace`, or `__exeora_workspace` where a tool owns that name itself."""
    owned = {name for schema in schemas for name in find_property_names(schema)}
    name, number = plain, 1
    while name in owned:
        name = f"{PREFIX}{plain}" + (f"_{number}" if number > 1 else "")
        number += 1
    return name


def add_field(
    schema: Mapping[str, Any], name: str, field: Mapping[str, Any], *, required: bool = False
) -> dict[str, Any]:
    """Give the schema with one more property, last; everything else is the same object as before."""
    changed = {**schema, "properties": {**schema.get("properties", {}), name: dict(field)}}
    if required:
        changed["required"] = [*schema.get("required", []), name]
    return changed


def take_field(arguments: Mapping[str, Any], name: str) -> tuple[str | None, dict[str, Any]]:
    """Split a routing field off a call's arguments.

    Raises:
        InvalidArguments: it is no string.
    """
    rest = dict(arguments)
    value = rest.pop(name, None)
    if name in arguments and not isinstance(value, str):
        raise InvalidArguments(f"{name}: expected a string", reason="wrong_value")
    return value, rest


def find_property_names(schema: Mapping[str, Any]) -> set[str]:
    """Every property that a schema mentions of the object it describes, in combined and referenced parts too."""
    names: set[str] = set()
    for part in walk_in_place(schema):
        properties = part.get("properties")
        names |= properties.keys() if isinstance(properties, dict) else set()
        required = part.get("required")
        names |= {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    return names


def walk_in_place(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give a schema and every one that its combinators and local references apply to the same object, once each."""
    todo: list[Any] = [schema]
    seen: set[int] = set()
    while todo:
        part = todo.pop(0)
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        for keyword in _IN_PLACE:
            if keyword in part:
                todo += _branches(schema, keyword, part[keyword])


def _branches(schema: Mapping[str, Any], keyword: str, value: Any) -> list[Any]:
    if keyword == "$ref":
        found = find_target(schema, value) if isinstance(value, str) else None
        return [found]
    if keyword == "dependentSchemas":
        return list(value.values()) if isinstance(value, dict) else []
    return value if isinstance(value, list) else [value]


def find_target(schema: Any, reference: str) -> Any:
    """Follow a reference of the form `#/a/b`; None when nothing is there or it leads elsewhere."""
    if not reference.startswith("#"):
        return None
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        return None
    found: Any = schema
    for raw in pointer.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found
