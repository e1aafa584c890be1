"""`exeora mcp`: which project it serves, and that nothing but the protocol reaches stdout."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.commandline import COMMAND, CommandLine, child_environment

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def converse(exeora: CommandLine, *words: str, folder: Path, calls: list[tuple[str, dict[str, Any]]]):
    """Start the server, make the calls, close its stdin; gives its answers, stderr and exit code."""
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=child_environment(exeora.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers: dict[int, dict[str, Any]] = {}
    lines += [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        for number, (method, parameters) in enumerate(calls, 1)
    ]
    for line in lines:
        process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        while "id" in line and line["id"] not in answers:
            answer = process.stdout.readline()
            if not answer:
                break
            message = json.loads(answer)
            if "id" in message:
                answers[message["id"]] = message
    process.stdin.close()
    rest = process.stdout.read()
    assert process.stderr is not None
    return answers, rest, process.stderr.read(), process.wait(20)


def test_the_project_around_is_served_and_registered(exeora: CommandLine, repository: Path):
    calls = [
        ("tools/list", {}),
        ("tools/call", {"name": "create_workspace", "arguments": {"branch": "feat"}}),
        ("tools/call", {"name": "create_workspace", "arguments": {"branch": "x", "workspace": "no-such"}}),
    ]
    answers, rest, narration, code = converse(exeora, "mcp", folder=repository / "src", calls=calls)
    assert (rest, code) == ("", 0)
    assert narration == "exeora: registered this repository as project 'app'\n"
    tools = {tool["name"]: tool for tool in answers[1]["result"]["tools"]}
    assert all("project" not in tool["inputSchema"]["properties"] for tool in tools.values())
    assert "list_projects" not in tools
    assert answers[2]["result"]["structuredContent"]["created"] is True
    refused = answers[3]["result"]
    assert refused["isError"] is True
    assert refused["structuredContent"]["error"]["code"] == "UNKNOWN_WORKSPACE"
    assert [w["slug"] for w in exeora.inline("list", "--json").document["workspaces"]] == ["main", "feat"]


def test_an_account_takes_the_project_with_each_call(exeora: CommandLine, feature: Path, tmp_path: Path):
    calls = [("tools/list", {}), ("tools/call", {"name": "list_workspaces", "arguments": {"project": "app"}})]
    answers, rest, narration, code = converse(exeora, "mcp", "--account", folder=tmp_path, calls=calls)
    assert (rest, narration, code) == ("", "", 0)
    tools = {tool["name"]: tool for tool in answers[1]["result"]["tools"]}
    assert "project" in tools["create_workspace"]["inputSchema"]["properties"]
    listed = answers[2]["result"]["structuredContent"]["workspaces"]
    assert [w["slug"] for w in listed] == ["main", "feat-x"]


@pytest.mark.parametrize("words", [("mcp",), ("--project", "no-such", "mcp"), ("-w", "main", "mcp")], ids=" ".join)
def test_nothing_is_served_where_no_project_is_meant(exeora: CommandLine, tmp_path: Path, words: tuple[str, ...]):
    done = exeora(*words, "--json", folder=tmp_path)
    assert done.out == ""
    assert done.code in (1, 2)
    assert done.error["code"] in ("INVALID_ARGUMENTS", "UNKNOWN_PROJECT")


def test_02_a_branch_that_is_checked_out_is_said_the_same_to_a_person_and_to_an_agent(
    exeora: CommandLine, feature: Path
):
    """Public failure 2: the reason is one of its own, and names the workspace that has it."""
    arguments = {"branch": "feat/x", "slug": "other", "reuseExistingBranch": True}
    calls = [("tools/call", {"name": "create_workspace", "arguments": arguments})]
    answers, *_ = converse(exeora, "mcp", folder=exeora.folder, calls=calls)
    told = answers[1]["result"]["structuredContent"]["error"]
    typed = exeora.inline("create", "feat/x", "--slug", "other", "--reuse", "--json").error
    assert told == typed
    assert (told["reason"], told["data"]) == ("branch_checked_out", {"workspace": "feat-x"})
    assert "'feat-x'" in told["message"]
