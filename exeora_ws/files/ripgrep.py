"""ripgrep as a child: which binary, how it is confined and silenced, and how its output is read with patience."""

import os
import re
import select
import shutil
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol, Self

from exeora_ws.cancellation import Cancellation, Progress, no_progress
from exeora_ws.errors import ExeoraError, InvalidArguments, ToolFailed, ToolTimeout
from exeora_ws.files.checkout import ListContents, ListTrackedIgnored
from exeora_ws.files.ignores import FindExcludes
from exeora_ws.files.root import Root
from exeora_ws.limits import SEARCH_SECONDS

_CHUNK_BYTES = 65_536
_TICK_SECONDS = 1.0
_END_SECONDS = 5.0
_PASSED_ON = ("PATH", "TMPDIR")
_GOOD_CODES = (0, 1)  # found something, found nothing
_REFUSALS = (b"regex parse error", b"is not allowed in a regex", b"exceeds size limit", b"impossible to match")
_ADVICE = "\n\nConsider"  # other options of the program, which a caller does not have
# Of the ignore rules it is left only the .gitignore files in the folder it walks: see ignores.py.
_ALWAYS = (
    "--no-config",
    "--no-mmap",  # a file that shrinks meanwhile would kill it
    "--no-ignore-messages",  # so that each complaint is about a file it could not read
    "--color=never",
    "--hidden",
    "--no-ignore-dot",
    "--no-ignore-exclude",
    "--no-ignore-global",
    "--no-ignore-parent",
    "--no-require-git",
    "--glob=!.git",
    "--glob=!node_modules",
)


class Readable(Protocol):
    """An unbuffered binary stream."""

    def fileno(self) -> int:
        """Give its descriptor."""
        ...

    def read(self, size: int = -1, /) -> bytes | None:
        """Give what is there, at most `size` bytes; empty at the end."""
        ...


class PipedChild(Protocol):
    """A running child whose output is read here; leaving its context ends it and all it started."""

    @property
    def stdout(self) -> Readable:
        """Its output."""
        ...

    def stderr_tail(self) -> bytes:
        """Give the last of what it wrote to stderr."""
        ...

    def count_system_errors(self) -> int:
        """Count its complaints about errors of the system."""
        ...

    def poll(self) -> int | None:
        """Give the exit code, None while it runs."""
        ...

    def wait(self, seconds: float) -> int:
        """Wait for the exit code."""
        ...

    def kill(self) -> None:
        """End it now."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Spawn(Protocol):
    """Starts a child without a shell. Handed in: this room starts no process itself."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        environ: Mapping[str, str],
        stdin: bytes | None = None,
        pass_fds: Sequence[int] = (),
    ) -> PipedChild:
        """Start it."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a search may take, who may stop it, and who hears how it goes."""

    cancellation: Cancellation
    progress: Progress = no_progress
    seconds: float = SEARCH_SECONDS
    started: float = field(default_factory=time.monotonic)

    def take(self, share: float) -> "Patience":
        """Give a part of it: the same caller, the same beginning, less time."""
        return replace(self, seconds=self.seconds * share)

    @property
    def left(self) -> float:
        """How many seconds are left of it."""
        return max(0.0, self.seconds - (time.monotonic() - self.started))

    def check(self) -> None:
        """Stop here when the caller has gone or the time is up.

        Raises:
            Cancelled: the call was taken back.
            ToolTimeout: reason `search_timeout`.
        """
        self.cancellation.raise_if_cancelled()
        if time.monotonic() - self.started > self.seconds:
            raise ToolTimeout(
                f"the search took longer than {self.seconds:g} s and was stopped",
                reason="search_timeout",
                hint="narrow it with path or glob",
            )


@dataclass(frozen=True, slots=True)
class Ripgrep:
    """The binary and the means to start it."""

    program: str
    spawn: Spawn
    environ: Mapping[str, str]
    find_excludes: FindExcludes | None = None
    """Names the file of global ignore rules, where Git's configuration does."""
    list_contents: ListContents | None = None
    """Lists a checkout as Git does: then that is what is listed, and ripgrep only where Git cannot say."""
    list_tracked_ignored: ListTrackedIgnored | None = None
    """Names what ripgrep passes over in a checkout and should not: then that is searched, too."""

    def start(
        self,
        root: Root,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        folder: str | None = None,
        file: int | None = None,
    ) -> PipedChild:
        """Start it in the root, entered by descriptor where the system can.

        Args:
            root: the folder it runs in.
            arguments: what to do there, after the ones every run has.
            stdin: what it can read as `/dev/stdin`.
            folder: a folder above the root to run in instead, for the rules that stand there.
            file: a descriptor it can open as `/dev/fd/N`.

        Raises:
            ToolFailed: reason `ripgrep_missing`.
        """
        inside = folder is None and os.path.isdir("/proc/self/fd")
        passed = [root.descriptor] if inside else []
        try:
            return self.spawn(
                [self.program, *_ALWAYS, *arguments],
                cwd=f"/proc/self/fd/{root.descriptor}" if inside else folder or str(root.path),
                environ={name: self.environ[name] for name in _PASSED_ON if name in self.environ},
                stdin=stdin,
                pass_fds=passed if file is None else [*passed, file],
            )
        except ExeoraError as error:
            if os.access(self.program, os.X_OK):
                raise
            raise _missing() from error


def find_ripgrep(environ: Mapping[str, str]) -> str:
    """Find the binary: `EXEORA_RG`, else the one installed with this package, else the one on the PATH.

    Raises:
        ToolFailed: reason `ripgrep_missing`.
    """
    chosen = environ.get("EXEORA_RG")
    if chosen:
        found = shutil.which(os.path.expanduser(chosen), path=environ.get("PATH"))
    else:
        own = os.path.join(sysconfig.get_path("scripts"), "rg")
        found = own if os.access(own, os.X_OK) else shutil.which("rg", path=environ.get("PATH"))
    if found is None:
        raise _missing()
    return found


def _missing() -> ToolFailed:
    return ToolFailed(
        "ripgrep cannot be started",
        reason="ripgrep_missing",
        hint="install the `ripgrep` package beside exeora, or name a binary with EXEORA_RG",
    )


def read_chunks(child: PipedChild, patience: Patience, describe: Progress | None = None) -> Iterator[bytes]:
    """Give the child's output as it comes, until its end.

    Args:
        child: what is read; killed when the caller goes.
        patience: raises out of here when it is over.
        describe: called about every second, to say how it goes.
    """
    forget = patience.cancellation.on_cancel(child.kill)
    try:
        poller = select.poll()
        poller.register(child.stdout.fileno(), select.POLLIN)
        told = time.monotonic()
        while True:
            patience.check()
            if describe is not None and time.monotonic() - told >= _TICK_SECONDS:
                told = time.monotonic()
                describe("")
            if not poller.poll(min(_TICK_SECONDS, patience.seconds) * 1_000):
                continue
            chunk = child.stdout.read(_CHUNK_BYTES)
            if not chunk:
                break
            yield chunk
    finally:
        forget()
    patience.cancellation.raise_if_cancelled()


def finish(child: PipedChild) -> int:
    """Wait for the child that has closed its output; gives how many files and folders it could not read.

    Raises:
        InvalidArguments: `invalid_pattern`, with ripgrep's pointer at the spot.
        ToolFailed: `search_failed`: it came to its end in any other way, so what it gave may not be all.
    """
    code = child.wait(_END_SECONDS)
    complaints = child.stderr_tail()
    if code in _GOOD_CODES:
        return 0
    if any(mark in complaints for mark in _REFUSALS):
        text = complaints.decode("utf-8", "replace").strip().removeprefix("rg: ")
        raise InvalidArguments(
            f"pattern: {text.partition(_ADVICE)[0]}",
            reason="invalid_pattern",
            hint="patterns are Rust regular expressions: no look-around, no back-references",
        )
    unreadable = child.count_system_errors()
    if code > 0 and (unreadable or _only_about_rules(complaints)):
        return unreadable
    raise ToolFailed(
        "ripgrep came to no good end, so what it found may not be all",
        reason="search_failed",
        data={"exitCode": code, "stderr": _without_paths(complaints)},
    )


def _only_about_rules(complaints: bytes) -> bool:
    """Whether it only minds rules of a `.gitignore` that mean nothing, which Git passes over, too."""
    lines = complaints.splitlines()
    return bool(lines) and all(b"error parsing glob" in line for line in lines)


def _without_paths(complaints: bytes) -> str:
    text = complaints.decode("utf-8", "replace").strip()
    return re.sub(r"(?<![\w.])/[^\s:]*", "…", text)[-500:]
