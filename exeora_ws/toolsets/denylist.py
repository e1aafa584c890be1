"""Whether a command line would run something on a list, wrappers and nested shells taken apart."""

import re
from collections.abc import Iterable, Sequence

from exeora_ws.policy.commands import matches, may_match
from exeora_ws.policy.invocation import walk_all
from exeora_ws.policy.rules import Rule, parse_rule
from exeora_ws.policy.shell_words import Unclear, Word
from exeora_ws.policy.unwrap import list_invocations


def find_denied(line: str, patterns: Iterable[str]) -> str | None:
    """Find the first pattern that a command line runs into; None when it runs into none.

    A pattern of one word is that program with any arguments, several words are exactly that command (a last `*` is
    any more). Where the shell alone could tell what would run, a pattern that stands in the line as words is enough.
    """
    rules = [parse_rule(pattern) for pattern in patterns]
    try:
        invocations = list_invocations(line)
    except Unclear:
        return next((rule.text for rule in rules if _stands_in(rule, line)), None)
    for invocation in walk_all(invocations):
        for rule in rules:
            if _denies(rule, invocation.words):
                return rule.text
    return None


def _denies(rule: Rule, words: Sequence[Word]) -> bool:
    # A whole command is only denied for certain: `find -exec rm` with words unknown is not `rm -rf /`.
    return matches(rule, words) if len(rule.words) > 1 else may_match(rule, words)


def _stands_in(rule: Rule, line: str) -> bool:
    text = r"\s+".join(map(re.escape, rule.words))
    return re.search(rf"(?<![\w.-]){text}(?![\w.-])", line, re.IGNORECASE) is not None
