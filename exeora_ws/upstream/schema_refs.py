"""References inside JSON schemas: taken along when a part of a schema moves into another document. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from exeora_ws.upstream.routing import find_target

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LEFT_BEHIND = frozenset(("$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions"))
"""What only served references of the old document; those are resolved when a part moves."""

_DATA = frozenset(("const", "enum", "default", "examples", "example"))
"""Keywords whose value is no schema: a `$ref` in there is somebody's data."""

_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"))
_MAX_MEANING = 20
"""References behind a reference that are compared, so that large schemas stay cheap."""

_OTHER = re.compile(r"[^A-Za-z0-9_.-]")


class Definitions:
    """The `$defs` of a document that parts of others are moved into."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self._todo: list[tuple[str, Any, Any]] = []
        self._here: dict[tuple[int, str], str] = {}
        """By the document that a reference stands in. Documents outlive us: the caller holds them."""
        self._names: dict[str, str] = {}
        """By a definition's whole meaning: its text and that of all it refers to."""

    def rewrite(self, part: Any, document: Any) -> Any:
        """Give a part of a document as it may stand in ours; what it refers to is in `found` after `finish`.

        A reference that leads nowhere is dropped: it then allows anything, and the server decides.
        """
        if isinstance(part, list):
            return [self.rewrite(item, document) for item in part]
        if not isinstance(part, dict):
            return part
        if isinstance(part.get("$id"), str) and not part["$id"].startswith("#"):
            # A part with its own id is a document of its own to the references in it.
            document = part
        moved = {
            key: self.rewrite_value(key, value, document)
            for key, value in part.items()
            if not _is_reference(key, value) and key not in _LEFT_BEHIND
        }
        for key in _REFERENCES:
            if _is_reference(key, part.get(key)) and (name := self._adopt(part[key], document)):
                moved["$ref"] = f"#/$defs/{name}"
        return moved

    def rewrite_value(self, key: str, value: Any, document: Any) -> Any:
        """Give the value of one keyword as it may stand in ours."""
        if key in _DATA:
            return value
        if key in _MAPS and isinstance(value, dict):
            return {name: self.rewrite(schema, document) for name, schema in value.items()}
        return self.rewrite(value, document)

    def finish(self) -> dict[str, Any]:
        """Look at what was taken in, and at what that refers to, until nothing is new; gives the `$defs`."""
        while self._todo:
            name, target, document = self._todo.pop()
            self.found[name] = self.rewrite(target, document)
        return self.found

    def _adopt(self, reference: str, document: Any) -> str | None:
        target = resolve(reference, document)
        if not isinstance(target, dict | bool):
            return None
        here = (id(document), reference)
        if (known := self._here.get(here)) is not None:
            return known
        meaning = _describe_meaning(reference, document)
        if meaning is not None and (known := self._names.get(meaning)) is not None:
            self._here[here] = known
            return known
        name = self._choose_name(reference)
        self._here[here] = name
        if meaning is not None:
            self._names[meaning] = name
        # The place is taken before what stands there is looked at: a definition may refer to itself.
        self.found[name] = True
        self._todo.append((name, target, document))
        return name

    def _choose_name(self, reference: str) -> str:
        plain = _OTHER.sub("_", reference.rsplit("/", 1)[-1].lstrip("#"))[:60] or "root"
        name, number = plain, 1
        while name in self.found:
            number += 1
            name = f"{plain}_{number}"
        return name


def resolve(reference: str, document: Any) -> Any:
    """Follow a reference inside a document: a pointer, an anchor, the id of a part; None when it leads nowhere."""
    base, _, fragment = reference.partition("#")
    if base:
        document = next((part for part in _walk(document) if part.get("$id") == base), None)
    if document is None or not fragment or fragment.startswith("/"):
        return find_target(document, f"#{fragment}")
    anchors = ("$anchor", "$dynamicAnchor")
    return next(
        (
            part
            for part in _walk(document)
            if any(part.get(key) == fragment for key in anchors) or part.get("$id") == f"#{fragment}"
        ),
        None,
    )


def _describe_meaning(reference: str, document: Any) -> str | None:
    """Give a text that two references have in common only if they mean the same; None when that is too much to tell."""
    meaning: dict[str, Any] = {}
    todo = [reference]
    while todo:
        if len(meaning) > _MAX_MEANING:
            return None
        current = todo.pop()
        if current not in meaning:
            meaning[current] = resolve(current, document)
            todo += _list_references(meaning[current])
    return json.dumps([reference, meaning], sort_keys=True)


def _list_references(schema: Any) -> list[str]:
    return [part[key] for part in _walk(schema) for key in _REFERENCES if _is_reference(key, part.get(key))]


def _is_reference(key: str, value: Any) -> bool:
    return key in _REFERENCES and isinstance(value, str)


def _walk(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Give every schema inside a schema, itself first."""
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            yield part
            for key, value in part.items():
                if key in _MAPS and isinstance(value, dict):
                    todo += value.values()
                elif key not in _DATA:
                    todo.append(value)
        elif isinstance(part, list):
            todo += part
