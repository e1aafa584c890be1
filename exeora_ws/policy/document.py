"""`exeora.toml` as text: a new one, or an existing one with the policy put in and every comment kept. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import Array

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.policy.layer import KEYS
from exeora_ws.policy.rules import Mode, parse_rule

_HEAD = """\
# What agents and people may do in this project through exeora.
# Reference: docs/policy.md. This file can only narrow what the user's own policy allows.

"""
_MEANINGS = {
    "mode": "allow_all, allow_list (only commands in `allow` run) or read_only",
    "allow": 'one word: that program with any arguments; "git status": exactly that; "npm run *": any ending',
    "deny": "never runs, in any mode; checked first",
    "shell": "whether commands may hold shell syntax while a list is in force",
    "approve": "whether a person confirms everything that is not read only",
    "tools": "the tools on offer; leave it out for all",
}


@dataclass(frozen=True, slots=True)
class PolicyDraft:
    """What the file shall say; None leaves a key as it is."""

    mode: Mode | None = None
    allow: Sequence[str] | None = None
    deny: Sequence[str] | None = None
    shell: bool | None = None
    approve: bool | None = None
    tools: Sequence[str] | None = None

    def values(self) -> dict[str, Any]:
        """Give the keys that are said, as TOML values."""
        said = {key: getattr(self, key) for key in KEYS}
        plain = {key: list(v) if isinstance(v, (list, tuple)) else v for key, v in said.items() if v is not None}
        if "mode" in plain:
            plain["mode"] = str(plain["mode"])
        return plain


def compose_document(existing: str | None, draft: PolicyDraft, *, force: bool = False) -> str:
    """Write the policy into the text of an `exeora.toml`.

    Args:
        existing: the file's text as it is, or None for a new file.
        draft: what it shall say.
        force: whether a key that says something else already is overwritten.

    Returns:
        The new text; the same text when it says all this already.

    Raises:
        InvalidArguments: `invalid_rule`; `policy_exists` names the keys that would be overwritten without `force`.
        ToolFailed: `policy_invalid` when the existing text is not TOML, with the line; it is never overwritten.
    """
    for text in (*(draft.allow or ()), *(draft.deny or ())):
        parse_rule(text)
    if existing is None:
        return _compose_new(draft)
    document = _parse(existing)
    changes = {key: value for key, value in draft.values().items() if not _says(document.get(key), value)}
    taken = [key for key in changes if key in document]
    if taken and not force:
        raise InvalidArguments(
            f"exeora.toml has a different {' and '.join(taken)} already",
            reason="policy_exists",
            hint="--force overwrites these keys and keeps everything else",
        )
    _put(document, changes)
    return tomlkit.dumps(document) if changes else existing


def _compose_new(draft: PolicyDraft) -> str:
    mode = Mode.ALLOW_ALL if draft.allow is None else Mode.ALLOW_LIST  # a list in `allow_all` would not be in force
    values: Mapping[str, Any] = {"mode": str(mode)} | draft.values()
    lines = [f"# {_MEANINGS[key]}\n{key} = {tomlkit.item(values[key]).as_string()}\n" for key in KEYS if key in values]
    return _HEAD + "\n".join(lines)


def _says(present: Any, wanted: Any) -> bool:
    """Whether a key says this already; the order of a list means nothing."""
    if isinstance(present, list) and isinstance(wanted, list):
        return sorted(map(str, present)) == sorted(wanted)
    return bool(present == wanted) and isinstance(present, bool) == isinstance(wanted, bool)


def _parse(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except ParseError as error:
        message = f"exeora.toml, line {error.line}: not valid TOML"
        raise ToolFailed(message, reason="policy_invalid", hint="correct it, then run this again") from error
    except (TOMLKitError, RecursionError) as error:
        raise ToolFailed("exeora.toml is not valid TOML", reason="policy_invalid") from error


def _put(document: tomlkit.TOMLDocument, changes: Mapping[str, Any]) -> None:
    """Replace in place; a new key goes before the first table, where a top-level key has to stand."""
    for key, value in changes.items():
        present = document.get(key)
        if isinstance(present, Array) and isinstance(value, list):
            _change_array(present, value)
        else:
            document[key] = value


def _change_array(present: Array, wanted: Sequence[str]) -> None:
    """Take items out and put items in one by one, so that the comments between the others stay."""
    for at in range(len(present) - 1, -1, -1):
        if present[at] not in wanted:
            del present[at]
    for item in wanted:
        if item not in present:
            present.append(item)
