"""Tools of upstream servers through the faces: `exeora mcp` and `exeora serve`, the SDK's client, both eras."""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

import anyio
import httpx2
import pytest
from exeora_ws.app import open_app
from exeora_ws.serve.tokens import TokenBook
from exeora_ws.settings import find_places
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from support.commandline import COMMAND, CommandLine, child_environment
from support.served import HANDSHAKE, call, open_session, post, serving
from support.upstream_world import is_running, program, until

FACES = ("stdio", "http")


@pytest.fixture(params=FACES)
def face(request):
    return request.param


@pytest.fixture
def repository(make_repository):
    return make_repository("app")


@pytest.fixture
def exeora(repository, sealed):
    line = CommandLine(repository, sealed)
    open_app().inventory.register_project(repository, exact=False)
    return line


@pytest.fixture
def write(sealed):
    def written(servers, **more):
        file = find_places().mcp_file
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({"mcpServers": servers, **more}))
        fresh.replace(file)

    return written


def mode_of(era):
    return "auto" if era == "2026-07-28" else era


@pytest.fixture
def connect(exeora):
    """Connect the SDK's client to the project, over either face."""

    @asynccontextmanager
    async def connected(face, era, **options):
        environment = child_environment(exeora.environment)
        if face == "stdio":
            command, *arguments = COMMAND
            parameters = StdioServerParameters(
                command=command, args=[*arguments, "mcp"], env=environment, cwd=str(exeora.folder)
            )
            async with Client(parameters, mode=mode_of(era), cache=None, **options) as client:
                yield client
            return
        with serving(exeora) as served:
            headers = {"Authorization": f"Bearer {served.ready['token']['secret']}"}
            async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                target = streamable_http_client(served.ready["endpoint"], http_client=http)
                async with Client(target, mode=mode_of(era), cache=None, **options) as client:
                    yield client
            code, _, _ = await anyio.to_thread.run_sync(served.end)
            assert code == 0

    return connected


async def list_all(client):
    """Every page; gives the tools by name, and how many pages there were."""
    tools, cursor, pages = {}, None, 0
    while True:
        page = await client.list_tools(cursor=cursor)
        tools |= {tool.name: tool for tool in page.tools}
        pages += 1
        cursor = page.next_cursor
        if cursor is None:
            return tools, pages


async def list_until(client, holds, seconds=20):
    with anyio.fail_after(seconds):
        while not holds((listed := await list_all(client))[0]):  # noqa: ASYNC110 - it happens in another process
            await anyio.sleep(0.05)
    return listed


@pytest.mark.anyio
async def test_our_own_tools_are_there_at_once_and_others_are_told_of_as_they_come(connect, write, face, era, tmp_path):
    go = tmp_path / "go"
    write({"hangs": program("hangs"), "late": program("late", str(go)), "plain": program("plain")})
    heard = anyio.Event()

    async def hear(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async with connect(face, era, message_handler=hear) as client:
        started = time.monotonic()
        tools, _ = await list_all(client)
        assert "read_file" in tools
        assert not (await client.call_tool("list_git_workspaces", {})).is_error
        assert time.monotonic() - started < 5
        assert "mcp__hangs__x" not in tools
        await list_until(client, lambda tools: "mcp__plain__echo" in tools)
        if era == "legacy":
            await anyio.sleep(0.5)  # what the first servers brought has been told by then
            heard = anyio.Event()
            go.touch()
            with anyio.fail_after(20):
                await heard.wait()
        else:
            async with client.listen(tools_list_changed=True) as changes:
                go.touch()
                with anyio.fail_after(20):
                    async for change in changes:
                        assert type(change).__name__ == "ToolsListChanged"
                        break
        await list_until(client, lambda tools: "mcp__late__arrived" in tools)
        # Whoever was configured later comes too, and whoever is not any more goes.
        write({"hangs": program("hangs"), "similar": program("similar", "one")})
        tools, _ = await list_until(client, lambda tools: "mcp__similar__one" in tools)
        assert not any(name.startswith(("mcp__plain", "mcp__late")) for name in tools)


@pytest.mark.anyio
async def test_many_large_tools_come_in_pages_up_to_the_limit(connect, write, face, era):
    write({"many": program("many", "7000")})
    async with connect(face, era) as client:
        tools, pages = await list_until(client, lambda tools: any(name.startswith("mcp__many") for name in tools))
        published = [tool for name, tool in tools.items() if name.startswith("mcp__many__")]
        assert 150 < len(published) <= 256
        assert sum(len(tool.model_dump_json(by_alias=True)) for tool in published) <= 1_700_000
        assert pages > 2
        result = await client.call_tool(published[-1].name, {})
        assert result.content[0].text == published[-1].name.removeprefix("mcp__many__")


@pytest.mark.anyio
async def test_a_call_waits_for_its_own_server_and_no_other(connect, write, face, era, repository):
    write({"hangs": program("hangs"), "plain": program("plain")})
    async with connect(face, era) as client:
        started = time.monotonic()
        result = await client.call_tool("mcp__plain__where", {})  # nobody has listed it yet
        assert result.content[0].text == str(repository)
        assert time.monotonic() - started < 10
        made = await client.call_tool("create_workspace", {"branch": "feat"})
        path = made.structured_content["workspace"]["path"]
        there = await client.call_tool("mcp__plain__where", {"workspace": "feat"})
        assert there.content[0].text == path
        wrong = await client.call_tool("mcp__plain__where", {"workspace": "nope"})
        assert wrong.structured_content["error"]["code"] == "UNKNOWN_WORKSPACE"
        # What some line readers take for the end of a line is none on the wire.
        odd = {"path": "odd.txt", "workspace": "feat"}
        await client.call_tool("write_file", {**odd, "content": "a\u2028b\x85c\x0bd\n"})
        read = await client.call_tool("read_file", odd)
        assert read.structured_content["content"] == "a\u2028b\x85c\x0bd\n"


@pytest.mark.anyio
async def test_progress_is_passed_on_whole_and_in_order(connect, write, face, era):
    write({"plain": program("plain")})
    seen = []

    async def keep(number, total, line):
        seen.append((number, total, line))

    async with connect(face, era) as client:
        result = await client.call_tool("mcp__plain__progress", {}, progress_callback=keep)
        assert result.content[0].text == "done"
        assert seen == [(0, 3, "s0"), (1, 3, "s1"), (2, 3, "s2")]


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_is_taken_back_at_its_own_server(connect, write, face, era, repository):
    write({"plain": program("plain")})
    running, seen = anyio.Event(), repository / "withdrawn"

    async def note(*_):
        running.set()

    async with connect(face, era) as client:
        async with anyio.create_task_group() as calls:

            async def slow():
                await client.call_tool("mcp__plain__slow", {}, progress_callback=note)

            calls.start_soon(slow)
            with anyio.fail_after(20):
                await running.wait()
            calls.cancel_scope.cancel()
        with anyio.fail_after(5):
            while not seen.exists():  # noqa: ASYNC110 - in another process
                await anyio.sleep(0.02)
        assert (await client.call_tool("mcp__plain__pid", {})).content[0].text.isdigit()


@pytest.mark.anyio
async def test_a_call_that_waits_for_a_server_to_start_can_be_taken_back(connect, write, face, era):
    write({"hangs": program("hangs")})
    async with connect(face, era) as client:
        with anyio.move_on_after(1.0) as patience:
            await client.call_tool("mcp__hangs__x", {})
        assert patience.cancelled_caught
        started = time.monotonic()
        assert not (await client.call_tool("list_git_workspaces", {})).is_error
    # The server has ended by now: nothing of the call kept it.
    assert time.monotonic() - started < 6


# Byte for byte


RICH = {
    "content": [
        {"type": "text", "text": "t\u2028\x00", "annotations": {"priority": 1}, "zzz": 1},
        {"type": "image", "data": "cG5n", "mimeType": "image/png"},
        {"type": "hologram", "beam": [1, 2.5, None]},
    ],
    "structuredContent": {"a": None, "big": 2**70, "f": 1.0, "e": [], "t": True},
    "vendor": 1,
    "_meta": {"v": 1},
}


def rows(text):
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n") if line.strip().endswith("}")]


def test_a_result_reaches_the_wire_as_its_server_wrote_it(exeora, write):
    write({"plain": program("plain")})
    requests = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HANDSHAKE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "mcp__plain__rich", "arguments": {}}},
    ]
    process = subprocess.Popen(
        [*COMMAND, "mcp"],
        cwd=exeora.folder,
        env=child_environment(exeora.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        for request in requests:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        answers = []
        while not any(answer.get("id") == 1 for answer in answers):
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(10) == 0
    assert next(answer["result"] for answer in answers if answer.get("id") == 1) == RICH
    with serving(exeora) as served:
        secret = served.ready["token"]["secret"]
        session = open_session(served.ready["endpoint"], secret)
        assert call(served.ready["endpoint"], secret, "mcp__plain__rich", {}, **session) == RICH
        wrong = call(served.ready["endpoint"], secret, "mcp__plain__wrong", {}, **session)
        assert wrong == {"content": [], "structuredContent": {"n": "no integer"}, "isError": True}
        served.end()


# What ends when


@contextmanager
def serving_on(face, exeora):
    """A server with a session; gives the process and a function that calls a tool."""
    if face == "http":
        with serving(exeora) as served:
            secret, url = served.ready["token"]["secret"], served.ready["endpoint"]
            session = open_session(url, secret)
            post(url, secret, "notifications/initialized", {}, **session)
            yield served.process, lambda tool, arguments: call(url, secret, tool, arguments, **session)
        return
    process = subprocess.Popen(
        [*COMMAND, "mcp"],
        cwd=exeora.folder,
        env=child_environment(exeora.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def ask(method, params, identity=1):
        body = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        process.stdin.write(json.dumps(body).encode() + b"\n")
        process.stdin.flush()
        while (answer := json.loads(process.stdout.readline())).get("id") != identity:
            pass
        return answer["result"]

    with process:
        try:
            ask("initialize", HANDSHAKE)
            yield process, lambda tool, arguments: ask("tools/call", {"name": tool, "arguments": arguments})
        finally:
            process.kill()


def read_pids(file):
    return [int(pid) for pid in file.read_text().split()]


def test_a_signal_ends_upstreams_commands_and_calls_together_in_time(exeora, write, face, tmp_path):
    pids = tmp_path / "pids"
    write({"stubborn": program("stubborn", str(pids)), "plain": program("plain")})
    with serving_on(face, exeora) as (process, ask), ThreadPoolExecutor(1) as pool:
        ask("mcp__stubborn__x", {})
        started = ask("start_command", {"command": "trap '' TERM; setsid sleep 600 & while :; do sleep 1; done"})
        ours = [*read_pids(pids), started["structuredContent"]["pid"]]
        assert len(ours) == 5
        assert all(is_running(pid) for pid in ours)
        calling = pool.submit(ask, "mcp__plain__slow", {})
        until(lambda: "slow" in audited(), 20)
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert calling.result(8)["structuredContent"]["error"]["code"] == "CANCELLED"
        assert process.wait(8) == 0
        assert time.monotonic() - asked < 5
        assert not any(is_running(pid) for pid in ours)


def audited():
    from exeora_ws.database import Database

    with Database(find_places().database, {}).read() as connection:
        return " ".join(row["tool"] for row in connection.execute("SELECT tool FROM audit"))


def test_after_a_kill_the_next_start_leaves_nothing_of_an_upstream(exeora, write, face, tmp_path):
    pids = tmp_path / "pids"
    write({"stubborn": program("stubborn", str(pids))})
    with serving_on(face, exeora) as (process, ask):
        ask("mcp__stubborn__x", {})
        ours = read_pids(pids)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(5)
        assert any(is_running(pid) for pid in ours), "it takes no notice of the end of its input"
    assert exeora("upstream", "list").code == 0
    until(lambda: not any(is_running(pid) for pid in ours), 5)


def test_two_tokens_share_no_upstream_of_a_project_that_one_has_not(exeora, write, make_repository):
    other = open_app().inventory.register_project(make_repository("other"), exact=False)[0]
    write({"plain": program("plain")})
    secret = TokenBook(find_places()).create("t", projects=[other.id])[1]
    with serving(exeora) as served:
        session = open_session(served.account, secret)
        found = call(served.account, secret, "mcp__plain__where", {}, **session)
        assert found["content"][0]["text"] == str(other.root)
        refused = call(served.account, secret, "mcp__plain__where", {"project": "app"}, **session)
        assert refused["structuredContent"]["error"]["code"] == "UNKNOWN_PROJECT"
        served.end()


def test_a_token_that_may_only_read_gets_only_what_is_marked_so(exeora, write):
    write({"plain": program("plain")})
    secret = TokenBook(find_places()).create("t", read_only=True)[1]
    with serving(exeora) as served:
        url = served.ready["endpoint"]
        session = open_session(url, secret)
        assert call(url, secret, "mcp__plain__where", {}, **session)["content"][0]["text"] == str(exeora.folder)
        answer = post(url, secret, "tools/list", {}, **session)
        names = {tool["name"] for tool in rows(answer.text)[-1]["result"]["tools"]}
        assert "mcp__plain__where" in names
        assert "mcp__plain__echo" not in names
        refused = call(url, secret, "mcp__plain__echo", {}, **session)
        assert refused["structuredContent"]["error"]["reason"] == "token_read_only"
        served.end()
