"""Calls through a gateway to machines: placed, refused, asked about, carried out, answered as the machine worded it."""

import json
import subprocess

import anyio
import pytest

from support import node_clients
from support.gateway import find_error, find_result, until
from support.upstream_world import is_running

TOOLS = {"project_fs_edit", "project_fs_write", "project_exec"}
pytestmark = pytest.mark.anyio


async def test_the_projects_of_all_machines_are_listed_with_slugs_of_their_own(world, era):
    async with world.gateway.connect(era, world.secret) as client:
        projects = find_result(await client.call_tool("list_projects", {}))["projects"]
    projects = [p for p in projects if p["slug"] in {"app", "app-two", "web"}]
    assert [(p["slug"], p["machine"]["name"], p["machine"]["online"]) for p in projects] == [
        ("app", "one", True),
        ("app-two", "two", True),
        ("web", "one", True),
    ]
    assert [p["id"] for p in projects[:2]] == [world.projects["one"]["app"].id, world.projects["two"]["app"].id]


async def test_a_call_acts_on_the_machine_and_in_the_workspace_it_names(world, era):
    async with world.gateway.connect(era, world.secret) as client:
        made = find_result(
            await client.call_tool("create_workspace", {"project": "app-two", "branch": f"feature/{era}"})
        )["workspace"]
        for workspace in (made["id"], made["slug"]):
            arguments = {"project": "app-two", "workspace": workspace, "command": "pwd; git branch --show-current"}
            done = find_result(await client.call_tool("run_command", arguments))
            assert done["stdout"].split() == [made["path"], f"feature/{era}"]
        main = find_result(await client.call_tool("run_command", {"project": "app-two", "command": "pwd"}))
    assert main["stdout"].strip() == str(world.projects["two"]["app"].root)


async def test_a_workspace_that_nobody_knows_is_an_error_of_the_machine_never_main(world, era):
    async with world.gateway.connect(era, world.secret, "/p/web/mcp") as client:
        answer = await client.call_tool("write_file", {"workspace": "nowhere", "path": "x.txt", "content": "x"})
    assert find_error(answer)["code"] == "UNKNOWN_WORKSPACE"
    assert not (world.projects["one"]["web"].root / "x.txt").exists()


async def test_results_and_errors_are_those_of_the_machine_itself(world, era):
    async with world.gateway.connect(era, world.secret, "/p/app/mcp") as client:
        read = await client.call_tool("read_file", {"path": "README.md"})
        missing = await client.call_tool("read_file", {"path": "no.txt"})
        wrong = await client.call_tool("read_file", {"path": 5})
        unknown = await client.call_tool("no_such_tool", {})
    assert json.loads(read.content[0].text) == find_result(read)
    assert find_result(read)["content"].startswith("# app")
    assert find_error(missing)["code"] == "PATH_NOT_FOUND"
    assert missing.content[0].text.startswith("PATH_NOT_FOUND")
    assert find_error(wrong)["code"] == "INVALID_ARGUMENTS"
    assert find_error(unknown)["code"] == "UNKNOWN_TOOL"


async def test_a_tool_of_an_upstream_server_is_passed_on_byte_for_byte(world, era):
    async with world.gateway.connect(era, world.secret) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        merged = listed["mcp__plain__rich"].input_schema
        assert merged["required"] == ["project"], "three projects have it"
        where = await client.call_tool("mcp__plain__where", {"project": "app-two"})
        unknown = await client.call_tool("mcp__plain__where", {"project": "app-two", "workspace": "nowhere"})
        wrong = await client.call_tool("mcp__plain__wrong", {"project": "web"})
    assert where.content[0].text == str(world.projects["two"]["app"].root)
    assert find_error(unknown)["code"] == "UNKNOWN_WORKSPACE"
    assert wrong.is_error
    assert wrong.structured_content == {"n": "no integer"}, "as its server said it"


async def test_progress_of_a_command_and_of_an_upstream_comes_before_the_answer(world, era):
    steps = []

    async def keep(number, total, line):
        steps.append((number, total, line))

    async with world.gateway.connect(era, world.secret, "/p/app/mcp") as client:
        result = await client.call_tool("mcp__plain__progress", {}, progress_callback=keep)
    assert result.content[0].text == "done"
    assert steps == [(0, 3, "s0"), (1, 3, "s1"), (2, 3, "s2")]


async def test_large_arguments_and_large_results_are_cut_and_put_together(world, era):
    content = "".join(f"{number:07d} é\n" for number in range(90_000))
    assert len(content.encode()) > 900_000
    async with world.gateway.connect(era, world.secret, "/p/web/mcp") as client:
        written = find_result(await client.call_tool("write_file", {"path": "large.txt", "content": content}))
        assert written["bytesWritten"] == len(content.encode())
        back, offset = "", 1
        while True:
            part = find_result(await client.call_tool("read_file", {"path": "large.txt", "offset": offset}))
            back += part["content"]
            if not part["truncated"]:
                break
            offset = part["nextOffset"]
    assert back == content


async def test_a_call_that_is_cancelled_ends_its_processes_on_the_machine(world, era):
    root = world.projects["one"]["web"].root
    started, pid = root / f"started-{era}", root / f"pid-{era}"
    async with world.gateway.connect(era, world.secret, "/p/web/mcp") as client:
        async with anyio.create_task_group() as calls:
            command = f"echo $$ > {pid.name}; touch {started.name}; sleep 60"
            calls.start_soon(client.call_tool, "run_command", {"command": command})
            await until(started.exists)
            calls.cancel_scope.cancel()
        await until(lambda: not is_running(int(pid.read_text())))
        assert find_result(await client.call_tool("run_command", {"command": "echo on"}))["stdout"] == "on\n"


async def test_what_a_session_has_started_ends_with_it_on_the_machine(world):
    async with world.gateway.connect("legacy", world.secret, "/p/web/mcp") as client:
        started = find_result(await client.call_tool("start_command", {"command": "sleep 60"}))
        assert is_running(started["pid"])
        read = find_result(await client.call_tool("get_command_output", {"processId": started["processId"]}))
        assert read["running"] is True
    await until(lambda: not is_running(started["pid"]))


async def test_the_toolset_of_a_path_is_run_on_the_machine_too(world):
    async with world.gateways[1].connect("2026-07-28", world.secret, "/p/web/sandbox/mcp") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        done = await client.call_tool("project_exec", {"command": "pwd"})
    assert str(world.projects["one"]["web"].root) in done.content[0].text


installed = pytest.mark.skipif(not node_clients.MODULES.exists(), reason=node_clients.HOW)


@installed
@pytest.mark.parametrize(("client", "its_era"), [("sdk", "legacy"), ("client", "2026-07-28")])
def test_the_typescript_clients_take_every_answer_for_what_its_schema_says(world, client, its_era):
    steps = [
        {"tool": "list_projects", "arguments": {}},
        {"tool": "list_workspaces", "arguments": {"project": "web"}},
        {"tool": "get_agent_prompt", "arguments": {}},
        {"tool": "run_command", "arguments": {"project": "web", "command": "echo hello"}},
        {"tool": "read_file", "arguments": {"project": "app-two", "path": "README.md"}},
        {"tool": "read_file", "arguments": {"project": "nowhere", "path": "README.md"}},
    ]
    http = {"url": f"{world.gateway.url}/mcp", "token": world.secret}
    done = subprocess.run(
        [str(node_clients.find_node()), str(node_clients.FOLDER / "official.mjs")],
        input=json.dumps({"client": client, "era": its_era, "http": http, "steps": steps}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=node_clients.FOLDER,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    assert [result.get("isError") for result in results] == [False] * 5 + [True], results
