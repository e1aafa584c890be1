"""The user's login shell: its environment, taken once, since starting one can cost half a second a call."""

import os
import pwd
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from exeora_ws.errors import ExeoraError
from exeora_ws.files.ripgrep import PipedChild, Spawn
from exeora_ws.processes.command import SHELL
from exeora_ws.processes.environment import SECRET_VARIABLES
from exeora_ws.processes.table import TAG_VARIABLE

_SECONDS = 10.0
_MARK = b"exeora-login-environment:"
_BOURNE = frozenset({"sh", "bash", "dash", "ash"})
"""Shells whose language the policy's reader knows."""
_NOT_TAKEN = frozenset({"_", "SHLVL", "PWD", "OLDPWD", TAG_VARIABLE})


@dataclass(frozen=True, slots=True)
class LoginShell:
    """What a command line is handed to, and the environment that a login would have given it."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]


_lock = threading.Lock()
_taken: dict[tuple[str, str | None], LoginShell] = {}


def load_login_shell(spawn: Spawn) -> LoginShell:
    """Give the user's login shell; started the first time, remembered as long as this process lives.

    A command line goes to the user's own shell only where that is a Bourne shell: policy reads no other language.
    Where the login shell fails or takes longer than ten seconds, the environment of this process is used.
    """
    program = os.environ.get("SHELL") or pwd.getpwuid(os.getuid()).pw_shell or SHELL
    with _lock:
        key = (program, os.environ.get("HOME"))
        if key not in _taken:
            runner = program if os.path.basename(program) in _BOURNE else SHELL
            _taken[key] = LoginShell((runner, "-c"), _take_environment(program, spawn))
        return _taken[key]


def _take_environment(program: str, spawn: Spawn) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in SECRET_VARIABLES | {TAG_VARIABLE}}
    script = f"printf %s {_MARK.decode()}; exec env -0"
    try:
        with spawn([program, "-l", "-c", script], cwd=os.path.expanduser("~"), environ=own) as child:
            output = _read_all(child)
    except ExeoraError:
        return own
    _, mark, listed = output.partition(_MARK)
    found = dict(entry.split("=", 1) for entry in os.fsdecode(listed).split("\0") if "=" in entry)
    return {name: value for name, value in found.items() if name not in _NOT_TAKEN} if mark and found else own


def _read_all(child: PipedChild) -> bytes:
    """Read to the end; whoever takes too long is killed, which ends the reading."""
    killer = threading.Timer(_SECONDS, child.kill)
    killer.start()
    try:
        parts = []
        while block := child.stdout.read(65_536):
            parts.append(block)
        return b"".join(parts)
    finally:
        killer.cancel()
