"""Single words of shell text: what they say once the shell has taken their quotes away."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

Word = str | None
"""A word of a command: its text, or None where only the shell will know (expansions, globs)."""

_BRACES = re.compile(r"\{.*(?:,|\.\.).*\}", re.DOTALL)
"""What Bash expands into several words."""
_GLOB = re.compile(r"(?<!\\)(?:\\\\)*[*?\[\]$`]")
_EXPANSION_START = re.compile(rb"(?<!\\)(?:\\\\)*(?:`|\$[A-Za-z0-9_({@*#?$!'\"\[-])")
_PLAIN_IN_STRING = ("string_content", "word", "number", "variable_name")


_BARE = ("word", "number", "variable_name", "special_variable_name", "file_descriptor", "extglob_pattern", "regex")
_BARE_WORD = re.compile(rb"(?:\\[^\n]|[^\\\s;&|<>()'\"`$])+")
_EXPANSIONS = ("command_substitution", "simple_expansion", "expansion", "arithmetic_expansion")
_FREE_TEXT = ("program", "string_content", "heredoc_body", "heredoc_content", "\n", ";\n")


class Unclear(Exception):
    """What would run cannot be told; the one argument says why, as the end of a sentence."""


def name_set(text: str) -> frozenset[str]:
    """Give the names in a list written with blanks."""
    return frozenset(text.split())


DECLARATIONS = name_set("export readonly declare typeset local")
"""Builtins that take assignments as arguments."""


def assigned_name(word: Word) -> str | None:
    """Give the variable that a word in front of a command would set."""
    found = re.match(r"([A-Za-z_][A-Za-z0-9_]*)=", word or "")
    return found[1] if found else None


def decode_word(node: "Node") -> Word:
    """Give the text of a word's node, or None where only the shell will know it."""
    text = text_of(node)
    match node.type:
        case "command_name" | "concatenation":
            return _decode_parts(node, text)
        case "raw_string":
            return text[1:-1] if text.startswith("'") else None
        case "string":
            return (
                None
                if _expands(node) or not text.startswith('"')
                else re.sub(r"\\(?:\n|([$`\"\\]))", r"\1", text[1:-1])
            )
        case "word" | "number" | "variable_name" | "test_operator":
            return None if _GLOB.search(text) or _BRACES.search(text) else re.sub(r"\\(.)", r"\1", text)
        case "variable_assignment":
            return None if _expands(node) or set("'\"\\*?[") & set(text) else text
    return None


def text_of(node: "Node") -> str:
    """Give a node's source text."""
    return (node.text or b"").decode()


def is_whole(node: "Node") -> bool:
    """Whether a token is what it is called: the grammar lets some begin with blanks, and a newline there hides much."""
    source, kind = node.text or b"", node.type
    if kind in _BARE:
        return bool(_BARE_WORD.fullmatch(source))
    if kind in _FREE_TEXT or _in_text(node):
        return True
    return source[:1] not in (b" ", b"\t", b"\n") and (node.is_named or source == kind.encode())


def _in_text(node: "Node") -> bool:
    """Whether a node is a child of quoted text, or the first token of one: blanks there are text."""
    parent = node.parent
    if parent is not None and parent.type in _EXPANSIONS and parent.start_byte == node.start_byte:
        parent = parent.parent
    return parent is not None and parent.type in ("string", "heredoc_body")


def hides_expansion(node: "Node", *, skip: int = 0) -> bool:
    """Whether text that the tree calls plain holds the start of an expansion; `skip` bytes at the front are known."""
    source, base = node.text or b"", node.start_byte
    at, plain = skip, []
    for child in node.named_children:
        plain.append(source[at : child.start_byte - base])
        at = child.end_byte - base
    plain.append(source[at:])
    return any(map(_EXPANSION_START.search, plain))


def parts_below(node: "Node") -> Iterator["Node"]:
    """Give the words and operators of a test, in order."""
    for child in node.children:
        if child.type.endswith("_expression") and child.type != "brace_expression":
            yield from parts_below(child)
        else:
            yield child


def _decode_parts(node: "Node", text: str) -> Word:
    parts = [decode_word(child) for child in node.named_children]
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts) or not _covers(node) or _BRACES.search(text):
        return None
    return "".join(known)


def _covers(node: "Node") -> bool:
    """Whether the named children make up the whole node, with no loose token (a lone `$`) beside them."""
    return sum(child.end_byte - child.start_byte for child in node.named_children) == node.end_byte - node.start_byte


def _expands(node: "Node") -> bool:
    return any(child.type not in _PLAIN_IN_STRING for child in node.named_children)
