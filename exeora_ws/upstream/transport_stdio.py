"""Messages over a child's pipes: one thread moves bytes both ways and never blocks on either.

Our own rather than the MCP library's, which a single byte that is not UTF-8 hangs for ever, which tells neither exit
code nor error output, and which lets a polite server's children live (docs/decisions/0009-upstreams.md).
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Protocol

from exeora_ws.errors import ToolTimeout
from exeora_ws.upstream.messages import Message, format_message, parse_message
from exeora_ws.upstream.peer import ConnectionLost, Peer

MAX_LINE_BYTES = 64_000_000
STUCK_SECONDS = 60.0
"""How long a server may leave what we sent unread before it counts as dead."""

POLITE_SECONDS = 1.0
"""How long a server may take to end by itself once its input is closed."""

_BLOCK = 262_144
_LOOK_MS = 250
_JOIN_SECONDS = 10.0
_EXIT_SECONDS = 0.5
"""How long after the end of its output a server's exit code is waited for."""


class Piped(Protocol):
    """A child with pipes, as the processes room spawns it."""

    @property
    def stdin(self) -> IO[bytes]:
        """Its input: raw, unbuffered."""
        ...

    @property
    def stdout(self) -> IO[bytes]:
        """Its output: raw, unbuffered."""
        ...

    def stderr_tail(self) -> bytes:
        """Give the end of its error output."""
        ...

    def poll(self) -> int | None:
        """Give the exit code, None while it runs."""
        ...

    def wait(self, seconds: float) -> int:
        """Wait for the exit code. Raises `ToolTimeout`."""
        ...

    def kill(self, grace: float = 0.0) -> None:
        """End the whole tree, with `grace` seconds after TERM."""
        ...

    def close(self, grace: float = 0.0) -> None:
        """End the tree and let go of the pipes."""
        ...


class Spawn(Protocol):
    """Starts a child with a writable input, in its own session, its whole tree under one handle."""

    def __call__(self, argv: Sequence[str], *, cwd: str, environ: Mapping[str, str]) -> Piped:
        """Start it. Raises an `ExeoraError` when it cannot be."""
        ...


class StdioConnection:
    """A running child and the thread that talks to it."""

    def __init__(self, child: Piped, peer: Peer) -> None:
        self._child = child
        self._peer = peer
        self._lock = threading.Lock()
        self._outgoing: deque[memoryview] = deque()
        self._closing = False
        self._closed = threading.Event()
        self._progress_at = time.monotonic()
        self._input_closed_at: float | None = None
        self._exited = False
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (self._wake_read, self._wake_write, child.stdin.fileno()):
            os.set_blocking(descriptor, False)
        self._thread = threading.Thread(target=self._run, name="upstream", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> None:
        """Queue a message. Raises `ConnectionLost`."""
        line = format_message(message) + b"\n"
        with self._lock:
            if self._closing:
                raise ConnectionLost("it was stopped", unseen=True)
            if not self._outgoing:
                self._progress_at = time.monotonic()
            self._outgoing.append(memoryview(line))
            self._wake()

    def begin(self, version: str) -> None:
        """Nothing changes with the version."""

    def abandon(self, request_id: int) -> None:
        """Nothing is held for a single request."""

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._child.poll() is None

    def exit_code(self) -> int | None:
        """Give the exit code once the child has ended, -N after signal N."""
        return self._child.poll()

    def stderr_tail(self) -> bytes:
        """Give the end of its error output."""
        return self._child.stderr_tail()

    def close(self) -> None:
        """Close its input, give it a moment to end, then end what is left of its whole tree.

        May be called twice: whoever comes second waits until it has ended all the same.
        """
        with self._lock:
            second, self._closing = self._closing, True
            if not second:
                self._wake()
        if second:
            self._closed.wait(_JOIN_SECONDS + 3 * POLITE_SECONDS)
            return
        try:
            self._end()
        finally:
            self._closed.set()

    def _end(self) -> None:
        self._thread.join(_JOIN_SECONDS)
        # Nobody else touches the descriptor now, so it may be closed.
        with suppress(OSError):
            self._child.stdin.close()
        with suppress(ToolTimeout):
            self._child.wait(POLITE_SECONDS)
        self._child.close(grace=POLITE_SECONDS)
        self._peer.lose(ConnectionLost("it was stopped"))
        if not self._thread.is_alive():
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._wake_write, b"x")

    def _run(self) -> None:
        why = "the connection broke"
        try:
            why = self._move_until_the_end()
        finally:
            self._peer.lose(ConnectionLost(why))
            if not self._closing:
                # What it started goes with it, at once.
                self._child.kill(POLITE_SECONDS)

    def _move_until_the_end(self) -> str:
        lines = _Lines()
        output = self._child.stdout.fileno()
        while True:
            ready = self._wait_ready(output)
            if self._closing:
                return "it was stopped"
            if output in ready and not self._read(output, lines):
                return "it ended" if self._ends() else "it closed its output"
            if lines.overlong:
                return f"it wrote a line of more than {MAX_LINE_BYTES} bytes"
            self._write()
            if (why := self._find_fault()) and output not in ready:
                return why

    def _wait_ready(self, output: int) -> set[int]:
        poller = select.poll()
        poller.register(output, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        if self._outgoing:
            poller.register(self._child.stdin.fileno(), select.POLLOUT)
        ready = {descriptor for descriptor, _ in poller.poll(self._find_patience())}
        if self._wake_read in ready:
            with suppress(BlockingIOError):
                os.read(self._wake_read, _BLOCK)
        return ready

    def _find_patience(self) -> int | None:
        """How many milliseconds to sleep at most."""
        if self._exited:
            return 0
        # While somebody waits, look up now and then: a grandchild can hold the pipe of a server that has died.
        return _LOOK_MS if self._outgoing or self._peer.waiting else None

    def _read(self, output: int, lines: "_Lines") -> bool:
        try:
            block = os.read(output, _BLOCK)
        except OSError:
            return False
        for line in lines.feed(block):
            message = parse_message(line)
            if message is not None:
                self._peer.receive(message)
        return bool(block)

    def _write(self) -> None:
        """Write what goes in without waiting."""
        with self._lock:
            try:
                while self._outgoing and self._input_closed_at is None:
                    piece = self._outgoing.popleft()
                    written = os.write(self._child.stdin.fileno(), piece[:_BLOCK])
                    self._progress_at = time.monotonic()
                    if written < len(piece):
                        self._outgoing.appendleft(piece[written:])
            except BlockingIOError:
                self._outgoing.appendleft(piece)
            except OSError:
                # It may have answered before it closed its input: what it wrote is still to be read.
                self._input_closed_at = time.monotonic()
            if self._input_closed_at is not None:
                self._outgoing.clear()

    def _ends(self) -> bool:
        with suppress(ToolTimeout):
            self._child.wait(_EXIT_SECONDS)
            return True
        return False

    def _find_fault(self) -> str | None:
        """Why nothing more is to be expected, once its output is dry."""
        now = time.monotonic()
        if self._exited:
            return "it ended"
        if self._input_closed_at is not None and now - self._input_closed_at > _EXIT_SECONDS:
            return "it closed its input"
        if self._outgoing and now - self._progress_at > STUCK_SECONDS:
            return f"it left its input unread for {STUCK_SECONDS:g} s"
        # What it wrote before it ended is there by now, and is read in the next round.
        self._exited = self._child.poll() is not None
        return None


class _Lines:
    """Cuts a stream into lines at every newline byte, and at no other character."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def overlong(self) -> bool:
        return self._size > MAX_LINE_BYTES

    def feed(self, block: bytes) -> list[bytes]:
        *whole, rest = block.split(b"\n")
        if whole:
            whole[0] = b"".join((*self._parts, whole[0]))
            self._parts.clear()
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        return whole
