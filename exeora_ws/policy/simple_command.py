"""A simple command as a shell sees it: variables in front, then words."""

import re
from dataclasses import dataclass

from exeora_ws.policy.shell_words import Unclear, Word, assigned_name, name_set

_KEYWORDS = name_set("if then else elif fi do done case esac while until for in select function coproc { } ! [[ ]]")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command. No words: it only sets variables."""

    words: tuple[Word, ...]
    variables: tuple[str, ...] = ()


def make_command(words: tuple[Word, ...], variables: tuple[str, ...] = ()) -> SimpleCommand:
    """Make one, and refuse a first word that shells take for something else than a program.

    Raises:
        Unclear: it is a keyword, or sets a variable in Bash only.
    """
    while words and (name := assigned_name(words[0])):
        variables, words = (*variables, name), words[1:]
    first = (words[0] if words else None) or ""
    if first in _KEYWORDS:
        raise Unclear(f"it uses {first!r} where a program should stand")
    if re.match(r"[A-Za-z_]\w*(?:\[.*\])?\+?=", first, re.DOTALL):
        raise Unclear("it sets a variable in a way that not every shell knows")
    return SimpleCommand(words, variables)
