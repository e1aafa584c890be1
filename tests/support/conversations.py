"""Recorded conversations: what a client says, step by step, to be said to a server and its answers kept.

A file has a line of JSON for each step: `send` a message, a `line`, `bytes` (base64); `receive` so many messages;
`reply` to the request that the server sent last; call `again` as the last answer asks; `cancel_last`; `wait_for` a
file to hold `text`; `signal`; `close` the input. The first line says what it is about and how the server is started.
"""

import base64
import json
import os
import re
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "fixtures" / "conversations"
_LONG = "x" * 200_000
_SECONDS = 20.0
_CHANGING = (
    (re.compile(r"internal error [0-9a-f]{12}"), "internal error ID"),
    (re.compile(r'"id":"[0-9a-f]{12}"'), '"id":"ID"'),
    (re.compile(r'(\\?"durationMs\\?":)\d+'), r"\g<1>0"),
    (re.compile(r'"requestState":"[^"]+"'), '"requestState":"STATE"'),
    (re.compile(r'(\\?"session\\?":\\?")stdio-[0-9a-f]+'), r"\g<1>SESSION"),
    (re.compile(r"(prj|wsp)_[a-z0-9]+"), r"\g<1>_ID"),
    (re.compile(r"exeora approvals allow [\w-]+"), "exeora approvals allow ID"),
)
"""What differs from one run of the same server to the next."""


@dataclass
class Conversation:
    """One of the recorded ones."""

    name: str
    head: dict[str, Any]
    steps: list[dict[str, Any]] = field(repr=False)

    @property
    def exchanges(self) -> int:
        return sum(step.get("receive", 0) for step in self.steps)


def load_conversations() -> list[Conversation]:
    found = []
    for path in sorted(FOLDER.glob("*.jsonl")):
        head, *steps = map(json.loads, path.read_text().splitlines())
        found.append(Conversation(path.stem, head, steps))
    return found


class Said:
    """What a server said: groups of messages, each in an order of its own (answers come as they are ready)."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.code: int | None = None

    def note(self, messages: list[dict[str, Any]], folder: Path) -> None:
        self.groups.append(sorted(_settle(message).replace(str(folder), "FOLDER") for message in messages))


def _settle(message: dict[str, Any]) -> str:
    text = json.dumps(message, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    return text


class Speaker:
    """Says a conversation to a server.

    Args:
        pid: the server.
        write, read: the pipes to it and from it.
        folder: stands for `$FOLDER`.
    """

    def __init__(self, pid: int, write: int, read: int, folder: Path) -> None:
        self._pid, self._write, self._read, self._folder = pid, write, read, folder
        self._rest = b""
        self._last: dict[str, Any] = {}
        self._sent: dict[str, Any] = {}
        self._open = True

    def say(self, steps: list[dict[str, Any]], wait: Callable[[], int]) -> Said:
        """Say it all; gives what came back, to the end of the server."""
        said = Said()
        for step in steps:
            if "receive" in step:
                messages = [self._receive() for _ in range(step["receive"])]
                self._last = next((m for m in reversed(messages) if "id" in m), self._last)
                said.note(messages, self._folder)
            else:
                self._do(step)
        if self._open:
            self._close()
        said.note(self._receive_rest(), self._folder)
        said.code = wait()
        return said

    def _do(self, step: dict[str, Any]) -> None:
        match step:
            case {"send": message}:
                self._send(message)
            case {"line": text}:
                self._put(text.encode() + b"\n")
            case {"bytes": text}:
                self._put(base64.b64decode(text) + b"\n")
            case {"reply": outcome}:
                identity = self._last["id"]
                named = str(identity) if step.get("text_id") else identity
                self._send({"jsonrpc": "2.0", "id": named, **outcome})
            case {"again": more}:
                state = self._last.get("result", {}).get("requestState", "none")
                params = {**self._sent["params"], "requestState": state, **more}
                self._send({**self._sent, "params": params}, keep=True)
            case {"cancel_last": True}:
                params = {"requestId": self._sent["id"]}
                self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            case {"wait_for": name, "text": text}:
                self._wait_for(self._folder / name, text)
            case {"signal": name}:
                os.kill(self._pid, signal.Signals[name])
            case {"close": True}:
                self._close()
            case _:
                raise AssertionError(step)

    def _send(self, message: dict[str, Any], *, keep: bool = False) -> None:
        if "method" in message and "id" in message and not keep:
            self._sent = message
        text = json.dumps(message, ensure_ascii=False).replace("$FOLDER", str(self._folder)).replace("$LONG", _LONG)
        self._put(text.encode() + b"\n")

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._write, rest) :]

    def _receive(self) -> dict[str, Any]:
        while b"\n" not in self._rest:
            data = self._read_some()
            assert data, "the server has ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _receive_rest(self) -> list[dict[str, Any]]:
        while data := self._read_some():
            self._rest += data
        return [json.loads(line) for line in self._rest.splitlines()]

    def _read_some(self) -> bytes:
        assert select.select([self._read], [], [], _SECONDS)[0], f"no answer to {json.dumps(self._sent)[:300]}"
        return os.read(self._read, 1_000_000)

    def _wait_for(self, path: Path, text: str) -> None:
        end = time.monotonic() + _SECONDS
        while not path.exists() or path.read_text() != text:
            assert time.monotonic() < end, f"{path.name} did not come to {text!r}"
            time.sleep(0.005)

    def _close(self) -> None:
        self._open = False
        os.close(self._write)
