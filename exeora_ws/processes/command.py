"""What to run, where, for whom: plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exeora_ws.processes.output import Chunk

SHELL = "/bin/sh"


@dataclass(frozen=True, slots=True)
class Command:
    """Something to run.

    `folder` is an open descriptor of `cwd`, owned by the caller, needed until the command has started; with it the
    command starts in what was opened, whatever the path means by then.
    """

    argv: tuple[str, ...]
    line: str
    """As it is shown to people: the shell line, or the words."""
    cwd: str
    environ: Mapping[str, str]
    folder: int | None = None
    umask: int | None = None
    """None for ours."""


def make_shell_command(
    line: str, *, cwd: str, environ: Mapping[str, str], folder: int | None = None, shell: Sequence[str] = (SHELL, "-c")
) -> Command:
    """Make a command out of a shell line. `shell` is what the line is handed to (a login shell has its own words)."""
    return Command((*shell, line), line, cwd, environ, folder)


@dataclass(frozen=True, slots=True)
class Owner:
    """For whom a command runs. `session` names the conversation whose end ends it."""

    project: str
    workspace: str
    session: str


@dataclass(frozen=True, slots=True)
class Started:
    """A command that runs on its own."""

    id: str
    line: str
    pid: int


@dataclass(frozen=True, slots=True)
class Output:
    """What a started command wrote, and whether more can come."""

    chunk: Chunk
    running: bool
    code: int | None
    """Exit code; None while it runs and after a signal."""
    signal: str | None


@dataclass(frozen=True, slots=True)
class Killed:
    """What became of a kill: `killed` is False for a command that had already ended."""

    killed: bool
    code: int | None


@dataclass(frozen=True, slots=True)
class Listing:
    """One started command in a list, running or ended in the last ten minutes."""

    id: str
    owner: Owner
    line: str
    pid: int
    since: float
    """Seconds of the epoch."""
    running: bool
    code: int | None
    signal: str | None
