"""Writes docs/tools.md out of the tool values: `make docs`. A test holds the two equal."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from exeora_ws import limits
from exeora_ws.errors import ExeoraError
from exeora_ws.policy.verdict import REASONS
from exeora_ws.tools.catalog import CATALOG
from exeora_ws.tools.shell.files import REVERT_FILE
from exeora_ws.tools.spec import Needs, Tool

TARGET = Path(__file__).parents[2] / "docs" / "tools.md"

_HEAD = """\
# The tools

<!-- Written by `make docs` out of the tool values. -->

Every tool of the default toolset, as MCP and `exeora call` offer it; `exeora tools --schema TOOL` prints the schemas
themselves. The other toolsets give the same core other names: `exeora tools --toolset NAME` lists theirs.

A result is an object, as structured content and as the same JSON in text. Every truncation is stated in it. A key that
is marked `?` is absent unless it applies.

## Which workspace

A call names its workspace with `workspace` (slug or id); omitted or `main` means the project root. A name that does not
resolve is an error, never main. On an account endpoint calls also take `project`, which is required as soon as the
connection reaches more than one (all but {without_project}).

## Limits

Sizes are decimal bytes.

{limits}

## Errors

A tool that fails gives `{{"error": {{"code", "reason"?, "message", "hint"?, "data"?}}}}`.

{codes}

A call that policy refuses has the code `FORBIDDEN` and one of these reasons:

{refusals}
"""

_LIMITS = (
    ("a read", limits.READ_BYTES, "bytes"),
    ("a listing", limits.LIST_ENTRIES, "entries"),
    ("a search", limits.GREP_MATCHES, "lines"),
    ("a line of a search", limits.GREP_LINE_CHARACTERS, "characters"),
    ("a search takes", limits.SEARCH_SECONDS, "s"),
    ("a patch", limits.PATCH_OPERATIONS, "operations"),
    ("the texts of a patch", limits.PATCH_BYTES, "bytes"),
    ("a file that is edited", limits.EDIT_FILE_BYTES, "bytes"),
    ("a diff in a result", limits.DIFF_BYTES, "bytes"),
    ("output of a command that is waited for", limits.RUN_OUTPUT_BYTES, "bytes"),
    ("time of a command, by default", limits.RUN_TIMEOUT_DEFAULT_MS, "ms"),
    ("time of a command, at most", limits.RUN_TIMEOUT_MAX_MS, "ms"),
    ("output kept of a started command", limits.PROCESS_RING_BYTES, "bytes"),
    ("a chunk of it", limits.OUTPUT_CHUNK_BYTES, "bytes"),
    ("a wait for it", limits.OUTPUT_WAIT_MAX_MS, "ms"),
    ("started commands at once in a project", limits.LIVE_PROCESSES, ""),
    ("an ended one stays readable", limits.FINISHED_PROCESS_SECONDS, "s"),
    ("a whole result", limits.RESULT_BYTES, "bytes"),
    ("a question to a person waits", limits.APPROVAL_WAIT_SECONDS, "s"),
)
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


def write_reference() -> str:
    """Give the text of docs/tools.md."""
    without = [f"`{tool.name}`" for tool in CATALOG.values() if tool.needs is Needs.NOTHING]
    head = _HEAD.format(
        without_project=" and ".join(without),
        limits=_table(("what", "limit"), [(what, f"{number:,} {unit}".strip()) for what, number, unit in _LIMITS]),
        codes=_table(("code", "when"), [(f"`{c.code}`", _first_line(c)) for c in ExeoraError.__subclasses__()]),
        refusals=_table(("reason", "when"), [(f"`{reason}`", text) for reason, text in REASONS.items()]),
    )
    parts = [head, *map(_describe, CATALOG.values())]
    parts.append("## At the shell alone\n\nOf no MCP toolset; a project's `tools` list can name it.\n")
    parts.append(_describe(REVERT_FILE))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _describe(tool: Tool[Any, Any, Any]) -> str:
    schema = tool.input_schema(account=False)
    hints = ", ".join(f"`{name}: {str(value).lower()}`" for name, value in tool.hints.to_dict().items())
    rows = list(_rows(schema, schema))
    arguments = _table(("argument", "type", "what"), rows) if rows else "No arguments.\n"
    results = _table(("field", "type"), [row[:2] for row in _rows(tool.output_schema, tool.output_schema)])
    reasons = _table(("reason", "when"), [(f"`{name}`", text) for name, text in sorted(tool.reasons.items())])
    notes = ["Only for connections that may reach several projects.\n"] if tool.account_only else []
    notes += ["What it runs is judged by the project's lists of commands.\n"] if tool.command is not None else []
    return "\n".join(
        (
            f"### {tool.name}\n",
            f"{tool.description}\n",
            *notes,
            f"{hints}\n",
            arguments,
            "Result:\n",
            results,
            *(("Reasons of its errors:\n", reasons) if tool.reasons else ()),
        )
    )


def _rows(schema: Mapping[str, Any], document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Give name, type and meaning of every field, those of objects inside it below it."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        shown = f"{prefix}{name}" + ("" if name in required else "?")
        yield f"`{shown}`", _type(field, document), _meaning(field)
        inner = _inside(field, document)
        if inner is not None:
            yield from _rows(inner, document, prefix=f"{prefix}{name}{'[]' if _is_list(field) else ''}.")


def _type(field: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{str(value).lower() if value is True else value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(one, document) for one in field["anyOf"])
    if "$ref" in field:
        return "object"
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}), document)}"
    return str(field.get("type", "any"))


def _meaning(field: Mapping[str, Any]) -> str:
    bounds = [text.format(f"{field[key]:,}") for key, text in _BOUNDS.items() if key in field]
    default = [f"default `{str(field['default']).lower()}`"] if field.get("default") not in (None, "") else []
    said = [field["description"]] if "description" in field else []
    return " ".join([*said, *([f"({'; '.join([*default, *bounds])})"] if default or bounds else [])])


def _inside(field: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = field.get("items", field) if _is_list(field) else field
    for one in found.get("anyOf", (found,)):
        if "$ref" in one:
            inner: Mapping[str, Any] = document["$defs"][one["$ref"].rsplit("/", 1)[1]]
            return inner if "properties" in inner else None
    return None


def _is_list(field: Mapping[str, Any]) -> bool:
    return field.get("type") == "array"


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().split("\n")[0]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(write_reference())
    sys.stdout.write(f"wrote {TARGET.name}\n")
