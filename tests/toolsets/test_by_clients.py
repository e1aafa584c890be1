"""Each toolset by the official clients of both languages, over stdio and HTTP: the same calls, the same answers."""

import json
import signal
import subprocess
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from conftest import sealed_environment
from support import node_clients
from support.commandline import COMMAND, child_environment
from support.repositories import RepositoryMaker

pytestmark = pytest.mark.anyio

PAGE = '<div id="menu"></div>\n' + "<p>text</p>\n" * 60


@dataclass(frozen=True)
class Step:
    """One call: what its text must hold, and what its structured content must hold; a reason where it must fail."""

    tool: str
    arguments: dict[str, Any]
    text: str = ""
    holds: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None
    save: dict[str, str] = field(default_factory=dict)


STEPS: dict[str, list[Step]] = {
    "agentexec": [
        Step("edit", {"path": "a.txt", "old_text": "", "new_text": "one\ntwo\n"}, "+++ b/a.txt"),
        Step("edit", {"path": "a.txt", "old_text": "two", "new_text": "zwei"}, "-two\n+zwei\n"),
        Step("edit", {"path": "a.txt", "old_text": "three", "new_text": "3"}, reason="no_match"),
        Step("read", {"path": "a.txt"}, holds={"text": "1\tone\n2\tzwei\n"}),
        Step("read", {"path": "../a.txt"}, reason="outside_root"),
        Step("list", {}, "a.txt 9"),
        Step("search", {"pattern": "zwei"}, "a.txt:2:zwei"),
        Step(
            "exec_command",
            {"cmd": "echo hi; exit 3"},
            "exit_code: 3\nseconds: ",
            {"session_id": "none", "text": "hi\n"},
        ),
        Step(
            "exec_command",
            {"cmd": "cat", "yield_time_ms": 250},
            "exit_code: running",
            {"exit_code": "running"},
            save={"session": "session_id"},
        ),
        Step(
            "write_stdin",
            {"session_id": "$session", "chars": "typed\u0004", "yield_time_ms": 9000},
            "session_id: none\ntext:\ntyped",
            {"exit_code": 0, "text": "typed"},
        ),
        Step("write_stdin", {"session_id": "$session"}, reason="unknown_session"),
    ],
    "engine": [
        Step("write_file", {"file_path": "workspace/index.html", "text": PAGE}, "Created index.html"),
        Step("read_file", {"path": "index.html"}, holds={"text": PAGE}),
        Step("read_file", {"path": "index.html", "start_line": 2, "end_line": 2}, "lines 2-2 of 61]\n2| <p>"),
        Step("read_file", {"path": "a.png"}, "Error", reason="not_read_as_text"),
        Step("write_file", {"path": "a.png", "content": "x"}, "Error", reason="binary_path"),
        Step("write_file", {"path": "index.html", "content": "x"}, "edit_file", reason="shrink_guard"),
        Step("edit_file", {"path": "index.html", "find": '<div id="menu">', "replace": "<div>"}, "Edited index.html"),
        Step("search_files", {"query": "<div>"}, "index.html:1: <div></div>"),
        Step("list_files", {"depth": 1}, "index.html"),
        Step("revert_file", {"path": "index.html"}, "Deleted index.html"),
        Step("run_shell", {"command": "echo out; echo err >&2; exit 2"}, "out\n\nSTDERR:\nerr\n\nExit code: 2"),
        Step("run_shell", {"command": "cd x && y", "background": True}, "sh -c", reason="not_plain"),
        Step("read_logs", {"source": "file", "target": "README.md", "lines": 1}, "## File log: README.md (last 1 of 3"),
    ],
    "sandbox": [
        Step("project_fs_write", {"path": "a.txt", "content": "x x\n"}, holds={"bytes": 4, "created": True}),
        Step("project_fs_write", {"path": "src/brand/a", "content": ""}, "src/brand", reason="path_rule"),
        Step(
            "project_fs_edit",
            {"path": "a.txt", "oldString": "x", "newString": "y"},
            "lines 1, 1",
            reason="ambiguous_match",
        ),
        Step(
            "project_fs_edit",
            {"path": "a.txt", "oldString": "x", "newString": "y", "replaceAll": True},
            holds={"path": "a.txt", "replacements": 2, "bytes": 4},
        ),
        Step("project_exec", {"command": "cat a.txt"}, holds={"exitCode": 0, "stdout": "y y\n", "truncated": False}),
        Step("project_exec", {"command": "sudo ls"}, "sudo", reason="denylisted"),
        Step("project_exec", {"command": "head -c 20000 /dev/zero"}, "bytes truncated]", {"truncated": True}),
    ],
}


def check(step: Step, *, text: str, structured: dict[str, Any], failed: bool) -> None:
    assert failed is (step.reason is not None), text
    assert step.text in text
    if step.reason is not None:
        assert structured["error"]["reason"] == step.reason
    else:
        assert step.holds.items() <= structured.items()


def fill_in(arguments: dict[str, Any], saved: dict[str, Any]) -> dict[str, Any]:
    return {k: saved[v[1:]] if isinstance(v, str) and v.startswith("$") else v for k, v in arguments.items()}


async def take_steps(client: Client, toolset: str) -> None:
    schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
    assert {step.tool for step in STEPS[toolset]} == set(schemas)
    saved: dict[str, Any] = {}
    for step in STEPS[toolset]:
        answer = await client.call_tool(step.tool, fill_in(step.arguments, saved))
        structured = answer.structured_content
        Draft202012Validator(schemas[step.tool]).validate(structured)
        check(step, text=answer.content[0].text, structured=structured, failed=answer.is_error)
        saved |= {name: structured[key] for name, key in step.save.items()}


@dataclass(frozen=True)
class World:
    """A repository `app` of its own home, and a server over HTTP for it with every toolset."""

    environment: dict[str, str]
    make: RepositoryMaker
    ready: dict[str, Any]

    def url(self, toolset: str, project: str) -> str:
        return f"{self.ready['url']}/p/{project}/{toolset}/mcp"

    def add_project(self, name: str):
        """Another repository, so that no steps meet the files of others."""
        folder = self.make(name)
        words = [*COMMAND, "project", "add", str(folder)]
        subprocess.run(words, env=child_environment(self.environment), check=True, capture_output=True)
        return folder


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\n\tname = Ada Test\n\temail = ada@example.invalid\n")
    environment = {**sealed_environment(home), "EXEORA_DATA_DIR": str(home / "data" / "exeora")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        make = RepositoryMaker(home / "repositories")
        top = make("app")
    words = ["serve", "--port", "0", "--json", *(word for name in STEPS for word in ("--toolset", name))]
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=top, env=child_environment(environment), stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield World(environment, make, json.loads(process.stdout.readline()))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        process.stdout.close()


@pytest.mark.parametrize("toolset", STEPS)
async def test_by_the_python_client_over_stdio(connect, toolset):
    async with connect("mcp", "--toolset", toolset) as client:
        await take_steps(client, toolset)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("toolset", STEPS)
async def test_by_the_python_client_over_http(world, toolset, mode):
    name = f"py-{toolset}-{mode}"
    world.add_project(name)
    headers = {"Authorization": f"Bearer {world.ready['token']['secret']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(world.url(toolset, name), http_client=http), cache=None, mode=mode) as client,
    ):
        await take_steps(client, toolset)


installed = pytest.mark.skipif(not node_clients.MODULES.exists(), reason=node_clients.HOW)
OLD, NEW = ("sdk", "legacy"), ("client", "2026-07-28")


def take_steps_in_typescript(toolset, client, era, **transport):
    steps = [{"tool": s.tool, "arguments": s.arguments, "save": s.save} for s in STEPS[toolset]]
    task = {"client": client, "era": era, "steps": steps, **transport}
    done = subprocess.run(
        [str(node_clients.find_node()), str(node_clients.FOLDER / "official.mjs")],
        input=json.dumps(task), capture_output=True, text=True, timeout=120, check=False, cwd=node_clients.FOLDER,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {tool["name"] for tool in found["tools"]} == {step.tool for step in STEPS[toolset]}
    for step, result in zip(STEPS[toolset], found["results"], strict=True):
        assert "thrown" not in result, result
        check(step, text=result["text"], structured=result["structured"], failed=result["isError"])


@installed
@pytest.mark.parametrize("toolset", STEPS)
def test_by_the_typescript_client_over_stdio(world, toolset):
    client, era = NEW
    name = f"ts-{toolset}"
    world.add_project(name)
    words = ["--project", name, "mcp", "--toolset", toolset]
    stdio = {"command": COMMAND[0], "args": [*COMMAND[1:], *words], "env": child_environment(world.environment)}
    take_steps_in_typescript(toolset, client, era, stdio=stdio)


@installed
@pytest.mark.parametrize("toolset", STEPS)
def test_by_the_typescript_client_over_http(world, toolset):
    client, era = OLD
    name = f"th-{toolset}"
    world.add_project(name)
    http = {"url": world.url(toolset, name), "token": world.ready["token"]["secret"]}
    take_steps_in_typescript(toolset, client, era, http=http)
