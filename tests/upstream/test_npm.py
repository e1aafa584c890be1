"""Public servers from npm: the same calls made directly and through us give the same bytes.

`EXEORA_TEST_NPM` names a folder that has them installed; otherwise they are installed once a session, if npm is there
and reaches its registry.
"""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.upstream_world import Project, World, call, until

PACKAGES = ("server-everything", "server-filesystem", "server-memory")
NPM = shutil.which("npm")
INSTALLED = os.environ.get("EXEORA_TEST_NPM")
OUTSIDE = dict(os.environ)
"""The environment before a test is sealed off: how npm reaches its registry is the machine's business."""


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if NPM is None or shutil.which("node") is None:
        pytest.skip("npm is not installed")
    folder = Path(INSTALLED) if INSTALLED else tmp_path_factory.mktemp("npm")
    if not INSTALLED:
        install(folder)
    return folder / "node_modules" / "@modelcontextprotocol"


def install(folder: Path) -> None:
    names = [f"@modelcontextprotocol/{package}" for package in PACKAGES]
    command = [NPM, "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix", str(folder), *names]
    environ = {**OUTSIDE, "npm_config_cache": str(folder / "cache")}
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environ, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not reach its registry in 120 s")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"npm cannot install the servers here: {error.stderr[-300:]}")


class Direct:
    """A client of fifteen lines, to compare with."""

    def __init__(self, argv: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.last = 0
        client = {"name": "direct", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict) -> dict:
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.last and "method" not in message:
                return message
        raise AssertionError("it ended")

    def call(self, name: str, arguments: dict) -> dict:
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def same_bytes(one: object, other: object) -> None:
    assert json.dumps(one, ensure_ascii=False) == json.dumps(other, ensure_ascii=False)


class Pair:
    """One server reached both ways, each in a folder of its own with the same content."""

    def __init__(self, world: World, package: Path, *arguments: str, **env: str) -> None:
        program = ["node", str(package / "dist" / "index.js"), *arguments]
        entry = {"command": program[0], "args": program[1:], "env": env}
        self.upstreams, self.project = world.serve({"s": entry})
        self.direct = Direct(program, self.project.root, {**os.environ, **env})

    def check_list(self) -> list[str]:
        listed = self.direct.ask("tools/list", {})["result"]["tools"]
        published = {tool.tool: tool for tool in self.upstreams.tools(self.project.id)}
        assert list(published) == [tool["name"] for tool in listed]
        for tool in listed:
            found = published[tool["name"]]
            schema = json.loads(json.dumps(found.raw["inputSchema"]))
            del schema["properties"][found.workspace_field]
            same_bytes({**found.raw, "name": tool["name"], "inputSchema": schema}, tool)
            assert found.read_only is (tool.get("annotations", {}).get("readOnlyHint") is True)
        return list(published)

    def check(self, tool: str, arguments: dict) -> dict:
        through = call(self.upstreams, self.project, f"mcp__s__{tool}", arguments)
        same_bytes(through, self.direct.call(tool, arguments))
        return through


@pytest.fixture
def pairs():
    made: list[Pair] = []
    yield made
    for pair in made:
        pair.direct.close()


def test_everything(world: World, modules: Path, pairs: list[Pair]):
    pair = Pair(world, modules / "server-everything")
    pairs.append(pair)
    assert "get-structured-content" in pair.check_list()
    pair.check("echo", {"message": "é\u2028 \U0001f600 \x00"})
    pair.check("get-sum", {"a": 0.1, "b": 2e30})
    image = pair.check("get-tiny-image", {})
    assert base64.b64decode(next(c for c in image["content"] if c["type"] == "image")["data"])
    for kind in ("error", "success", "debug"):
        pair.check("get-annotated-message", {"messageType": kind, "includeImage": True})
    assert "structuredContent" in pair.check("get-structured-content", {"location": "Chicago"})
    pair.check("get-resource-links", {"count": 4})
    assert pair.check("echo", {"wrong": 1})["isError"] is True
    steps: list[dict] = []
    arguments = {"duration": 0.4, "steps": 2}
    name = "mcp__s__trigger-long-running-operation"
    through = call(pair.upstreams, pair.project, name, arguments, on_progress=steps.append)
    same_bytes(through, pair.direct.call("trigger-long-running-operation", arguments))
    assert [step["progress"] for step in steps] == [1, 2]


def test_filesystem(world: World, modules: Path, pairs: list[Pair]):
    root = world.project().root
    (root / "café.txt").write_text("one\ntwo\n")
    pair = Pair(world, modules / "server-filesystem", str(root))
    pairs.append(pair)
    pair.check_list()
    pair.check("read_text_file", {"path": str(root / "café.txt")})
    pair.check("list_directory", {"path": str(root)})
    pair.check("write_file", {"path": str(root / "new.txt"), "content": "x\r\n"})
    pair.check(
        "edit_file", {"path": str(root / "café.txt"), "edits": [{"oldText": "two", "newText": "2"}], "dryRun": True}
    )
    assert pair.check("read_text_file", {"path": "/etc/passwd"})["isError"] is True


def test_memory(world: World, modules: Path, pairs: list[Pair], tmp_path: Path):
    pair = Pair(world, modules / "server-memory", MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl"))
    pairs.append(pair)
    pair.check_list()
    entity = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
    call(pair.upstreams, pair.project, "mcp__s__create_entities", {"entities": [entity]})
    assert "Ada" in json.dumps(pair.check("read_graph", {}))
    pair.check("search_nodes", {"query": "programs"})
    pair.check("create_entities", {"entities": [entity]})


def test_no_node_process_is_left(world: World, modules: Path):
    entry = {"command": "node", "args": [str(modules / "server-everything" / "dist" / "index.js")]}
    upstreams, project = world.serve({"s": entry})
    assert isinstance(project, Project)
    (instance,) = upstreams._pool.find_running()
    child = instance._connection._child
    upstreams.close()
    until(lambda: child.poll() is not None, 1)
