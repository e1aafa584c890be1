"""agentexec served by its own command, over HTTP with a token, and as a library: each docstring is the rule held."""

import asyncio
import json
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager

import httpx2
import pytest
import uvicorn
from exeora_ws.app import open_agentexec
from exeora_ws.errors import ExeoraError, InvalidArguments
from exeora_ws.serve import agentexec
from exeora_ws.serve.loopback import parse_address
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from conftest import sealed_environment
from support.commandline import COMMAND, CommandLine, child_environment
from support.processes import all_gone, eventually
from support.repositories import git

pytestmark = pytest.mark.anyio

READ, FILES = {"read", "list", "search"}, {"read", "list", "search", "edit"}
TERMINAL = FILES | {"exec_command", "write_stdin"}
TOKEN = "a token of some length"


@asynccontextmanager
async def connect_http(url, token=None, **options):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), cache=None, **options) as client,
    ):
        yield client


async def names(client):
    return {tool.name for tool in (await client.list_tools()).tools}


# the command, over stdio


@pytest.mark.parametrize(("level", "offered"), [("read", READ), ("files", FILES), ("terminal", TERMINAL)])
def test_the_level_decides_which_tools(app, top, level, offered):
    """The level decides which tools it offers."""
    assert set(open_agentexec(app, top, level)[0].catalog) == offered


async def test_read_is_the_default_level(connect, top):
    """`read` is the default level."""
    async with connect("agentexec", "--workspace", str(top)) as client:
        assert await names(client) == READ


async def test_a_plain_folder_is_a_workspace(connect, tmp_path):
    """The folder need be no repository."""
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.txt").write_text("x\n")
    async with connect("agentexec", "--workspace", str(folder), "--level", "terminal") as client:
        assert (await client.call_tool("list", {})).content[0].text == "a.txt 2"
        done = await client.call_tool("exec_command", {"cmd": "pwd"})
        assert done.structured_content["text"] == f"{folder}\n"


async def test_the_workspace_of_a_worktree_is_that_worktree(connect, top):
    """The folder that was named is where tools act, also where it is a worktree: never main."""
    git(top, "worktree", "add", "-q", "-b", "feat", str(top.parent / "feat"))
    (top.parent / "feat/only-here.txt").write_text("x\n")
    async with connect("agentexec", "--workspace", str(top.parent / "feat"), "--level", "files") as client:
        assert "only-here.txt" in (await client.call_tool("list", {})).content[0].text
        assert "only-here.txt" not in (await client.call_tool("list", {"workspace": "main"})).content[0].text
        (listed,) = [t for t in (await client.list_tools()).tools if t.name == "list"]
        assert "'feat'" in listed.input_schema["properties"]["workspace"]["description"]


def test_the_workspace_of_a_subfolder_is_that_subfolder(app, top):
    """A folder within a repository is the root, in main and in a worktree alike."""
    git(top, "worktree", "add", "-q", "-b", "feat", str(top.parent / "feat"))
    for folder in (top / "src", top.parent / "feat" / "src"):
        calls, project = open_agentexec(app, folder, "read")
        found = app.inventory.require_place(app.inventory.require_project(project), calls._slug)
        assert found.root == folder.resolve()


def test_what_cannot_be_served_is_refused(sealed, top, tmp_path):
    """A folder that is not there, and a level that is none, are refused with a sentence."""
    exeora = CommandLine(top, sealed)
    gone = exeora.inline("agentexec", "--workspace", str(tmp_path / "none"), "--json")
    assert (gone.code, gone.error["reason"]) == (2, "missing_folder")
    level = exeora.inline("agentexec", "--workspace", str(top), "--level", "all", "--json")
    assert (level.code, level.error["reason"]) == (2, "unknown_level")
    assert exeora.inline("agentexec").code == 2


# the command, over HTTP


@contextmanager
def served(environment, folder, *words, **variables):
    command = [*COMMAND, "agentexec", "--workspace", str(folder), *words, "--http", "127.0.0.1:0"]
    process = subprocess.Popen(command, env=child_environment(environment) | variables, stdout=subprocess.PIPE)
    try:
        yield process, process.stdout.readline().decode().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        process.stdout.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """One server for the tests that leave it as it is; its folder is called `shared`."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "shared"
    folder.mkdir()
    environment = {**sealed_environment(home), "EXEORA_DATA_DIR": str(home / "data" / "exeora")}
    with served(environment, folder, "--level", "terminal", AGENTEXEC_TOKEN=TOKEN) as (_process, url):
        yield url


async def test_over_http_at_mcp(url):
    """Over HTTP MCP is at /mcp, for clients that send the token; both eras of the protocol."""
    assert url.endswith("/mcp")
    for mode in ("legacy", "auto"):
        async with connect_http(url, TOKEN, mode=mode) as client:
            assert await names(client) == TERMINAL
            done = await client.call_tool("exec_command", {"cmd": "basename $PWD; echo $AGENTEXEC_TOKEN"})
            assert done.structured_content["text"] == "shared\n\n"


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({}, "", 401),
        ({"Authorization": "Bearer wrong"}, "", 401),
        ({"Authorization": f"Basic {TOKEN}"}, "", 401),
        ({"Authorization": f"Bearer {TOKEN}"}, "/other", 404),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, "", 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, "", 403),
    ],
)
async def test_who_has_no_token_does_not_come_in(url, headers, path, status):
    """No token, a wrong one, a foreign Host or Origin, another path: refused."""
    async with httpx2.AsyncClient() as http:
        answer = await http.post(url + path, headers=headers, json={})
        assert answer.status_code == status
        assert TOKEN not in answer.text


async def test_the_end_of_a_session_is_the_end_of_its_commands(url):
    """Closing the connection stops every command still running; another client's goes on."""
    async with connect_http(url, TOKEN, mode="legacy") as other:
        async with connect_http(url, TOKEN, mode="legacy") as client:
            pids = [await start_sleeping(each) for each in (client, other)]
        assert eventually(lambda: all_gone(pids[:1]))
        assert not all_gone(pids[1:])


async def start_sleeping(client):
    done = await client.call_tool("exec_command", {"cmd": "echo $$; exec sleep 99", "yield_time_ms": 400})
    assert done.structured_content["exit_code"] == "running"
    return int(done.structured_content["text"])


async def test_sessions_are_apart_over_http(url):
    """Agents that share one server do not touch each other's commands."""
    async with connect_http(url, TOKEN, mode="legacy") as one, connect_http(url, TOKEN, mode="legacy") as two:
        done = await one.call_tool("exec_command", {"cmd": "cat", "yield_time_ms": 250})
        typed = {"session_id": done.structured_content["session_id"], "chars": "x\n"}
        assert (await two.call_tool("write_stdin", typed)).is_error
        assert (await one.call_tool("write_stdin", typed)).structured_content["text"] == "x\n"


async def test_the_end_of_the_server_is_the_end_of_all(sealed, top):
    """A server that is told to end leaves nothing running."""
    with served(sealed, top, "--level", "terminal", AGENTEXEC_TOKEN=TOKEN) as (process, url):
        async with connect_http(url, TOKEN, mode="legacy") as client:
            pid = await start_sleeping(client)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 10) == 0
    assert all_gone([pid])


@pytest.mark.parametrize("address", ["0.0.0.0:8123", "192.0.2.1:80", "example.com:80", "[::]:80"])
def test_any_other_address_is_refused(sealed, top, address):
    """It has no TLS of its own, so it refuses any address but loopback."""
    done = CommandLine(top, sealed).inline("agentexec", "--workspace", str(top), "--http", address, "--json")
    assert (done.code, done.error["reason"]) == (2, "host_not_loopback")


@pytest.mark.parametrize(("text", "found"), [("127.0.0.1:8123", ("127.0.0.1", 8123)), ("[::1]:80", ("::1", 80))])
def test_addresses(text, found):
    """A loopback address and a port."""
    assert parse_address(text) == found


@pytest.mark.parametrize("text", ["127.0.0.1", "8123", ":8123", "127.0.0.1:x", "127.0.0.1:70000", ""])
def test_addresses_that_are_none(text):
    """Anything else is refused."""
    with pytest.raises(InvalidArguments):
        parse_address(text)


def test_a_token_must_be_set(sealed, top, monkeypatch):
    """Without AGENTEXEC_TOKEN it does not serve."""
    for value in (None, ""):
        if value is not None:
            monkeypatch.setenv("AGENTEXEC_TOKEN", value)
        done = CommandLine(top, sealed).inline("agentexec", "--workspace", str(top), "--http", "127.0.0.1:0", "--json")
        assert (done.code, done.error["reason"]) == (2, "missing_token")


# the library


@asynccontextmanager
async def running(application):
    """Run an ASGI application on a free port."""
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="critical", lifespan="off"))
    task = asyncio.create_task(server.serve())
    await asyncio.to_thread(eventually, lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


async def test_mounted_under_any_path(top):
    """As a library: an ASGI application that answers under any path, and whose `aclose()` ends what runs."""
    (top / "a.txt").write_text("x\n")
    mounted = agentexec(workspace=top, level="terminal")
    async with running(mounted) as base:
        async with connect_http(f"{base}/some/where", mode="legacy") as client:
            assert await names(client) == TERMINAL
            assert (await client.call_tool("read", {"path": "a.txt"})).content[0].text == "1\tx\n"
            pid = await start_sleeping(client)
            await mounted.aclose()
        assert all_gone([pid])
        async with httpx2.AsyncClient() as http:
            assert (await http.post(base, json={})).status_code == 503


async def test_mounted_in_a_starlette_application(top):
    """It can be mounted in another application."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    mounted = agentexec(workspace=str(top))
    async with running(Starlette(routes=[Mount("/exec", app=mounted)])) as base:
        async with connect_http(f"{base}/exec/mcp") as client:
            assert await names(client) == READ
        await mounted.aclose()


async def test_closing_what_never_served(top):
    """`aclose()` may be called before anything was asked."""
    await agentexec(workspace=top, level="files").aclose()


def test_the_library_refuses_what_cannot_be(top, tmp_path):
    """A folder that is not there and a level that is none raise."""
    for arguments in ({"workspace": tmp_path / "none"}, {"workspace": top, "level": "all"}):
        with pytest.raises(ExeoraError):
            agentexec(**arguments)


def test_importing_the_package_loads_no_mcp_library(sealed):
    """The library form costs nothing until it is used."""
    code = "import sys, exeora_ws.serve; print('mcp' in sys.modules, callable(exeora_ws.serve.agentexec))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment(sealed), capture_output=True, text=True, check=True
    )
    assert done.stdout == "False True\n"


# toolsets at endpoints of the HTTP server


@pytest.fixture
def site(sealed, top):
    """`exeora serve` with two toolsets; gives what it says when it is ready."""
    words = ("serve", "--port", "0", "--toolset", "engine", "--toolset", "sandbox", "--json")
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=top, env=child_environment(sealed), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        process.stdout.close()


async def test_toolsets_have_endpoints_of_their_own(site, top):
    """`exeora serve --toolset NAME` serves it at /p/PROJECT/NAME/mcp, beside the default one."""
    secret = site["token"]["secret"]
    urls = {each["toolset"]: each["url"] for each in site["toolsets"]}
    assert urls["engine"].endswith("/p/app/engine/mcp")
    async with connect_http(urls["engine"], secret) as client:
        assert "run_shell" in await names(client)
        (top / "a.txt").write_text("raw\n")
        assert (await client.call_tool("read_file", {"path": "a.txt"})).content[0].text == "raw\n"
    async with connect_http(urls["sandbox"], secret, mode="legacy") as client:
        assert await names(client) == {"project_fs_edit", "project_fs_write", "project_exec"}
        assert (await client.call_tool("project_exec", {"command": "pwd"})).structured_content["stdout"] == f"{top}\n"
    async with connect_http(site["projects"][0]["url"], secret) as client:
        assert "run_command" in await names(client)
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}) as http:
        for path in ("/p/app/agentexec/mcp", "/p/none/engine/mcp"):
            assert (await http.post(site["url"] + path, json={})).status_code == 404


async def test_a_session_belongs_to_its_endpoint(site):
    """A session that was opened at one toolset's endpoint is not known at another's."""
    secret = site["token"]["secret"]
    urls = {each["toolset"]: each["url"] for each in site["toolsets"]}
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    headers = {"Authorization": f"Bearer {secret}", "Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers) as http:
        opened = await http.post(
            urls["engine"], json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        )
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await http.post(urls["sandbox"], json=listing, headers=session)).status_code == 404
        assert (await http.post(urls["engine"], json=listing, headers=session)).status_code == 200
