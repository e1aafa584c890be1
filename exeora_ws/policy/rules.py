"""What a project allows, as a value, and how three layers of it narrow each other. Pure: no file is read here.

A rule is words (contract, section 8): one word is that program with any arguments; several words are exactly that
command; a star as the last word is any further arguments, none included. A star anywhere else is plain text.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from exeora_ws.errors import InvalidArguments


class Mode(StrEnum):
    """How far a project opens, from the widest to the narrowest."""

    ALLOW_ALL = "allow_all"
    ALLOW_LIST = "allow_list"
    READ_ONLY = "read_only"


_STRICTNESS = tuple(Mode)


class Origin(StrEnum):
    """Where a rule or a setting came from, as a person would look it up."""

    DEFAULT = "the default"
    USER = "your own policy in config.json"
    PROJECT = "exeora.toml in the project root"
    WORKSPACE = "exeora.toml in the workspace"
    ACCOUNT = "the account's policy at the gateway"


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of `allow` or `deny`. The first word is a base name."""

    words: tuple[str, ...]
    star: bool
    text: str = field(compare=False)
    """As written, for messages."""
    origin: Origin = field(default=Origin.DEFAULT, compare=False)

    def covers(self, other: "Rule") -> bool:
        """Whether every command that `other` matches is matched by this rule too."""
        if not self.star:
            return not other.star and self.words == other.words
        return other.words[: len(self.words)] == self.words

    @property
    def stray_star(self) -> bool:
        """Whether a star stands where it means nothing, which its author may not have meant."""
        return any("*" in word for word in self.words)


def parse_rule(text: str, origin: Origin = Origin.DEFAULT) -> Rule:
    """Read one rule; quotes group as in a shell.

    Raises:
        InvalidArguments: reason `invalid_rule`: empty, or a quote is not closed.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidArguments(f"the rule {text!r} has a quote that is not closed", reason="invalid_rule") from error
    if not words or not words[0]:
        raise InvalidArguments("a rule cannot be empty", reason="invalid_rule")
    star = words[-1] == "*"
    kept = words[:-1] if star else words
    if kept:
        kept[0] = base_name(kept[0])
    return Rule(tuple(kept), star or len(kept) == 1, text, origin)


def base_name(program: str) -> str:
    """Give the name programs compare by: what follows the last slash."""
    return program.rstrip("/").rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Policy:
    """One layer's policy, or several narrowed into one.

    Args:
        mode: how far it opens.
        allow: the commands that may run; None when no such list is in force, which is so in `allow_all`.
        deny: the commands that never run.
        shell: whether shell syntax may be used while a list is in force.
        approve: whether a person is asked before anything that is not read only.
        tools: the tools on offer; None for all.
        faults: why a layer was closed to read only because it could not be understood, one sentence each.
        origins: which layer decided `mode`, `shell`, `approve` and `tools`.
    """

    mode: Mode = Mode.ALLOW_ALL
    allow: tuple[Rule, ...] | None = None
    deny: tuple[Rule, ...] = ()
    shell: bool = True
    approve: bool = False
    tools: frozenset[str] | None = None
    faults: tuple[str, ...] = field(default=(), compare=False)
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False)

    @property
    def has_list(self) -> bool:
        """Whether commands are judged at all."""
        return self.allow is not None or bool(self.deny)

    def origin_of(self, name: str) -> Origin:
        """Say which layer decided a field."""
        return self.origins.get(name, Origin.DEFAULT)


OPEN = Policy()
"""The policy of a project that has none. Narrowing by it changes nothing."""


def closed_policy(fault: str, origin: Origin) -> Policy:
    """Make the policy of a layer that cannot be understood: read only, and no command at all."""
    origins = dict.fromkeys(("mode", "allow"), origin)
    return Policy(mode=Mode.READ_ONLY, allow=(), faults=(fault,), origins=origins)


def narrow(outer: Policy, inner: Policy) -> Policy:
    """Give what both allow (contract, section 8): nothing that either refuses alone, and never more than either.

    The stricter mode; `allow` and `tools` intersect; `deny` unites; `shell` needs both; `approve` needs either.
    """
    return Policy(
        mode=max(outer.mode, inner.mode, key=_STRICTNESS.index),
        allow=_intersect_rules(outer.allow, inner.allow),
        deny=tuple(dict.fromkeys((*outer.deny, *inner.deny))),
        shell=outer.shell and inner.shell,
        approve=outer.approve or inner.approve,
        tools=_intersect_tools(outer.tools, inner.tools),
        faults=(*outer.faults, *inner.faults),
        origins=_merge_origins(outer, inner),
    )


def narrow_all(layers: Iterable[Policy]) -> Policy:
    """Narrow layer by layer, from the outermost in."""
    result = OPEN
    for layer in layers:
        result = narrow(result, layer)
    return result


def _intersect_rules(outer: Sequence[Rule] | None, inner: Sequence[Rule] | None) -> tuple[Rule, ...] | None:
    """Two rules match either nested sets of commands or disjoint ones, so the narrower of each nested pair is exact."""
    if outer is None or inner is None:
        kept = inner if outer is None else outer
        return None if kept is None else tuple(kept)
    from_inner = [rule for rule in inner if any(wide.covers(rule) for wide in outer)]
    from_outer = [rule for rule in outer if any(wide.covers(rule) for wide in inner)]
    return tuple(dict.fromkeys((*from_inner, *from_outer)))


def _intersect_tools(outer: frozenset[str] | None, inner: frozenset[str] | None) -> frozenset[str] | None:
    if outer is None or inner is None:
        return inner if outer is None else outer
    return outer & inner


def _merge_origins(outer: Policy, inner: Policy) -> dict[str, Origin]:
    decided_inside = {
        "mode": _STRICTNESS.index(inner.mode) > _STRICTNESS.index(outer.mode),
        "shell": outer.shell and not inner.shell,
        "approve": inner.approve and not outer.approve,
        "tools": inner.tools is not None and (outer.tools is None or not outer.tools <= inner.tools),
        "allow": inner.allow is not None,
    }
    return {
        name: (inner if inside else outer).origin_of(name)
        for name, inside in decided_inside.items()
        if name in (inner if inside else outer).origins
    }


def relabel(policy: Policy, origin: Origin) -> Policy:
    """Say of every rule and setting that it came from `origin`."""
    return replace(
        policy,
        allow=None if policy.allow is None else tuple(replace(rule, origin=origin) for rule in policy.allow),
        deny=tuple(replace(rule, origin=origin) for rule in policy.deny),
        origins=dict.fromkeys(policy.origins, origin),
    )
