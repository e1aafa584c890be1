"""Whether a policy's lists let a command line through (contract, section 8), and which rule decided."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from exeora_ws.policy.invocation import Invocation, walk_all
from exeora_ws.policy.rules import Policy, Rule
from exeora_ws.policy.shell import SHELL_SYNTAX
from exeora_ws.policy.shell_words import Unclear, Word
from exeora_ws.policy.unwrap import list_invocations
from exeora_ws.policy.wrappers import runs_code

_SHOWN_WORDS = 6
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class CommandVerdict:
    """Whether the lists let a command through.

    Args:
        reason: None when it may run, else `denied`, `shell_syntax`, `not_allowed` or `command_unclear`.
        text: why, as a clause.
        rules: the rules that decided.
    """

    reason: str | None
    text: str
    rules: tuple[Rule, ...] = ()


def judge_command(policy: Policy, command: str) -> CommandVerdict:
    """Judge a command line by the policy's lists; with none in force, it is not even read."""
    if not policy.has_list:
        return CommandVerdict(None, "no list is in force")
    try:
        invocations = list_invocations(command)
    except Unclear as unclear:
        return _judge_syntax(policy, command) or _refuse_unclear(str(unclear))
    return (
        _judge_deny(policy, invocations)
        or _judge_syntax(policy, command)
        or _judge_clarity(policy, invocations)
        or _judge_allow(policy, invocations)
    )


def _judge_deny(policy: Policy, invocations: Iterable[Invocation]) -> CommandVerdict | None:
    for invocation in walk_all(invocations):
        for rule in policy.deny:
            if may_match(rule, invocation.words):
                return CommandVerdict("denied", f"{_show(invocation)} is denied by the rule {rule.text!r}", (rule,))
    return None


def _judge_syntax(policy: Policy, command: str) -> CommandVerdict | None:
    if policy.shell or SHELL_SYNTAX.isdisjoint(command):
        return None
    found = next(character for character in command if character in SHELL_SYNTAX)
    shown = "a newline" if found == "\n" else found
    return CommandVerdict("shell_syntax", f"it holds shell syntax ({shown}), which needs shell = true")


def _judge_clarity(policy: Policy, invocations: Iterable[Invocation]) -> CommandVerdict | None:
    """Refuse what changes the meaning of the words that are judged."""
    listed = policy.allow is not None
    for invocation in walk_all(invocations):
        for variable in invocation.variables:
            if runs_code(variable, listed=listed):
                return _refuse_unclear(f"setting {variable} can change which code runs")
        if invocation.opaque and not listed:
            return _refuse_unclear(f"{invocation.program}: {invocation.opaque}")
    return None


def _refuse_unclear(why: str) -> CommandVerdict:
    return CommandVerdict("command_unclear", f"what it would run cannot be told: {why}")


def _judge_allow(policy: Policy, invocations: Iterable[Invocation]) -> CommandVerdict:
    if policy.allow is None:
        return CommandVerdict(None, "no rule denies it")
    used: list[Rule] = []
    for invocation in invocations:
        refused = _find_unlisted(policy.allow, invocation, used)
        if refused is not None:
            return CommandVerdict("not_allowed", f"no rule allows {_show(refused)}")
    rules = tuple(dict.fromkeys(used))
    text = "allowed by " + ", ".join(repr(rule.text) for rule in rules) if rules else "it starts no program"
    return CommandVerdict(None, text, rules)


def _find_unlisted(allow: Sequence[Rule], invocation: Invocation, used: list[Rule]) -> Invocation | None:
    """Find the first program that no rule allows; note the rules that allowed the others."""
    if not invocation.words:
        return None
    fitting = [rule for rule in allow if matches(rule, invocation.words)]
    whole = [rule for rule in fitting if not rule.star or len(rule.words) > invocation.reach]
    used += (whole or fitting)[:1]
    if whole:
        return None
    if not fitting and not (invocation.transparent and invocation.inner):
        return invocation
    return next(filter(None, (_find_unlisted(allow, inner, used) for inner in invocation.inner)), None)


def matches(rule: Rule, words: Sequence[Word]) -> bool:
    """Whether a rule matches for certain: a word that only the shell will know matches nothing but a star."""
    return tuple(words[: len(rule.words)]) == rule.words and (rule.star or len(words) == len(rule.words))


def may_match(rule: Rule, words: Sequence[Word]) -> bool:
    """Whether a rule could match once the shell has put in what only it knows. Letter case is no way around it."""
    if not words:
        return False
    known = _fold(words[: words.index(None)] if None in words else words)
    wanted = _fold(rule.words)
    if None in words:
        common = min(len(wanted), len(known))
        return known[:common] == wanted[:common] and (rule.star or len(known) <= len(wanted))
    return known[: len(wanted)] == wanted and (rule.star or len(known) == len(wanted))


def _fold(words: Sequence[Word]) -> list[str]:
    return [(word or "").casefold() if at == 0 else (word or "") for at, word in enumerate(words)]


def _show(invocation: Invocation) -> str:
    text = " ".join("…" if word is None else word for word in invocation.words[:_SHOWN_WORDS])
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…")
