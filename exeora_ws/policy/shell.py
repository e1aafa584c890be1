"""Every simple command in a piece of shell text, or the reason why that cannot be told for certain."""

import re
import unicodedata

from exeora_ws.policy.shell_words import Unclear, Word
from exeora_ws.policy.simple_command import SimpleCommand, make_command

SHELL_SYNTAX = frozenset(";&|<>$`(){}[]!*?~\\'\"\n")
"""The characters that make a command more than words (contract, section 8)."""

COMMAND_CHARACTERS = 65_536
"""Longest text that is judged."""


def read_commands(text: str) -> tuple[SimpleCommand, ...]:
    """List every simple command that running `text` in a shell could start, wherever it stands in it.

    Raises:
        Unclear: the text is more than this reader understands.
    """
    _check_characters(text)
    if SHELL_SYNTAX.isdisjoint(text):
        return _read_plain(text)
    # Loaded only when a list is in force and a command has shell syntax: 40 ms that nothing else should pay.
    from exeora_ws.policy.shell_tree import read_tree  # noqa: PLC0415 - see above

    return tuple(read_tree(text))


def _check_characters(text: str) -> None:
    if len(text) > COMMAND_CHARACTERS:
        raise Unclear(f"it is longer than {COMMAND_CHARACTERS} characters")
    for character in set(text) - set(" \t\n"):
        if unicodedata.category(character) in ("Cc", "Cs", "Zs", "Zl", "Zp"):
            raise Unclear(f"it holds the character U+{ord(character):04X}, which shells do not agree about")


def _read_plain(text: str) -> tuple[SimpleCommand, ...]:
    """Without shell syntax a command is its words, up to a comment."""
    words: list[Word] = []
    for word in re.split(r"[ \t]+", text.strip(" \t")):
        if word.startswith("#") or not word:
            break
        words.append(word)
    return (make_command(tuple(words)),) if words else ()
