"""The only runner of the git executable: sealed environment, no prompt, a time limit, nothing left running."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from exeora_ws.cancellation import Cancellation
from exeora_ws.environment import without_git_routing
from exeora_ws.errors import ToolFailed
from exeora_ws.git.ending import end_group, reap_group, wait_for_end
from exeora_ws.git.messages import describe_failure
from exeora_ws.limits import GIT_FETCH_SECONDS, GIT_POPULATE_SECONDS, GIT_READ_SECONDS, KILL_GRACE_MS

_DROPPED = frozenset({"GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_PAGER", "PAGER"})
# A configuration that came along from another system may say that names differ in more than case; here they need not,
# and git would pass over a file beside one that is tracked.
_CASE = ("-c", "core.ignoreCase=false") if sys.platform == "linux" else ()
_READ_OPTIONS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *_CASE)
_CHANGE_OPTIONS = ("-c", "core.fsmonitor=false")
WORKERS = ("-c", "checkout.workers=8", "-c", "checkout.thresholdForParallelism=1")
"""Options for a git that writes many files."""
_UNATTENDED = {"GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}

# Runs the command as a child in its own group, and kills the group when the pipe on standard input closes: so git, its
# checkout workers, filters and hooks die with an exeora that was killed outright.
_LIFELINE = """exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
{ read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 &
exec 3<&-
wait $child"""


_TAKEN_BACK_BY: ContextVar[Cancellation | None] = ContextVar("taken_back_by", default=None)


@contextmanager
def taken_back_by(cancellation: Cancellation) -> Iterator[None]:
    """Have every git that this thread runs in the block end when the call is taken back, which raises `Cancelled`.

    For reads only: they leave nothing half done.
    """
    token = _TAKEN_BACK_BY.set(cancellation)
    try:
        yield
    finally:
        _TAKEN_BACK_BY.reset(token)


@dataclass(frozen=True, slots=True)
class Output:
    """What a finished git said."""

    code: int
    """Exit code; negative for the signal that ended it."""
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Standard output without its last newline; undecodable bytes as surrogates."""
        return decode(self.out).removesuffix("\n")


def decode(data: bytes) -> str:
    """Decode what git prints; undecodable bytes become surrogates, as `os.fsdecode` does under UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The inverse of `decode`."""
    return text.encode("utf-8", "surrogateescape")


def find_git(environ: Mapping[str, str] | None = None) -> str | None:
    """Find the git executable on the search path; None when there is none."""
    return shutil.which("git", path=(os.environ if environ is None else environ).get("PATH"))


def require_git() -> str:
    """Find the git executable.

    Raises:
        ToolFailed: reason `git_missing`.
    """
    found = find_git()
    if found is None:
        raise ToolFailed("this needs the git executable, and there is none on PATH", reason="git_missing")
    return found


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the environment for our own git calls: no routing, no prompt, no tracing, messages in plain English.

    The character set stays the user's: hooks and filters see file names as they always do.
    """
    env = {n: v for n, v in without_git_routing(environ).items() if n not in _DROPPED and not n.startswith("GIT_TRACE")}
    everything = env.pop("LC_ALL", None)
    if everything:
        env["LC_CTYPE"] = everything
    return env | {"GIT_TERMINAL_PROMPT": "0", "LC_MESSAGES": "C", "LANGUAGE": "C"}


class Git:
    """Runs git for one repository, at one folder, without ever searching further up."""

    def __init__(self, folder: Path, git_dir: Path) -> None:
        """Take where to run (`folder`: a worktree's top or the Git folder itself) and the Git folder to act on."""
        self.folder = folder
        self.git_dir = git_dir

    def at(self, git_dir: Path) -> "Git":
        """Give git at another Git folder of the same repository, without files."""
        return Git(git_dir, git_dir)

    def read(
        self,
        *arguments: str,
        ok: Sequence[int] = (0,),
        stdin: bytes = b"",
        cancellation: Cancellation | None = None,
        seconds: float = GIT_READ_SECONDS,
    ) -> Output:
        """Run a command that changes nothing: no optional locks, no hooks, no file system monitor, no fetching.

        Raises:
            ToolFailed: an exit code that is not in `ok`; see `describe_failure` for its reason.
            Cancelled: the call was taken back.
        """
        command = (*_READ_OPTIONS, *arguments)
        stop = _TAKEN_BACK_BY.get() if cancellation is None else cancellation
        return self._run(command, ok, seconds, stdin=stdin, optional_locks=False, cancellation=stop)

    def change(
        self,
        *arguments: str,
        ok: Sequence[int] = (0,),
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
    ) -> Output:
        """Run a short command that changes refs or configuration, with the hooks that git would run.

        `environment` is added last: another index, another identity.
        """
        return self._run((*_CHANGE_OPTIONS, *arguments), ok, GIT_READ_SECONDS, stdin=stdin, extra=environment)

    def reach(self, *arguments: str) -> Output:
        """Run a command that talks to another machine: a short limit, nobody is asked for anything. Any exit code."""
        return self._run((*_CHANGE_OPTIONS, *arguments), None, GIT_FETCH_SECONDS, extra=_UNATTENDED)

    def populate(self, *arguments: str, cancellation: Cancellation | None = None) -> Output:
        """Run a long command that writes a worktree; it dies with this process. Gives any exit code.

        Raises:
            Cancelled: the call was taken back.
        """
        command = (*_CHANGE_OPTIONS, *arguments)
        return self._run(command, None, GIT_POPULATE_SECONDS, lifeline=True, cancellation=cancellation)

    def populate_by(self, program: Sequence[str], *, cancellation: Cancellation | None = None) -> Output:
        """Run a program of ours that writes a worktree, as `populate` runs git; it is given how to call git last."""
        environment = clean_environment(os.environ)
        command = [*program, require_git(), *self._place(environment), *_CHANGE_OPTIONS]
        return run(command, environment, seconds=GIT_POPULATE_SECONDS, lifeline=True, cancellation=cancellation)

    def _run(
        self,
        arguments: Sequence[str],
        ok: Sequence[int] | None,
        seconds: float,
        *,
        stdin: bytes = b"",
        optional_locks: bool = True,
        lifeline: bool = False,
        cancellation: Cancellation | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Output:
        environment = clean_environment(os.environ) | dict(extra or {})
        if not optional_locks:
            environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
        command = [require_git(), *self._place(environment), *arguments]
        output = run(command, environment, seconds=seconds, stdin=stdin, lifeline=lifeline, cancellation=cancellation)
        if ok is not None and output.code not in ok:
            raise describe_failure(output.code, decode(output.err))
        return output

    def _place(self, environment: dict[str, str]) -> list[str]:
        """Say where git shall act. Somebody else's folder is left to git's own search, which judges its ownership."""
        try:
            ours = {os.stat(self.git_dir).st_uid, os.stat(self.folder).st_uid} == {os.geteuid()}
        except OSError as error:
            raise ToolFailed("the repository's folder is gone", reason="not_a_repository") from error
        if ours:
            return ["-C", str(self.folder), f"--git-dir={self.git_dir}"]
        above = os.path.dirname(self.folder)
        if os.pathsep in above:
            raise ToolFailed("this folder has another owner, and git cannot be kept to it", reason="dubious_ownership")
        environment["GIT_CEILING_DIRECTORIES"] = above
        return ["-C", str(self.folder)]


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    seconds: float,
    stdin: bytes = b"",
    lifeline: bool = False,
    cancellation: Cancellation | None = None,
) -> Output:
    """Run a program in its own session and wait for itself alone, not for whoever inherited its output.

    Output goes to unnamed files: a child that keeps them open holds up nothing, and no pipe can fill. Whatever is
    left of the process group afterwards is killed, also on an exception.

    Raises:
        ToolFailed: reason `timeout`; `git_failed` when it cannot be started; `invalid_argument` for a NUL in one.
        Cancelled: the call was taken back; all of it has ended.
    """
    if any("\0" in argument for argument in command):
        raise ToolFailed("a name for git cannot hold a NUL character", reason="invalid_argument")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _input(stdin, lifeline) as source:
        prefix = ["/bin/sh", "-c", _LIFELINE, "exeora-git"] if lifeline else []
        process = _start([*prefix, *command], environment, source, out, err)
        ended = False
        try:
            ended = wait_for_end(process.pid, seconds, cancellation)
            if cancellation is not None and not ended:
                cancellation.raise_if_cancelled()
            if not ended:
                raise ToolFailed(f"git took longer than {seconds:g} s and was stopped", reason="timeout")
        finally:
            if ended:
                reap_group(process)
            else:
                end_group(process, KILL_GRACE_MS / 1000)
        return Output(_plain_code(process.returncode, lifeline=lifeline), _content(out), _content(err))


def _start(
    command: Sequence[str],
    environment: Mapping[str, str],
    source: int | IO[bytes],
    out: IO[bytes],
    err: IO[bytes],
) -> "subprocess.Popen[bytes]":
    words = [encode(word) for word in command]
    try:
        return subprocess.Popen(words, env=environment, stdin=source, stdout=out, stderr=err, start_new_session=True)
    except OSError as error:
        raise ToolFailed(f"git cannot be started: {error.strerror}", reason="git_failed") from error


@contextmanager
def _input(data: bytes, lifeline: bool) -> Iterator[int | IO[bytes]]:
    """Give what becomes standard input: nothing, some data, or a pipe that closes when this process is gone."""
    if lifeline:
        reader, writer = os.pipe()
        try:
            yield reader
        finally:
            os.close(reader)
            os.close(writer)
        return
    if not data:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as stream:
        stream.write(data)
        stream.seek(0)
        yield stream


def _plain_code(code: int, *, lifeline: bool) -> int:
    """Give the command's own code: a lifeline's shell reports a signal as 128 and its number (129 is git's usage)."""
    return 128 - code if lifeline and 128 + 1 < code < 128 + 65 else code


def _content(stream: IO[bytes]) -> bytes:
    stream.seek(0)
    return stream.read()
