"""A helper program on pipes: ripgrep, upstream servers. What it started is gone when its `with` block ends."""

import os
import select
import tempfile
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Self

from exeora_ws.errors import ToolTimeout
from exeora_ws.processes.ending import end_tree
from exeora_ws.processes.spawn import DEVNULL, PIPE, Child, may_have_left, spawn

STDERR_TAIL_BYTES = 16_384
_SYSTEM_ERROR = b"(os error "
"""How programs in Rust, ripgrep among them, end a complaint of the system's."""
_BLOCK_BYTES = 65_536
_POLL_SECONDS = 0.01


class PipedChild:
    """A running helper. Its error output is read all the time, so it never blocks on it; the last 16 KB are kept."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._tail = b""
        self._system_errors = 0
        self._exit = child.open_exit_descriptor()
        self._reader = threading.Thread(target=self._keep_stderr, name="stderr", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    @property
    def stdout(self) -> IO[bytes]:
        """Its output: raw, unbuffered."""
        if self._child.stdout is None:
            raise AssertionError("spawned without a pipe")
        return self._child.stdout

    @property
    def stdin(self) -> IO[bytes]:
        """Its input: raw, unbuffered. Only with `writable_stdin`."""
        if self._child.stdin is None:
            raise AssertionError("spawned without writable_stdin")
        return self._child.stdin

    def stderr_tail(self) -> bytes:
        """Give the last 16 KB of its error output: all of it once the process has ended, unless a child holds on."""
        if self.poll() is not None:
            self._reader.join(timeout=0.1)
        return self._tail

    def count_system_errors(self) -> int:
        """Count what it has said so far about errors of the system, also what is no longer in the tail."""
        return self._system_errors

    def poll(self) -> int | None:
        """Give the exit code, -N after signal N, None while it runs."""
        return self._child.poll()

    def wait(self, seconds: float) -> int:
        """Wait for the exit code.

        Raises:
            ToolTimeout: it still runs; it is not killed.
        """
        if self._exit is not None:
            poller = select.poll()
            poller.register(self._exit, select.POLLIN)
            poller.poll(max(0.0, seconds) * 1000)
        else:
            self._reader.join(seconds)
        code = self.poll()
        if code is None:
            raise ToolTimeout(f"the program has not ended within {seconds:g} s")
        return code

    def kill(self, grace: float = 0.0) -> None:
        """End the whole tree: at once, or with `grace` seconds after TERM. Does nothing to one that has ended."""
        if self.poll() is None or may_have_left():
            end_tree(self._child.tree, grace=grace)
            self.poll()

    def close(self, grace: float = 0.0) -> None:
        """End the tree and let go of the pipes."""
        self.kill(grace)
        self._reader.join(timeout=1.0)
        self._child.close_pipes()
        if self._exit is not None:
            os.close(self._exit)
            self._exit = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _keep_stderr(self) -> None:
        stream = self._child.stderr
        while stream is not None and (block := _read_some(stream)):
            self._system_errors += (self._tail[1 - len(_SYSTEM_ERROR) :] + block).count(_SYSTEM_ERROR)
            self._tail = (self._tail + block)[-STDERR_TAIL_BYTES:]


def _read_some(stream: IO[bytes]) -> bytes:
    try:
        return os.read(stream.fileno(), _BLOCK_BYTES)
    except (OSError, ValueError):
        return b""


def spawn_piped(
    argv: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    stdin: bytes | None = None,
    writable_stdin: bool = False,
    pass_fds: Sequence[int] = (),
) -> PipedChild:
    """Start a helper program with pipes on its output; use it in a `with` block.

    Args:
        argv: program and arguments, no shell.
        cwd: absolute path to start in.
        environ: the whole environment.
        stdin: all it shall read; None is an empty input.
        writable_stdin: give `.stdin` instead.
        pass_fds: descriptors the child keeps.

    Raises:
        ExeoraError: as `spawn`.
    """
    if stdin is None:
        source = PIPE if writable_stdin else DEVNULL
        return PipedChild(spawn(argv, cwd=cwd, environ=environ, stdin=source, pass_fds=pass_fds))
    # A file, not a pipe: no thread has to feed a child that does not read.
    with tempfile.TemporaryFile() as held:
        held.write(stdin)
        held.seek(0)
        return PipedChild(spawn(argv, cwd=cwd, environ=environ, stdin=held.fileno(), pass_fds=pass_fds))
