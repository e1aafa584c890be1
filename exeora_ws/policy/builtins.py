"""Shell builtins that run text, or set variables, or change what later words mean."""

import re
from collections.abc import Mapping
from dataclasses import replace

from exeora_ws.policy.invocation import Invocation, Nested, Opener
from exeora_ws.policy.shell_words import DECLARATIONS, Unclear

NEVER: Mapping[str, str] = {
    "alias": "alias gives a command another name",
    "enable": "enable loads or hides builtins",
    "bind": "bind ties commands to keys",
    "complete": "complete ties commands to completion",
    "fc": "fc runs the shell's history",
    "compgen": "compgen runs text as code",
    "history": "history can put commands into the shell",
    "mapfile": "mapfile can run text as code",
    "readarray": "readarray can run text as code",
    "let": "let evaluates text as code in some shells",
}
"""What a list never lets through, and why."""

_EVALUATES = "{} evaluates text as code in some shells"


def _open_eval(found: Invocation, nested: Nested) -> Invocation:
    """`eval` joins its words into shell text."""
    words = found.words[2:] if found.words[1:2] == ("--",) else found.words[1:]
    text = None if None in words else " ".join(str(word) for word in words)
    return replace(found, inner=nested.read(text, "eval"), reach=1, transparent=True)


def _open_trap(found: Invocation, nested: Nested) -> Invocation:
    words = found.words[2:] if found.words[1:2] == ("--",) else found.words[1:]
    if not words or words[0] in ("-", "", "-p", "-l"):
        return found
    return replace(found, inner=nested.read(words[0], "trap"), reach=1, transparent=True)


def _open_source(found: Invocation, _nested: Nested) -> Invocation:
    file = found.words[1] if len(found.words) > 1 else None
    if file is None or file.startswith(("/dev/", "/proc/", "-")):
        return replace(found, opaque="it reads commands from what only the shell knows")
    return found


def _refuse_options(found: Invocation, _nested: Nested) -> Invocation:
    """`hash -p` gives a program another name, `jobs -x` runs one."""
    if any(word is None or word.startswith("-") for word in found.words[1:]):
        raise Unclear(f"{found.program} with options is not taken apart")
    return found


def _open_declaration(found: Invocation, _nested: Nested) -> Invocation:
    """`export NAME=value` sets variables as an assignment in front does."""
    if None in found.words and not found.variables:
        raise Unclear(f"{found.program} sets variables whose names only the shell will know")
    if found.program in ("declare", "typeset", "local") and any((word or "").startswith("-") for word in found.words):
        raise Unclear(f"{found.program} with options is not taken apart")
    _refuse_subscripts(found)
    names = [word.split("=", 1)[0].rstrip("+") for word in found.words[1:] if word and "=" in word]
    return replace(found, variables=(*found.variables, *names))


def _open_assigner(found: Invocation, _nested: Nested) -> Invocation:
    """`read`, `getopts`, `wait -p` set the variables that they are told the names of."""
    _refuse_subscripts(found)
    if None in found.words:
        raise Unclear(f"{found.program} sets variables whose names only the shell will know")
    names = tuple(word for word in found.words[1:] if word and re.fullmatch(r"[A-Za-z_]\w*", word))
    return replace(found, variables=(*found.variables, *names))


def _open_printf(found: Invocation, nested: Nested) -> Invocation:
    sets = len(found.words) > 1 and (found.words[1] is None or found.words[1].startswith("-v"))
    return _open_assigner(found, nested) if sets else found


def _open_unset(found: Invocation, _nested: Nested) -> Invocation:
    _refuse_subscripts(found)
    if None in found.words:
        raise Unclear(_EVALUATES.format("unset"))
    return found


def _open_test(found: Invocation, _nested: Nested) -> Invocation:
    """In Bash `test -v 'a[$(…)]'` runs what is in the brackets."""
    _refuse_subscripts(found)
    if "-v" in found.words and None in found.words:
        raise Unclear(_EVALUATES.format(found.program))
    return found


def _refuse_subscripts(found: Invocation) -> None:
    if any(word and "[" in word and ("$" in word or "`" in word) for word in found.words[1:]):
        raise Unclear(_EVALUATES.format(found.program))


BUILTINS: Mapping[str, Opener] = {
    "eval": _open_eval,
    "trap": _open_trap,
    ".": _open_source,
    "source": _open_source,
    "hash": _refuse_options,
    "jobs": _refuse_options,
    "printf": _open_printf,
    "unset": _open_unset,
    "test": _open_test,
    "[": _open_test,
    **dict.fromkeys(DECLARATIONS, _open_declaration),
    **dict.fromkeys(("read", "getopts", "wait"), _open_assigner),
}
"""What each builtin of note would start or set."""
