"""From a command line to the programs it would start: wrappers, shells and builtins taken apart by name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from exeora_ws.policy.builtins import BUILTINS, NEVER
from exeora_ws.policy.git_options import open_git
from exeora_ws.policy.invocation import Invocation, Nested, Opener
from exeora_ws.policy.rules import base_name
from exeora_ws.policy.shell import read_commands
from exeora_ws.policy.shell_words import Unclear, Word
from exeora_ws.policy.simple_command import SimpleCommand, make_command
from exeora_ws.policy.wrappers import LAUNCHERS, SHELLS, WRAPPERS, find_inner

_NESTING = 8
_SHELL_LETTERS = frozenset("abcefhlmnoptuvxBCEHPO")
_SHELL_WORDS = frozenset(("--login", "--norc", "--noprofile", "--posix", "--restricted", "--verbose"))


def list_invocations(command: str) -> tuple[Invocation, ...]:
    """List what a command line would start, wrappers unwrapped.

    Raises:
        Unclear: it cannot be told.
    """
    return _Depth(0).read(command, "the command")


@dataclass(frozen=True, slots=True)
class _Depth:
    """How deep in wrappers and `-c` texts the reader is."""

    level: int

    def open(self, words: tuple[Word, ...]) -> Invocation:
        return _open(make_command(words), self._deeper())

    def read(self, text: Word, whose: str) -> tuple[Invocation, ...]:
        if text is None:
            raise Unclear(f"the text that {whose} would run is only known to the shell")
        below = self._deeper()
        return tuple(_open(simple, below) for simple in read_commands(text))

    def _deeper(self) -> "_Depth":
        if self.level > _NESTING:
            raise Unclear("it is nested too deeply")
        return _Depth(self.level + 1)


def _open(simple: SimpleCommand, nested: Nested) -> Invocation:
    if not simple.words:
        return Invocation((), simple.variables)
    if simple.words[0] is None:
        raise Unclear("the shell would work out the name of a program")
    name = base_name(simple.words[0])
    found = Invocation((name, *simple.words[1:]), simple.variables)
    if name in NEVER:
        raise Unclear(NEVER[name])
    opener = _find_opener(name)
    if opener is None and _find_opener(name.casefold()) is not None:
        raise Unclear(f"{name!r} is {name.casefold()!r} where letter case does not count")
    return opener(found, nested) if opener else found


def _find_opener(name: str) -> Opener | None:
    if name in _OPENERS:
        return _OPENERS[name]
    if name in WRAPPERS:
        return _open_wrapper
    if SHELLS.match(name):
        return _open_shell
    if name in LAUNCHERS or (name.startswith("ld") and ".so" in name):
        return _open_launcher
    return None


def _open_launcher(found: Invocation, _nested: Nested) -> Invocation:
    return replace(found, opaque="it starts other programs by means that are not taken apart")


def _open_wrapper(found: Invocation, nested: Nested) -> Invocation:
    name = found.program
    wrapper = WRAPPERS[name]
    at, variables = find_inner(name, wrapper, found.words)
    found = replace(found, variables=(*found.variables, *variables), transparent=wrapper.transparent)
    if at is None:
        return found
    words = found.words[at:]
    if name == "xargs":
        words = _feed_xargs(found.words[1:at], words)
    return replace(found, inner=(nested.open(words),), reach=at)


def _feed_xargs(options: Sequence[Word], words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words xargs adds are known to nobody: at the end, or wherever its placeholder stands."""
    marks = []
    for at, option in enumerate(options):
        if found := re.match(r"-[0rtpxo]*[IJ](.*)", option or "", re.DOTALL):
            marks.append(found[1] or str(options[at + 1]))
        elif found := re.match(r"-[0rtpxo]*i(.*)", option or "", re.DOTALL):
            marks.append(found[1] or "{}")
    if not marks:
        return (*words, None)
    return tuple(None if word is None or any(mark in word for mark in marks) else word for word in words)


def _open_shell(found: Invocation, nested: Nested) -> Invocation:
    """A shell with `-c` runs its text; with a file, that file, unread; with neither, whatever it is fed."""
    at, reads_text = _skip_shell_options(found.words)
    if reads_text:
        text = found.words[at] if at < len(found.words) else ""
        return replace(found, inner=nested.read(text, found.program), reach=at, transparent=True)
    file = found.words[at] if at < len(found.words) else None
    if not file or file.startswith(("/dev/", "/proc/", "-")):
        return replace(found, opaque="it reads its commands from its input")
    return found


def _skip_shell_options(words: Sequence[Word]) -> tuple[int, bool]:
    """Give the index of the first operand, and whether `-c` makes that operand the text to run."""
    at, reads_text = 1, False
    while at < len(words):
        word = words[at]
        if word is None or word in ("-", "--", "+") or not word.startswith(("-", "+")):
            break
        if not (word in _SHELL_WORDS or (not word.startswith("--") and set(word[1:]) <= _SHELL_LETTERS)):
            raise Unclear(f"{words[0]} has an option {word!r} that is not taken apart")
        letters = "" if word.startswith("--") else word[1:]
        reads_text = reads_text or (word.startswith("-") and "c" in letters)
        at += 1 + sum(letter in "oO" for letter in letters)
    if at < len(words) and words[at] in ("-", "--"):
        at += 1
    return at, reads_text


def _open_applet(found: Invocation, nested: Nested) -> Invocation:
    """Busybox and its like: the program is their first argument."""
    if len(found.words) == 1:
        return found
    if found.words[1] is None or found.words[1].startswith("-"):
        raise Unclear(f"which applet {found.program} would run cannot be told")
    return replace(found, inner=(nested.open(found.words[1:]),), reach=1, transparent=True)


def _open_find(found: Invocation, nested: Nested) -> Invocation:
    """The commands after `-exec` and its kin. A word that only the shell knows could be one of these."""
    if None in found.words:
        raise Unclear("an argument of find that only the shell will know could be -exec")
    inner, at = [], 1
    while at < len(found.words):
        at += 1
        if found.words[at - 1] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(at, len(found.words)) if found.words[i] in (";", "+")), len(found.words))
            words = tuple(None if "{}" in str(word) else word for word in found.words[at:end])
            inner += [nested.open(words)] if words else []
            at = end + 1
    return replace(found, inner=tuple(inner), reach=len(found.words))


_OPENERS: Mapping[str, Opener] = {
    **BUILTINS,
    "busybox": _open_applet,
    "toybox": _open_applet,
    "find": _open_find,
    "gfind": _open_find,
    "git": open_git,
}
