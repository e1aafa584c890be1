"""One layer of policy, read from what a file or `config.json` says. Pure; the wrong type closes the layer."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from exeora_ws.errors import InvalidArguments
from exeora_ws.policy.rules import Mode, Origin, Policy, Rule, closed_policy, parse_rule

KEYS = ("mode", "allow", "deny", "shell", "approve", "tools")
"""The policy's own keys, at the top level of `exeora.toml`."""
OTHER_TABLES = ("workspace", "mcp")
"""Tables of the same file that other rooms read."""

_LINE = re.compile(r"at line (\d+)")


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer's policy, and what its author should be told about it."""

    policy: Policy
    warnings: tuple[str, ...] = ()


class _Wrong(Exception):
    """A key's value has the wrong type; `args` are the key and what was expected."""


def parse_policy_file(text: str, origin: Origin) -> Layer:
    """Read the policy out of the text of an `exeora.toml`; one that cannot be understood closes to read only."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        return Layer(closed_policy(f"{origin}, line {line}: not valid TOML", origin))
    except RecursionError:
        return Layer(closed_policy(f"{origin}, line 1: nested too deeply", origin))
    return parse_layer(document, origin, lambda key: f"line {find_line(text, key)}", known=(*KEYS, *OTHER_TABLES))


def parse_user_policy(document: Any) -> Layer:
    """Read the user's own policy for a project, as `config.json` holds it."""
    if not isinstance(document, Mapping):
        return Layer(closed_policy(f"{Origin.USER}: expected an object", Origin.USER))
    return parse_layer(document, Origin.USER, lambda key: f"key {key!r}")


def parse_layer(
    document: Mapping[str, Any], origin: Origin, locate: Callable[[str], str], *, known: tuple[str, ...] = KEYS
) -> Layer:
    """Read a layer from parsed data.

    Args:
        document: keys and values; keys outside `known` are warned about.
        origin: which layer this is.
        locate: says where a key stands, for messages.
        known: keys that are no surprise.
    """
    warnings = [f"{origin}, {locate(key)}: unknown key {key!r}" for key in document if key not in known]
    try:
        policy = _read(document, origin)
    except _Wrong as wrong:
        key, expected = wrong.args
        return Layer(closed_policy(f"{origin}, {locate(key)}: {key}: {expected}", origin), tuple(warnings))
    warnings += [f"{origin}, {locate(key)}: {text}" for key, text in _doubts(document, policy)]
    return Layer(policy, tuple(warnings))


def find_line(text: str, key: str) -> int:
    """Find the line a top-level key or table stands on, counted from 1; 1 when it cannot be told."""
    pattern = re.compile(rf"[ \t]*(?:\[[ \t]*)?([\"']?){re.escape(key)}\1[ \t]*[=.\]]")
    for number, line in enumerate(text.split("\n"), start=1):
        if pattern.match(line):
            return number
    return 1


def _read(document: Mapping[str, Any], origin: Origin) -> Policy:
    deny = _rules(document, "deny", origin) or ()
    allow = _rules(document, "allow", origin)
    mode = _mode(document, allow)
    if mode is Mode.ALLOW_ALL:
        allow = None
    elif mode is Mode.ALLOW_LIST and allow is None:
        allow = ()
    shell = _flag(document, "shell")
    return Policy(
        mode=mode,
        allow=allow,
        deny=deny,
        shell=(allow is None and not deny) if shell is None else shell,
        approve=bool(_flag(document, "approve")),
        tools=_tools(document),
        origins=dict.fromkeys((*(key for key in KEYS if key in document), *_implied(document)), origin),
    )


def _implied(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Fields that a layer decides without naming them: a list brings its mode and closes the shell."""
    if "allow" in document:
        return ("mode", "shell")
    return ("shell",) if "deny" in document else ()


def _mode(document: Mapping[str, Any], allow: tuple[Rule, ...] | None) -> Mode:
    if "mode" not in document:
        return Mode.ALLOW_ALL if allow is None else Mode.ALLOW_LIST
    try:
        return Mode(document["mode"])
    except ValueError:
        raise _Wrong("mode", "expected one of " + ", ".join(Mode)) from None


def _rules(document: Mapping[str, Any], key: str, origin: Origin) -> tuple[Rule, ...] | None:
    if key not in document:
        return None
    try:
        return tuple(parse_rule(text, origin) for text in _texts(document, key))
    except InvalidArguments as error:
        raise _Wrong(key, error.message) from error


def _tools(document: Mapping[str, Any]) -> frozenset[str] | None:
    return frozenset(_texts(document, "tools")) if "tools" in document else None


def _texts(document: Mapping[str, Any], key: str) -> list[str]:
    value = document[key]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _Wrong(key, "expected a list of strings")
    return value


def _flag(document: Mapping[str, Any], key: str) -> bool | None:
    value = document.get(key)
    if value is not None and not isinstance(value, bool):
        raise _Wrong(key, "expected true or false")
    if value is None and key in document:
        raise _Wrong(key, "expected true or false")
    return value


def _doubts(document: Mapping[str, Any], policy: Policy) -> list[tuple[str, str]]:
    """Things that are legal and probably not meant."""
    found = []
    if policy.mode is Mode.ALLOW_ALL and document.get("allow"):
        found.append(("allow", 'allow is not in force in mode allow_all; set mode = "allow_list"'))
    for key, rules in (("allow", policy.allow or ()), ("deny", policy.deny)):
        found += [
            (key, f"the star in {rule.text!r} is plain text: it only means something as the last word")
            for rule in rules
            if rule.stray_star
        ]
    return found
