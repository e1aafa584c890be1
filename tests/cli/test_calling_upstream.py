"""`exeora call` and `exeora tools` reach the tools of upstream servers, and leave none of the servers running."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from exeora_ws.settings import find_places

from support.commandline import CommandLine
from support.upstream_world import is_running, program, until


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def serve(sealed: dict[str, str], exeora: CommandLine, feature: Path):
    def write(**servers: Any) -> None:
        file = find_places().mcp_file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"mcpServers": servers}))

    return write


def test_a_tool_is_called_in_the_workspace_around_and_its_server_ends(exeora: CommandLine, feature: Path, serve):
    serve(plain=program("plain"))
    done = exeora("call", "mcp__plain__where", "--json", folder=feature)
    assert done.code == 0, done.err
    assert done.document["content"] == [{"type": "text", "text": str(feature)}]
    assert exeora("call", "mcp__plain__where", "--json").document["content"][0]["text"] == str(exeora.folder)
    named = exeora("call", "mcp__plain__where", '{"workspace": "feat-x"}', "--json")
    assert named.document["content"][0]["text"] == str(feature)
    pid = int(exeora("call", "mcp__plain__pid", "--json").document["content"][0]["text"])
    assert not is_running(pid)
    entries = exeora.inline("logs", "--json").document["entries"]
    assert {(e["tool"], e["workspace"], e["face"], e["outcome"]) for e in entries} >= {
        ("mcp__plain__where", "feat-x", "cli", "OK"),
        ("mcp__plain__pid", "main", "cli", "OK"),
    }


def test_results_pass_through_and_their_failure_is_the_exit_code(exeora: CommandLine, serve):
    serve(plain=program("plain"))
    rich = exeora("call", "mcp__plain__rich", "--json")
    assert rich.code == 0, rich.err
    assert rich.document["structuredContent"] == {"a": None, "big": 2**70, "f": 1.0, "e": [], "t": True}
    assert rich.document["content"][2] == {"type": "hologram", "beam": [1, 2.5, None]}
    plain = exeora("call", "mcp__plain__rich")
    assert json.loads(plain.out)["structuredContent"]["big"] == 2**70
    wrong = exeora("call", "mcp__plain__wrong", "--json")
    assert wrong.code == 1
    assert (wrong.document["isError"], wrong.document["structuredContent"]) == (True, {"n": "no integer"})
    echoed = exeora("call", "mcp__plain__echo", '{"a": {"b": [1, null, "é"]}}', "--json")
    assert json.loads(echoed.document["content"][0]["text"]) == {"a": {"b": [1, None, "é"]}}


def test_a_workspace_of_the_tools_own_is_not_ours(exeora: CommandLine, feature: Path, serve):
    serve(owns=program("owns"))
    done = exeora("call", "mcp__owns__own", '{"workspace": "theirs"}', "--json", folder=feature)
    assert json.loads(done.document["content"][0]["text"]) == {"workspace": "theirs"}


def test_what_is_not_there_or_not_allowed(exeora: CommandLine, repository: Path, serve):
    serve(plain=program("plain"))
    unknown = exeora("call", "mcp__plain__nothing", "--json")
    assert (unknown.code, unknown.error["code"]) == (2, "UNKNOWN_TOOL")
    other = exeora("call", "--toolset", "engine", "mcp__plain__where", "--json")
    assert (other.code, other.error["code"]) == (2, "UNKNOWN_TOOL")
    (repository / "exeora.toml").write_text('mode = "read_only"\n')
    refused = exeora("call", "mcp__plain__echo", "--json")
    assert (refused.code, refused.error["reason"]) == (4, "read_only")
    assert exeora("call", "mcp__plain__where", "--json").code == 0


def test_tools_lists_them_with_their_schemas(exeora: CommandLine, serve, tmp_path: Path):
    assert all(not t["name"].startswith("mcp__") for t in exeora("tools", "--json").document["tools"])
    serve(plain=program("plain"), fails=program("fails"))
    done = exeora("tools", "--json")
    found = {tool["name"]: tool for tool in done.document["tools"]}
    assert found["mcp__plain__rich"]["annotations"]["title"] == "Ünï"
    assert found["mcp__plain__rich"]["inputSchema"]["properties"]["n"] == {"type": "number", "default": 1.0}
    assert found["mcp__plain__rich"]["outputSchema"] is None
    assert "read_file" in found
    assert "fails" in done.err
    assert "mcp__plain__where" in exeora("tools").out
    schema = exeora("tools", "--schema", "mcp__plain__wrong", "--json").document
    assert schema["outputSchema"]["required"] == ["n"]
    assert exeora("tools", "--schema", "mcp__plain__nothing", "--json").error["code"] == "UNKNOWN_TOOL"
    outside = exeora("tools", "--json", folder=tmp_path)
    assert not any(tool["name"].startswith("mcp__") for tool in outside.document["tools"])


def test_an_interrupted_call_leaves_no_server(exeora: CommandLine, serve, log: Path):
    serve(plain=program("plain", str(log)))
    running = exeora.start("call", "mcp__plain__slow", "--json")
    until(lambda: log.exists() and "slow" in log.read_text(), 30)
    child = [int(line) for line in os.popen(f"pgrep -P {running.pid}").read().split()]
    assert child
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 130
    until(lambda: not any(is_running(pid) for pid in child))
