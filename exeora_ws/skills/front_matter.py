"""The front matter of a SKILL.md: name and description, out of YAML that nobody has to trust."""

import re
from dataclasses import dataclass

import yaml
from yaml.events import AliasEvent

_FENCE = re.compile(r"---[ \t]*\r?\n(.*?)(?:\r?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_NAME_CHARACTERS = 64
_DESCRIPTION_CHARACTERS = 1_024


class Malformed(Exception):
    """The front matter does not say what a skill must say; the one argument says what is wrong."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a skill says of itself. `cut` tells that the description was longer than 1,024 characters."""

    name: str
    description: str
    cut: bool


class _Loader(yaml.BaseLoader):
    """Every scalar is text, tags mean nothing, and aliases are refused: they let a small file unfold without end."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(AliasEvent):
            raise Malformed("aliases are not allowed in front matter")
        return super().compose_node(parent, index)


def parse_front_matter(text: str) -> FrontMatter:
    """Read name and description.

    Raises:
        Malformed: there is no front matter, it is not YAML, or one of the two is missing.
    """
    found = _FENCE.match(text.removeprefix("\ufeff"))
    if found is None:
        raise Malformed("it does not begin with front matter between two lines of ---")
    document = _load(found[1])
    if not isinstance(document, dict):
        raise Malformed("its front matter is not a list of keys")
    name, description = (_require_text(document, key) for key in ("name", "description"))
    if len(name) > _NAME_CHARACTERS:
        raise Malformed(f"its name is longer than {_NAME_CHARACTERS} characters")
    return FrontMatter(name, description[:_DESCRIPTION_CHARACTERS], len(description) > _DESCRIPTION_CHARACTERS)


def _load(text: str) -> object:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a BaseLoader makes text, lists and mappings, nothing else
    except yaml.MarkedYAMLError as error:
        # The fence is line 1 and marks count from 0.
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise Malformed(f"line {line} is not YAML") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Malformed("its front matter is not YAML") from error


def _require_text(document: dict[object, object], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value.strip():
        raise Malformed(f"its front matter has no {key}")
    return " ".join(value.split())
