"""A client that speaks lines of JSON over pipes, the same for every server that is compared.

It imports no protocol library, so that what is measured is the server.
"""

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

PROTOCOL = "2025-11-25"
_CHUNK_BYTES = 1 << 20
_HANDSHAKE = {
    "protocolVersion": PROTOCOL,
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class ServerFailed(Exception):
    """A server that is measured did not do its work, so that its time means nothing."""


class RawClient:
    """One server process, started and shaken hands with.

    Args:
        argv: how it is started.
        folder: its working directory.
        environment: all of its environment.
    """

    def __init__(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        started = time.perf_counter()
        self._process = subprocess.Popen(
            argv,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._next = 0
        self._rest = b""
        self.request("initialize", _HANDSHAKE)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = [tool["name"] for tool in self.request("tools/list", {})["tools"]]
        self.start_seconds = time.perf_counter() - started
        """From before the process was started until `tools/list` was answered."""

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool; gives its result.

        Raises:
            ServerFailed: it says that it failed.
        """
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise ServerFailed(f"{tool}: {json.dumps(result)[:500]}")
        return result

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask, and wait for the answer; what comes unasked is passed over."""
        self._next += 1
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        while True:
            message = json.loads(self._read_line())
            if message.get("id") != self._next or "method" in message:
                continue
            if "error" in message:
                raise ServerFailed(f"{method}: {message['error']}")
            result: dict[str, Any] = message["result"]
            return result

    def close(self) -> None:
        """End it as clients do: close its input, wait, kill."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            rest = rest[os.write(self._input, rest) :]

    def _read_line(self) -> bytes:
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            if not select.select([self._output], [], [], 60)[0]:
                raise ServerFailed("no answer within 60 s")
            piece = os.read(self._output, _CHUNK_BYTES)
            if not piece:
                raise ServerFailed(f"it has ended: {self._process.poll()}")
            pieces.append(piece)
        last, _, self._rest = pieces.pop().partition(b"\n")
        return b"".join((*pieces, last))
