"""Programs that start the program named in their own arguments, and where in their arguments it stands.

A table, one row a program. What a row does not list is not guessed at: the command is then `Unclear`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from exeora_ws.policy.shell_words import Unclear, Word, assigned_name, name_set


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How to find the inner command.

    Args:
        flags: short options without a value.
        valued: short options with a value, joined or as the next word.
        joined: short options whose value, if any, is joined.
        long: long options without a value.
        long_valued: long options with a value, joined by `=` or as the next word.
        positionals: words of its own that stand before the inner command.
        assignments: whether `NAME=value` words may stand before the inner command.
        transparent: whether an `allow` list that names the inner command lets it through; one that runs it as somebody
            else, or elsewhere, must be on the list itself.
        queries: options with which it runs nothing.
    """

    flags: str = ""
    valued: str = ""
    joined: str = ""
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    positionals: int = 0
    assignments: bool = False
    transparent: bool = True
    queries: frozenset[str] = frozenset()


_HELP = name_set("--help --version")
_TIMEOUT = Wrapper(
    flags="fpv", valued="ks", long=name_set("foreground preserve-status verbose"),
    long_valued=name_set("kill-after signal"),
    positionals=1, queries=_HELP,
)  # fmt: skip
_STDBUF = Wrapper(valued="ioe", long_valued=name_set("input output error"), queries=_HELP)

WRAPPERS: dict[str, Wrapper] = {
    "env": Wrapper(
        flags="i0v", valued="uC", long=name_set("ignore-environment null debug"), long_valued=name_set("unset chdir"),
        assignments=True, queries=_HELP,
    ),
    "timeout": _TIMEOUT,
    "gtimeout": _TIMEOUT,
    "nice": Wrapper(flags="0123456789", valued="n", long_valued=name_set("adjustment"), queries=_HELP),
    "nohup": Wrapper(queries=_HELP),
    "setsid": Wrapper(flags="cfw", long=name_set("ctty fork wait"), queries=_HELP),
    "stdbuf": _STDBUF,
    "gstdbuf": _STDBUF,
    "time": Wrapper(flags="pvaqlh", valued="fo", long=name_set("portability verbose append quiet"),
                    long_valued=name_set("format output"), queries=_HELP),
    "ionice": Wrapper(flags="t", valued="cn", long=name_set("ignore"),
                      long_valued=name_set("class classdata"), queries=_HELP),
    "chrt": Wrapper(flags="bfiorR", positionals=1, queries=_HELP),
    "taskset": Wrapper(flags="ac", positionals=1, queries=_HELP),
    "caffeinate": Wrapper(flags="disum", valued="tw"),
    "command": Wrapper(flags="p", queries=name_set("-v -V -pv -pV")),
    "builtin": Wrapper(),
    "exec": Wrapper(flags="cl", valued="a"),
    "xargs": Wrapper(
        flags="0rtpxo", valued="InPLsdaEJRS", joined="ile",
        long=name_set("null no-run-if-empty verbose interactive exit open-tty show-limits"),
        long_valued=name_set("max-args max-procs max-chars delimiter arg-file"), queries=_HELP,
    ),
    "sudo": Wrapper(
        flags="AbEHKknPSsiB", valued="CDghpRrtTUu", assignments=True, transparent=False,
        long=name_set("askpass background preserve-env set-home login non-interactive stdin shell bell"),
        long_valued=name_set("close-from chdir group host prompt chroot role type command-timeout other-user user"),
        queries=name_set("-l -ll -v -V --list --validate --version --help"),
    ),
    "doas": Wrapper(flags="Lns", valued="Cu", transparent=False),
    "chroot": Wrapper(long=name_set("skip-chdir"),
                      long_valued=name_set("groups userspec"), positionals=1, transparent=False),
}  # fmt: skip

LAUNCHERS = name_set(
    "at batch crontab watch script parallel flock tmux screen su runuser pkexec systemd-run unshare nsenter strace "
    "ltrace gdb expect entr start-stop-daemon daemonize setpriv capsh fakeroot proot bwrap firejail xvfb-run "
    "dbus-run-session dbus-launch rlwrap unbuffer gosu su-exec runcon sg newgrp machinectl osascript launchctl "
    "ssh-agent run-parts zsh ksh ksh93 mksh oksh loksh yash posh fish csh tcsh pwsh nu elvish xonsh prlimit numactl "
    "cgexec catchsegv choom setarch linux32 linux64 i386 x86_64 socat faketime eatmydata torsocks proxychains "
    "proxychains4"
)
"""Programs that start others in ways not taken apart here. A list refuses them, unless `allow` names them."""

SHELLS = re.compile(r"(?:r?ba|da|a)?sh(?:-?[0-9][0-9.]*)?\Z")
"""Shells whose `-c` text this reader knows how to read."""

_CODE_VARIABLES = re.compile(
    r"(?:LD_\w+|DYLD_\w+|GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT\Z)\w+|BASH_ENV|ENV|SHELL|SHELLOPTS|BASHOPTS|BASH_FUNC\w*|"
    r"PS[0-9]|PROMPT_COMMAND|IFS|\w*PAGER|\w*EDITOR|VISUAL|BROWSER|\w*ASKPASS|\w+_COMMAND|LESSOPEN|LESSCLOSE|MAKEFLAGS|"
    r"MAKESHELL|\w+_SHELL|PYTHON(?:STARTUP|PATH|HOME|INSPECT|BREAKPOINT|USERBASE|WARNINGS)|NODE_OPTIONS|NODE_PATH|PERL5?(?:OPT|LIB|DB)\w*|"
    r"RUBY(?:OPT|LIB)|_?JAVA_(?:TOOL_)?OPTIONS|JDK_JAVA_OPTIONS|GCONV_PATH|npm_config_\w+|NPM_CONFIG_\w+|CARGO_\w+|RUSTC\w*|"
    r"GOFLAGS|CC|CXX|TAR_OPTIONS|RSYNC_RSH|CVS_RSH|SSH_AUTH_SOCK|XDG_CONFIG_\w+|HOME|ZDOTDIR)\Z"
)


def runs_code(variable: str, *, listed: bool) -> bool:
    """Whether setting a variable can make a program run or load another; `listed`: an `allow` list is in force.

    `PATH` only counts then: a `deny` list compares names, and `PATH` does not change a name.
    """
    return bool(_CODE_VARIABLES.match(variable)) or (listed and variable in ("PATH", "CDPATH"))


def find_inner(name: str, wrapper: Wrapper, words: Sequence[Word]) -> tuple[int | None, tuple[str, ...]]:
    """Find where the inner command begins, and the variables set in front of it.

    Returns:
        The index into `words`, None when the wrapper runs nothing; and the variables' names.

    Raises:
        Unclear: an option that the table does not have, or a word that only the shell will know.
    """
    at = _skip_options(name, wrapper, words)
    if at is None:
        return None, ()
    variables = []
    while wrapper.assignments and at < len(words) and (variable := assigned_name(words[at])):
        variables.append(variable)
        at += 1
    _require_known(name, words[at : at + wrapper.positionals])
    at += wrapper.positionals
    return (at if at < len(words) else None), tuple(variables)


def _require_known(name: str, words: Sequence[Word]) -> None:
    if None in words:
        raise Unclear(f"an argument of {name} that only the shell will know decides what runs")


def _skip_options(name: str, wrapper: Wrapper, words: Sequence[Word]) -> int | None:
    at = 1
    while at < len(words):
        word = words[at]
        if word is None:
            raise Unclear(f"an argument of {name} that only the shell will know decides what runs")
        if word in wrapper.queries:
            return None
        if word == "--":
            return at + 1
        if word == "-" and name == "env":
            at += 1
        elif not word.startswith("-") or word == "-":
            return at
        else:
            at += _length_of_option(name, wrapper, word)
    return at


def _length_of_option(name: str, wrapper: Wrapper, word: str) -> int:
    if word.startswith("--"):
        option, joined, _ = word[2:].partition("=")
        if option in wrapper.long_valued:
            return 1 if joined else 2
        if option in wrapper.long:
            return 1
        raise Unclear(f"{name} has an option {'--' + option!r} that is not taken apart")
    for position, letter in enumerate(word[1:], start=1):
        if letter in wrapper.joined:
            return 1
        if letter in wrapper.valued:
            return 1 if position < len(word) - 1 else 2
        if letter not in wrapper.flags:
            raise Unclear(f"{name} has an option '-{letter}' that is not taken apart")
    return 1
