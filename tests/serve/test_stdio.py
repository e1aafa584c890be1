"""The server as a process: what ends it, what ends with it, and what its wire carries."""

import json
import signal
import subprocess
import time
from contextlib import contextmanager, suppress

import anyio
import pytest
from exeora_ws.app import open_app
from exeora_ws.limits import MESSAGE_BYTES
from exeora_ws.serve.running import list_servers

from support.mcp_server import command_line
from support.processes import all_gone

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wire:
    """A client that writes and reads lines, and can do it wrong."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> dict:
        line = self.process.stdout.readline()
        assert line, "the server has closed its output"
        return json.loads(line)

    def request(self, method: str, params: dict, identity: int | str = 1, *, era: str = "2026-07-28") -> None:
        meta = {"_meta": ENVELOPE} if era == "2026-07-28" else {}
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": {**params, **meta}})

    def call(self, tool: str, arguments: dict, identity: int | str = 1, *, era: str = "2026-07-28") -> None:
        self.request("tools/call", {"name": tool, "arguments": arguments}, identity, era=era)

    def open(self, era: str) -> None:
        """Shake hands, or ask for the description."""
        if era == "legacy":
            client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": ENVELOPE[CLIENT_INFO]}
            self.request("initialize", client, 0, era=era)
            assert self.receive()["result"]["protocolVersion"] == "2025-11-25"
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        else:
            self.request("server/discover", {}, 0)
            assert self.receive()["result"]["supportedVersions"] == ["2026-07-28"]

    def wait(self, seconds: float) -> int:
        return self.process.wait(seconds)


CLIENT_INFO = "io.modelcontextprotocol/clientInfo"


@pytest.fixture
def start(environment):
    """Start a server whose pipes the test holds."""

    @contextmanager
    def started(era="2026-07-28", scope="all"):
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command_line("stdio", scope), env=environment, stdin=pipe, stdout=pipe, stderr=pipe
        ) as process:
            wire = Wire(process)
            try:
                wire.open(era)
                yield wire
            finally:
                process.kill()
                with suppress(OSError):
                    process.stdin.close()

    return started


def wait_for(marker, text, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not marker.exists() or marker.read_text() != text:
        assert time.monotonic() < deadline, f"{marker.name} did not come to {text!r}"
        time.sleep(0.01)


def closed_sessions():
    record = open_app().places.data / "closed.txt"
    return record.read_text().split() if record.exists() else []


@pytest.mark.anyio
async def test_the_client_of_the_sdk_gets_progress_and_no_stray_print(connect_stdio, era):
    seen = []

    async def keep(number, _total, line):
        seen.append((number, line))

    async with connect_stdio(era) as client:
        assert (await client.call_tool("shout", {})).structured_content == {"done": True}
        result = await client.call_tool("count", {"lines": 10_000}, progress_callback=keep)
        assert result.structured_content == {"done": True}
        assert (await client.call_tool("shout", {})).structured_content == {"done": True}
    assert seen[-1][1] == "the last line"
    assert 2 <= len(seen) <= 8
    assert [n for n, _ in seen] == sorted({n for n, _ in seen})


@pytest.mark.anyio
async def test_a_cancelled_call_ends_and_the_session_goes_on(connect_stdio, era, tmp_path):
    marker = tmp_path / "marker"
    async with connect_stdio(era) as client:
        with anyio.move_on_after(10) as patience:
            async with anyio.create_task_group() as calls:
                calls.start_soon(client.call_tool, "sleep", {"seconds": 60, "marker": str(marker)})
                await anyio.to_thread.run_sync(wait_for, marker, "started")
                calls.cancel_scope.cancel()
        assert not patience.cancelled_caught
        await anyio.to_thread.run_sync(wait_for, marker, "cancelled", 2.0)
        assert not (await client.call_tool("list_projects", {})).is_error


def test_the_end_of_input_ends_calls_session_and_server(start, era, tmp_path):
    marker = tmp_path / "marker"
    with start(era) as wire:
        wire.call("stubborn", {"seconds": 60, "marker": str(marker)}, era=era)
        wait_for(marker, "started")
        wire.process.stdin.close()
        assert wire.wait(5) == 0
        assert marker.read_text() == "ended", "the server left before the call had ended"
        assert len(closed_sessions()) == 1


def test_what_was_asked_before_the_input_ended_is_still_answered(environment):
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": ENVELOPE[CLIENT_INFO]}
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_projects"}},
    ]
    asked = b"\n".join(json.dumps(line).encode() for line in lines)  # the last line has no end
    done = subprocess.run(
        command_line("stdio", "all"), env=environment, input=asked, capture_output=True, timeout=20, check=True
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert set(answers) == {0, 1, 2}
    assert answers[2]["result"]["structuredContent"] == {"projects": []}


def test_input_from_a_file_is_served_too(environment, tmp_path):
    asked = tmp_path / "asked"
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
    asked.write_text(json.dumps(request) + "\n")
    with asked.open("rb") as stream:
        done = subprocess.run(
            command_line("stdio", "all"), env=environment, stdin=stream, capture_output=True, timeout=20, check=True
        )
    assert json.loads(done.stdout)["result"]["tools"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_has_calls_answered_and_ends_the_server_while_the_input_is_open(start, number, tmp_path):
    marker = tmp_path / "marker"
    with start() as wire:
        wire.call("sleep", {"seconds": 60, "marker": str(marker)}, 7)
        wait_for(marker, "started")
        wire.process.send_signal(number)
        answer = wire.receive()
        assert answer["id"] == 7
        assert answer["result"]["structuredContent"]["error"]["code"] == "CANCELLED"
        assert wire.wait(5) == 0
        assert len(closed_sessions()) == 1


def test_a_call_that_never_ends_does_not_keep_the_server(start, tmp_path):
    marker = tmp_path / "marker"
    with start() as wire:
        wire.call("deaf", {"seconds": 60, "marker": str(marker)})
        wait_for(marker, "started")
        wire.process.stdin.close()
        assert wire.wait(8) == 1
        assert len(closed_sessions()) == 1
        assert "deaf goes on" in open_app().places.log.read_text()


def test_a_client_that_reads_nothing_does_not_keep_the_server(start):
    with start() as wire:
        for number in range(20):
            wire.call("fill", {"size": 100_000}, number)
        wire.process.send_signal(signal.SIGTERM)
        assert wire.wait(8) is not None


def test_a_client_that_closed_its_end_ends_the_server(start):
    with start() as wire:
        wire.process.stdout.close()
        wire.call("fill", {"size": 10})
        assert wire.wait(5) == 0
        assert len(closed_sessions()) == 1


NOT_MESSAGES = [
    (b"nonsense\n", None, -32700),
    (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"\xe9"}}\n', 5, -32700),
    (b"[]\n", None, -32600),
    (b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]\n', None, -32600),
    (b'{"id":"five"}\n', "five", -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', None, -32600),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n', None, -32600),
    (b'{"jsonrpc":"2.0","id":1' + b"1" * 5_000 + b',"method":"ping"}\n', None, -32700),
    (b"[" * 100_000 + b"\n", None, -32700),
    (b"x" * (MESSAGE_BYTES + 1) + b"\n", None, -32700),
]


def test_what_is_no_message_is_answered_and_the_session_goes_on(start, era):
    with start(era) as wire:
        for data, identity, code in NOT_MESSAGES:
            wire.write(data)
            answer = wire.receive()
            assert (answer["id"], answer["error"]["code"]) == (identity, code), data[:60]
        wire.write(b"\n  \n")
        wire.call("list_projects", {}, 9, era=era)
        assert wire.receive()["id"] == 9


@pytest.mark.parametrize("identity", [[1], {}, None, 1.5, True, "x"])
def test_a_cancellation_of_what_no_request_can_be_called_changes_nothing(start, era, identity):
    with start(era) as wire:
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}})
        wire.call("list_projects", {}, 9, era=era)
        assert wire.receive()["id"] == 9


@pytest.mark.parametrize("first", ["end of input", "signal"])
def test_a_signal_while_the_server_ends_leaves_nothing_running(start, project, tmp_path, first):
    """As clients do it: close the input, wait two seconds, send SIGTERM."""
    asked_to_end = tmp_path / "asked"
    line = f"trap 'echo -n yes >{asked_to_end}' TERM; echo ready; while :; do sleep 0.1; done"
    with start(scope=project.slug) as wire:
        wire.call("start_command", {"command": line}, 1)
        command = wire.receive()["result"]["structuredContent"]
        wire.call("get_command_output", {"processId": command["processId"], "waitMs": 10_000}, 2)
        assert wire.receive()["result"]["structuredContent"]["chunk"] == "ready\n"
        if first == "signal":
            wire.process.send_signal(signal.SIGTERM)
        else:
            wire.process.stdin.close()
        wait_for(asked_to_end, "yes")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            wire.process.send_signal(number)
        assert wire.wait(8) == 0
        assert all_gone([command["pid"]])


def test_a_long_message_within_the_limit_is_taken(start):
    with start() as wire:
        wire.call("list_projects", {"x": "y" * (MESSAGE_BYTES - 1000)}, 3)
        answer = wire.receive()
        assert answer["id"] == 3
        assert answer["result"]["structuredContent"]["error"]["reason"] == "unknown_field"


@pytest.mark.parametrize("arguments", [[], "x", 5, True])
def test_arguments_that_are_no_object_are_refused(start, era, arguments):
    with start(era) as wire:
        wire.request("tools/call", {"name": "list_projects", "arguments": arguments}, 4, era=era)
        assert wire.receive()["error"]["code"] == -32602
        wire.call("list_projects", {}, 5, era=era)
        assert wire.receive()["result"]["isError"] is False


def test_a_running_server_is_listed_and_a_killed_one_is_not(start):
    places = open_app().places
    with start() as wire:
        (server,) = list_servers(places)
        assert (server.pid, server.face, server.url) == (wire.process.pid, "stdio", None)
        wire.process.kill()
        wire.wait(5)
        assert list_servers(places) == []
        assert not list((places.runtime / "servers").iterdir())


def test_a_server_that_ends_takes_itself_off_the_list(start):
    places = open_app().places
    with start() as wire:
        wire.process.stdin.close()
        assert wire.wait(5) == 0
        assert not list((places.runtime / "servers").iterdir())
