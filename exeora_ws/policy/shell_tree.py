"""Simple commands out of tree-sitter's Bash grammar, for text with shell syntax.

The grammar forgives, and a shell does not, so its tree is believed only where the two must agree: node types on a list,
nothing but blanks between tokens, words decoded from the source text, and no `$` or backtick that the tree does not
account for. Whatever is left over is `Unclear`, which a list refuses. `docs/decisions/0007-policy.md` says what was
weighed; `tests/policy/test_shells_agree.py` compares with real shells.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

import tree_sitter
import tree_sitter_bash
from tree_sitter import Node

from exeora_ws.policy.shell_words import (
    DECLARATIONS,
    Unclear,
    Word,
    decode_word,
    hides_expansion,
    is_whole,
    name_set,
    parts_below,
    text_of,
)
from exeora_ws.policy.simple_command import SimpleCommand, make_command

_DEPTH = 100
_GROUPS = name_set(
    "program list pipeline subshell negated_command if_statement elif_clause else_clause while_statement do_group "
    "case_statement case_item function_definition process_substitution variable_assignments concatenation command_name "
    "file_redirect herestring_redirect unary_expression binary_expression parenthesized_expression ternary_expression"
)
"""Nodes that run nothing themselves: what is inside them is looked at."""
_LEAVES = name_set(
    "raw_string number simple_expansion brace_expression variable_name special_variable_name heredoc_start heredoc_end "
    "file_descriptor test_operator"
)
_PLAIN = name_set("word extglob_pattern regex string string_content heredoc_content")
"""Nodes with text in which no expansion may hide."""
_LOOSE = name_set("string heredoc_body expansion")
"""Nodes whose blanks are text."""
_ASIDE = name_set("file_redirect heredoc_redirect herestring_redirect")
_EXPANSION_OPERATORS = frozenset(("${", "}", ":-", "-", ":=", "=", ":?", "?", ":+", "+", "%", "%%", "#", "##"))
_TEST_OPERATORS = frozenset(("[", "]", "=", "==", "!=", "!"))
_NUMBERS_ONLY = re.compile(r"\$\(\([-0-9\s+*/%()<>&|^~!?:]*\)\)\Z")
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:([A-Za-z_]\w*)|'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\")(?=[\s;&|<>])")
_ONE_LINE = name_set(
    "command declaration_command unset_command test_command file_redirect herestring_redirect redirected_statement "
    "variable_assignment variable_assignments unary_expression binary_expression parenthesized_expression"
)
"""Nodes inside which a shell would not go on after a newline."""
_BLANKS = re.compile(rb"(?:[ \t\n]|\\\n)*")
_BLANKS_OF_ONE_LINE = re.compile(rb"(?:[ \t]|\\\n)*")
_DISAGREE = "which not every shell reads the same way"


def read_tree(text: str) -> list[SimpleCommand]:
    """List the simple commands of a text.

    Raises:
        Unclear: the text is more than this reader understands.
    """
    return _Reader(text).read()


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class _Reader:
    """Walks one tree. Not kept."""

    def __init__(self, text: str) -> None:
        if re.search(r"(?<![ \t\n])\\\n", text):
            raise Unclear("a line is continued inside a word")
        self.source = text.encode()
        self.found: list[SimpleCommand] = []
        self._collected: set[int] = set()
        self._heredoc_lines: set[int] = set()
        self._inspectors: dict[str, Callable[[Node], None]] = {
            "command": self._inspect_command,
            "declaration_command": self._inspect_declaration,
            "unset_command": self._inspect_declaration,
            "test_command": self._inspect_test,
            "variable_assignment": self._inspect_assignment,
            "redirected_statement": self._inspect_redirected,
            "arithmetic_expansion": _inspect_arithmetic,
            "expansion": self._inspect_expansion,
            "command_substitution": _inspect_substitution,
            "compound_statement": _inspect_compound,
            "for_statement": lambda node: self._add((), (text_of(node.children[1]),)),
            "heredoc_redirect": self._inspect_heredoc,
            "heredoc_body": _inspect_heredoc_body,
            "comment": self._inspect_comment,
        }

    def read(self) -> list[SimpleCommand]:
        root = _parser().parse(self.source).root_node
        if root.has_error:
            raise Unclear("its shell syntax cannot be parsed")
        self._check_gap(0, root.start_byte)
        self._check_gap(root.end_byte, len(self.source))
        self._walk(root, 0)
        return self.found

    def _add(self, words: tuple[Word, ...], variables: tuple[str, ...] = ()) -> None:
        self.found.append(make_command(words, variables))

    def _check_gap(self, start: int, end: int, blanks: re.Pattern[bytes] = _BLANKS) -> None:
        if not blanks.fullmatch(self.source, start, end):
            raise Unclear("part of it is no shell syntax that this reader knows")

    def _walk(self, node: Node, depth: int) -> None:
        if depth > _DEPTH:
            raise Unclear("it is nested too deeply")
        if node.is_missing or node.is_error:
            raise Unclear("its shell syntax cannot be parsed")
        if not is_whole(node):
            raise Unclear("it holds blanks where shells do not agree about them")
        if node.is_named:
            self._inspect(node)
        elif node.type in ("&>", "&>>", "|&"):
            raise Unclear(f"it uses {node.type}, {_DISAGREE}")
        elif node.type == "$" and (node.parent is None or node.parent.type != "simple_expansion"):
            raise Unclear("it holds a dollar sign that stands for itself")
        self._walk_children(node, depth)

    def _walk_children(self, node: Node, depth: int) -> None:
        at = node.start_byte
        blanks = _BLANKS_OF_ONE_LINE if node.type in _ONE_LINE else _BLANKS
        for child in node.children:
            if node.type == "concatenation" and child.start_byte != at:
                raise Unclear("a word is joined in a way that shells do not agree about")
            if node.type not in _LOOSE:
                self._check_gap(at, child.start_byte, blanks)
            at = child.end_byte
            self._walk(child, depth + 1)
        if node.children and node.type not in _LOOSE:
            self._check_gap(at, node.end_byte, blanks)

    def _inspect(self, node: Node) -> None:
        """Look at the node itself: collect a command, or refuse what shells do not agree about."""
        kind = node.type
        if kind in self._inspectors:
            self._inspectors[kind](node)
        elif kind in _PLAIN:
            if hides_expansion(node) and not (kind == "heredoc_content" and _is_literal(node.parent)):
                raise Unclear("it holds an expansion that this reader cannot place")
        elif kind not in _GROUPS and kind not in _LEAVES:
            raise Unclear(f"it uses {kind.replace('_', ' ')}, {_DISAGREE}")

    def _inspect_command(self, node: Node) -> None:
        if node.id not in self._collected:
            self._collect(node, ())

    def _collect(self, node: Node, late: tuple[Word, ...]) -> None:
        words = (*_words_of(node, (*_ASIDE, "variable_assignment")), *late)
        if words and words[0] in DECLARATIONS and None in words:
            raise Unclear("it declares variables whose names only the shell will know")
        self._add(words, _variables_of(node))

    def _inspect_declaration(self, node: Node) -> None:
        self._add((text_of(node.children[0]), *_words_of(node, tuple(_ASIDE))), _variables_of(node))

    def _inspect_test(self, node: Node) -> None:
        parts = list(parts_below(node))
        if parts[0].type != "[":
            raise Unclear(f"it uses [[…]] or ((…)), {_DISAGREE}")
        if any(not part.is_named and part.type not in _TEST_OPERATORS for part in parts):
            raise Unclear("it uses an operator inside […]")
        self._add(tuple(decode_word(part) if part.is_named else part.type for part in parts))

    def _inspect_assignment(self, node: Node) -> None:
        name, operator = node.children[0], node.children[1]
        if name.type != "variable_name" or operator.type != "=" or any(c.type == "array" for c in node.children):
            raise Unclear("it sets a variable in a way that not every shell knows")
        if node.parent is None or node.parent.type not in ("command", "declaration_command"):
            self._add((), (text_of(name),))

    def _inspect_redirected(self, node: Node) -> None:
        """Words after a redirection belong to the command before it, where the grammar has them as further files."""
        body = node.child_by_field_name("body")
        late = tuple(word for redirect in node.children_by_field_name("redirect") for word in _late_words(redirect))
        if not late:
            return
        if body is None or body.type != "command":
            raise Unclear("words follow a redirection")
        self._collected.add(body.id)
        self._collect(body, late)

    def _inspect_expansion(self, node: Node) -> None:
        if hides_expansion(node, skip=len("${")):
            raise Unclear("it holds an expansion that this reader cannot place")
        operators = [child.type for child in node.children if not child.is_named]
        strange = [operator for operator in operators if operator not in _EXPANSION_OPERATORS]
        if strange or any(child.type == "subscript" for child in node.children):
            raise Unclear(f"it uses the expansion {text_of(node)!r}, {_DISAGREE}")
        if not {"=", ":="}.isdisjoint(operators):
            self._add((), (text_of(node.named_children[0]),))

    def _inspect_heredoc(self, node: Node) -> None:
        head = _HEREDOC.match(text_of(node))
        end = next((child for child in node.children if child.type == "heredoc_end"), None)
        start = self.source.find(b"\n", node.start_byte) + 1
        if head is None or end is None or not start or start in self._heredoc_lines:
            raise Unclear("it uses a here-document that this reader cannot follow")
        self._heredoc_lines.add(start)
        if head[2] and b"\\\n" in self.source[start : end.end_byte]:
            raise Unclear("a line is continued inside a here-document")
        name = head[2] or head[3] or head[4]
        if self._find_heredoc_end(start, name.encode(), tabs=bool(head[1])) != end.end_byte:
            raise Unclear("it uses a here-document whose end this reader cannot tell")

    def _find_heredoc_end(self, start: int, name: bytes, *, tabs: bool) -> int:
        at = start
        for line in self.source[start:].split(b"\n"):
            if (line.lstrip(b"\t") if tabs else line) == name:
                return at + len(line)
            at += len(line) + 1
        return -1

    def _inspect_comment(self, node: Node) -> None:
        before = self.source[: node.start_byte][-1:] or b"\n"
        inside = node.parent.type if node.parent else ""
        if before not in b" \t\n;&|()" or b"\n" in (node.text or b"") or inside in _ONE_LINE:
            raise Unclear("it holds a comment that this reader cannot place")


def _inspect_arithmetic(node: Node) -> None:
    if not _NUMBERS_ONLY.match(text_of(node).lstrip()):
        raise Unclear("it computes with more than numbers, which some shells evaluate as code")


def _inspect_substitution(node: Node) -> None:
    text = text_of(node).lstrip()  # the grammar counts blanks before a backtick to it
    if text.startswith("`") and "\\" in text:
        raise Unclear("it uses a backslash inside backticks")
    if text.startswith("$(("):
        raise Unclear(f"it uses $((…)), {_DISAGREE}")


def _inspect_compound(node: Node) -> None:
    if node.children[0].type != "{":
        raise Unclear(f"it uses ((…)), {_DISAGREE}")


def _inspect_heredoc_body(node: Node) -> None:
    if not _is_literal(node) and hides_expansion(node):
        raise Unclear("it holds an expansion that this reader cannot place")


def _is_literal(body: Node | None) -> bool:
    """Whether a here-document's body is taken as it stands, because its delimiter is quoted."""
    redirect = body.parent if body else None
    return redirect is not None and bool(re.match(r"<<-?[ \t]*['\"]", text_of(redirect)))


def _late_words(redirect: Node) -> Iterator[Word]:
    if redirect.type == "file_redirect":
        yield from map(decode_word, redirect.children_by_field_name("destination")[1:])
    elif redirect.type == "heredoc_redirect":
        yield from map(decode_word, redirect.children_by_field_name("argument"))
        for inner in redirect.children_by_field_name("redirect"):
            yield from _late_words(inner)


def _words_of(node: Node, skipped: tuple[str, ...]) -> tuple[Word, ...]:
    if any(True for redirect in node.children_by_field_name("redirect") for _ in _late_words(redirect)):
        raise Unclear("words follow a redirection")
    return tuple(decode_word(child) for child in node.named_children if child.type not in skipped)


def _variables_of(node: Node) -> tuple[str, ...]:
    return tuple(text_of(child.children[0]) for child in node.named_children if child.type == "variable_assignment")
