"""The one spawner: every process of the product that is not git starts here.

A command gets its own session, a tag in its environment, and no descriptor but those it is given. No `preexec_fn`:
it costs 5 ms and is unsafe beside threads.

On Linux this process becomes child-subreaper with its first command: a grandchild whose parent died falls to us
instead of to init, so it is still found. macOS has no such thing: a daemonised process there is found by session and
tag only. Windows has neither sessions nor TERM; commands are not supported there.
"""

import os
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import IO, Any

from exeora_ws.errors import ExeoraError, InvalidArguments, PathNotFound, ToolFailed
from exeora_ws.processes.family import forget_child, spawning
from exeora_ws.processes.table import LINUX, TAG_VARIABLE, require_entry
from exeora_ws.processes.tree import Stray, Tree

DEVNULL = subprocess.DEVNULL
PIPE = subprocess.PIPE
STDOUT = subprocess.STDOUT

_PR_SET_CHILD_SUBREAPER = 36
_E2BIG = 7
_UNTAGGED = "-"
"""The tag of this process itself, when no command started it."""


class Child:
    """A process we started, and the root of its tree. Whoever holds it polls it: nobody else takes its exit code."""

    def __init__(self, popen: "subprocess.Popen[bytes]", tree: Tree) -> None:
        self._popen = popen
        self.tree = tree
        self.pid = popen.pid

    @property
    def stdin(self) -> IO[bytes] | None:
        """The writing end of its input, unbuffered, when it was asked for."""
        return self._popen.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        """The reading end of its output, unbuffered, when it was asked for."""
        return self._popen.stdout

    @property
    def stderr(self) -> IO[bytes] | None:
        """The reading end of its error output, unbuffered, when it was asked for."""
        return self._popen.stderr

    def poll(self) -> int | None:
        """Give the exit code, -N after signal N, None while it runs."""
        code = self._popen.poll()
        if code is not None:
            forget_child(self.pid)
        return code

    def open_exit_descriptor(self) -> int | None:
        """Open a descriptor that becomes readable when it ends; None where the system has no such thing."""
        with suppress(OSError):
            return os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        return None

    def wait(self) -> int:
        """Wait for its end, however long."""
        code = self._popen.wait()
        forget_child(self.pid)
        return code

    def give_up(self) -> None:
        """Stop expecting its end: it could not be killed."""
        forget_child(self.pid)

    def close_pipes(self) -> None:
        """Close our ends of its pipes."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def spawn(
    argv: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    folder: int | None = None,
    stdin: int | None = DEVNULL,
    stdout: int | None = PIPE,
    stderr: int | None = PIPE,
    own_session: bool = True,
    pass_fds: Sequence[int] = (),
    umask: int | None = None,
    stray: Stray | None = None,
) -> Child:
    """Start one process.

    Args:
        argv: program and arguments; the program is looked up in the PATH of `environ`.
        cwd: absolute path to start in; what the child sees as PWD.
        environ: the whole environment; the tag is added.
        folder: an open descriptor of `cwd`: the child starts in what was opened, whatever the path means by then.
        stdin: as for subprocess: a descriptor, DEVNULL, PIPE, or None to share ours.
        stdout: likewise.
        stderr: likewise, or STDOUT.
        own_session: False only for a command that shares a person's terminal.
        pass_fds: descriptors the child keeps.
        umask: None for ours.
        stray: see `Tree`.

    Raises:
        PathNotFound: `cwd` is gone.
        ToolFailed: reason `not_started` or `command_too_long`.
        InvalidArguments: a NUL or a lone surrogate in an argument.
    """
    adopt_orphans()
    # What others start (git's background helpers) inherits this, and is thus never taken for a command's orphan.
    os.environ.setdefault(TAG_VARIABLE, _UNTAGGED)
    tag = secrets.token_hex(8)
    try:
        popen = _open(
            argv,
            cwd=f"/proc/self/fd/{folder}" if folder is not None and LINUX else cwd,
            env={**environ, TAG_VARIABLE: join_tags(environ.get(TAG_VARIABLE), tag), "PWD": cwd},
            bufsize=0,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=own_session,
            pass_fds=pass_fds,
            umask=-1 if umask is None else umask,
        )
    except (OSError, ValueError) as error:
        raise _translate(error, argv) from error
    return Child(popen, Tree(require_entry(popen.pid).identity, tag, own_session, stray))


def _open(argv: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
    with spawning() as direct:
        popen = subprocess.Popen(argv, **options)
        direct.add(popen.pid)
    return popen


def spawn_detached(argv: Sequence[str], *, environ: Mapping[str, str], pass_fds: Sequence[int]) -> None:
    """Start a program that becomes nobody's child by itself, and outlives whoever started it: the host.

    It is no part of any command, also when a command started us.
    """
    subprocess.run(
        argv,
        env={**environ, TAG_VARIABLE: _UNTAGGED},
        cwd="/",
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        start_new_session=True,
        pass_fds=pass_fds,
        check=False,
    )


@cache
def _server_tag(_pid: int) -> str:
    return secrets.token_hex(8)


def get_server_tag() -> str:
    """Give the word that everything this process starts carries beside its own tag."""
    return _server_tag(os.getpid())


def join_tags(inherited: str | None, tag: str) -> str:
    """Give a child's tag: what we were tagged with ourselves, this process, the command."""
    words = (inherited or "").split(":")
    return ":".join(word for word in (*words, get_server_tag(), tag) if word not in ("", _UNTAGGED))


@cache
def _adopt_orphans(_pid: int) -> bool:
    import ctypes  # noqa: PLC0415 - 5 ms that only a process which starts a command pays

    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def adopt_orphans() -> bool:
    """Become child-subreaper, once; False where the system has none."""
    return LINUX and _adopt_orphans(os.getpid())


def may_have_left() -> bool:
    """Whether a command that ended, and was polled, can have left anything running: cheap, and often a plain no.

    All that it could have left has fallen to us, so without a child there is nothing to look for.
    """
    if not adopt_orphans():
        return True
    with suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def _translate(error: OSError | ValueError, argv: Sequence[str]) -> ExeoraError:
    if isinstance(error, UnicodeEncodeError):
        return InvalidArguments("command: holds half a character (a lone surrogate)", reason="invalid_text")
    if isinstance(error, ValueError):
        return InvalidArguments("command: holds a NUL character", reason="invalid_text")
    program = os.path.basename(argv[0])
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        if error.filename == argv[0]:
            return ToolFailed(f"there is no program {program!r}", reason="not_started")
        return PathNotFound("cwd: the folder is gone", reason="cwd_gone")
    if isinstance(error, OSError) and error.errno == _E2BIG:
        return ToolFailed(
            "the command is longer than the system takes", reason="command_too_long", hint="put it into a script file"
        )
    return ToolFailed(f"{program!r} cannot be started: {error.strerror}", reason="not_started")


def name_signal(number: int) -> str:
    """Give a signal's name (`SIGKILL`); real-time signals without one are `SIG40`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
