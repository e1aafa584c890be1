"""`exeora serve` as a process of its own: with pipes, or at a terminal; and calls to it by hand."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from support.commandline import COMMAND, CommandLine, child_environment

ACCEPTS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


def post(url: str, secret: str | None, method: str, params: dict[str, Any], **headers: str) -> httpx2.Response:
    everything = {**ACCEPTS, **({"Authorization": f"Bearer {secret}"} if secret else {}), **headers}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return httpx2.post(url, json=body, headers=everything, timeout=30)


def open_session(url: str, secret: str) -> dict[str, str]:
    """Shake hands; gives the headers of the session."""
    answer = post(url, secret, "initialize", HANDSHAKE)
    assert answer.status_code == 200, answer.text
    return {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}


def call(url: str, secret: str, tool: str, arguments: dict[str, Any], **session: str) -> dict[str, Any]:
    """Call a tool; gives its result."""
    answer = post(url, secret, "tools/call", {"name": tool, "arguments": arguments}, **session)
    lines = [line[6:] for line in answer.text.split("\n") if line.startswith("data: ")]
    return json.loads(lines[-1] if lines else answer.text)["result"]


class Served:
    """A running `exeora serve --json`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.ready = self.event()
        assert self.ready["event"] == "ready", self.ready
        self.account: str = self.ready["account"]

    def event(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return json.loads(line)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, list[dict[str, Any]], str]:
        """End it; gives its exit code, the events that were not read yet, and its error output."""
        asked = time.monotonic()
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=10)
        assert time.monotonic() - asked < 5
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


@contextmanager
def serving(exeora: CommandLine, *words: str, folder: Path | None = None) -> Iterator[Served]:
    process = exeora.start("serve", "--port", "0", "--json", *words, folder=folder)
    try:
        yield Served(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


class Terminal:
    """A program whose controlling terminal the test holds."""

    def __init__(self, argv: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.seen = ""
        self.ended = False
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            with suppress(OSError):
                os.chdir(folder)
                os.execvpe(argv[0], argv, environment)
            os._exit(127)

    def read_until(self, text: str, seconds: float = 20.0) -> str:
        """Read until `text` is there; gives everything since it was last there."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} is not in {self.seen!r}"
            if select.select([self._descriptor], [], [], 0.1)[0]:
                self.seen += os.read(self._descriptor, 65_536).decode()
        before, found, self.seen = self.seen.partition(text)
        return before + found

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def end(self) -> int:
        """End it by Ctrl-C; gives its exit code."""
        self.type("\x03")
        end = time.monotonic() + 8
        while time.monotonic() < end:
            with suppress(OSError):
                if select.select([self._descriptor], [], [], 0.05)[0]:
                    self.seen += os.read(self._descriptor, 65_536).decode()
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.ended = True
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("it has not ended")

    def kill(self) -> None:
        """See that nothing is left of it."""
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._descriptor)


def at_terminal(exeora: CommandLine, *words: str) -> Terminal:
    """Start `exeora` as a person does."""
    return Terminal([*COMMAND, *words], exeora.folder, child_environment(exeora.environment))
