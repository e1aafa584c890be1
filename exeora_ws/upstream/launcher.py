"""From a configured program to what can be spawned: where the launcher is, what it is told, where it starts."""

import ntpath
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from exeora_ws.environment import without_git_routing
from exeora_ws.upstream.server import Program, Server, Source

_SHORT = frozenset(
    (
        *("HOME", "PATH", "SHELL", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
        *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "COMSPEC", "NVM_DIR", "NVM_BIN", "VOLTA_HOME"),
    )
)
"""What a project's own server is told of the user's environment: where things are, and how to reach the network."""

_SHORT_PREFIXES = ("LC_", "XDG_")


def make_environment(server: Server, program: Program, user: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of a server: the user's and its own entries.

    A server that a project defines gets a short list of plain variables instead: the repository chose the program, and
    must not be handed the user's tokens by it. Variables that would send Git elsewhere are in neither.
    """
    kept = without_git_routing(user)
    if server.source is Source.PROJECT:
        kept = {k: v for k, v in kept.items() if k.upper() in _SHORT or k.upper().startswith(_SHORT_PREFIXES)}
    return kept | dict(program.env)


def find_working_directory(program: Program, directory: Path) -> Path:
    """Give where the server starts: the directory a call acts in, or the configured one, relative to that."""
    if program.cwd is None:
        return directory
    return Path(os.path.normpath(directory / os.path.expanduser(program.cwd)))


def find_launcher(
    command: str,
    environ: Mapping[str, str],
    *,
    windows: bool = os.name == "nt",
    is_file: Callable[[str], bool] = os.path.isfile,
) -> str:
    """Give the program to start.

    Elsewhere than on Windows that is the command itself: the system looks it up in PATH. Windows does not know that
    `npx` is `npx.cmd`, so PATH and PATHEXT are gone through the way a shell does. What is not found is given back as
    it is, for the spawner to say so.
    """
    if not windows:
        return command
    variables = {key.upper(): value for key, value in environ.items()}
    extensions = [e for e in variables.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";") if e]
    known = any(command.lower().endswith(e.lower()) for e in extensions)
    names = [command] if known else [command + e for e in extensions]
    folders = [""] if ntpath.dirname(command) else variables.get("PATH", "").split(";")
    candidates = (ntpath.join(folder, name) if folder else name for folder in folders for name in names)
    return next((path for path in candidates if is_file(path)), command)
