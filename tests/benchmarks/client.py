"""A raw client of servers over stdio: lines of JSON and nothing in between, the same for every server measured."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.command import CommandFailed

_END_SECONDS = 10.0
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmarks", "version": "1"},
}


class Client:
    """A server started over stdio. `start` has it ready for calls, as the handshake leaves it."""

    def __init__(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            argv,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._last = 0

    def start(self) -> None:
        """Shake hands."""
        self.ask("initialize", _HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Make a request and wait for its answer; gives its result."""
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": dict(params or {})})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._last and "method" not in answer:
                if "error" in answer:
                    raise CommandFailed(f"{method}: {answer['error']}")
                return answer["result"]
        raise CommandFailed(f"{method}: the server has ended")

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; gives its result, which is no error."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise CommandFailed(f"{tool}: {result['content']}")
        return result

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """End the server as a client does, by closing its input; by force when it does not end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@contextmanager
def serving(argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[Client]:
    """Give a server that has shaken hands; ended afterwards."""
    client = Client(argv, folder, environment)
    try:
        client.start()
        yield client
    finally:
        client.close()


def read_resident_bytes(pid: int, *, children: bool = True) -> int:
    """Give how much memory a process and all it started hold now: each page once, shared ones in proportion."""
    return sum(_read_proportional_bytes(each) for each in [pid, *(list_children(pid) if children else ())])


def _read_proportional_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as stream:
            return sum(int(line.split()[1]) * 1_024 for line in stream if line.startswith("Pss:"))
    except OSError:  # it has ended
        return 0


def list_children(pid: int) -> list[int]:
    """Give all processes below one."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as stream:
                for child in map(int, stream.read().split()):
                    found += [child, *list_children(child)]
    except OSError:  # it has ended
        return found
    return found
