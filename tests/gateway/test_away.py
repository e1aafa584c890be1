"""A machine that is asleep, comes back, or was sent away; a gateway and a nats-server that are killed."""

import os
import signal
import time

import pytest

from support.gateway import find_error, find_result, until, until_true

pytestmark = pytest.mark.anyio


async def test_what_is_there_is_answered_while_its_machine_is_away(world, era):
    fleet = world.fleet
    fleet.make_host(f"asleep-{era}")
    fleet.add_own_project(f"asleep-{era}", f"asleep-{era}")
    machine = fleet.start_machine(f"asleep-{era}", fleet.add_machine(f"asleep-{era}"))
    project = f"asleep-{era}"
    async with world.gateway.connect(era, world.secret) as client:
        await until_listed(client, project)
        asleep = find_result(await client.call_tool("list_workspaces", {"project": project}))
        assert asleep["machine"]["online"] is True
        assert [w["available"] for w in asleep["workspaces"]] == [True]
        machine.kill()
        started = time.monotonic()
        projects = find_result(await client.call_tool("list_projects", {}))["projects"]
        workspaces = find_result(await client.call_tool("list_workspaces", {"project": project}))
        prompt = find_result(await client.call_tool("get_agent_prompt", {}))
        listed = await client.list_tools()
        refused = find_error(await client.call_tool("run_command", {"project": project, "command": "touch late"}))
        assert time.monotonic() - started < 3
    online = {p["slug"]: p["machine"]["online"] for p in projects}
    assert (online[project], online["app"]) == (False, True)
    assert workspaces["machine"] == {**asleep["machine"], "online": False}
    assert [(w["slug"], w["available"]) for w in workspaces["workspaces"]] == [("main", False)]
    assert "workspace" in prompt["prompt"]
    assert "run_command" in {tool.name for tool in listed.tools}
    assert (refused["code"], refused["reason"]) == ("LOCAL_EXECUTOR_OFFLINE", "machine_offline")
    again = fleet.start_again(f"asleep-{era}")
    async with world.gateway.connect(era, world.secret, f"/p/{project}/mcp") as client:
        done = find_result(await client.call_tool("run_command", {"command": "ls"}))
        assert "late" not in done["stdout"], "nothing was kept to be run later"
    assert again.end() == 0


async def test_a_machine_that_says_nothing_is_lost_and_does_not_run_the_call_later(world):
    """Stopped: its connection stands, and nobody is told that it is gone."""
    root = world.projects["one"]["web"].root
    os.kill(world.one.process.pid, signal.SIGSTOP)
    try:
        async with world.gateway.connect("2026-07-28", world.secret, "/p/web/mcp") as client:
            started = time.monotonic()
            answer = await client.call_tool("run_command", {"command": "touch late"})
            waited = time.monotonic() - started
    finally:
        os.kill(world.one.process.pid, signal.SIGCONT)
    lost = find_error(answer)
    assert (lost["code"], lost["reason"]) == ("LOCAL_EXECUTOR_OFFLINE", "connection_lost")
    assert "may have run" in lost["message"]
    assert 5.5 < waited < 7.5
    async with world.gateway.connect("2026-07-28", world.secret, "/p/web/mcp") as client:
        await until_run(client)
    assert not (root / "late").exists()


async def test_a_machine_that_was_sent_away_is_not_there_any_more(world):
    fleet = world.fleet
    fleet.make_host("gone")
    fleet.add_own_project("gone", "gone")
    machine = fleet.start_machine("gone", fleet.add_machine("gone"))
    async with world.gateway.connect("2026-07-28", world.secret) as client:
        await until_listed(client, "gone")
        running = find_result(await client.call_tool("start_command", {"project": "gone", "command": "sleep 60"}))
        assert fleet.run("machine", "revoke", "gone").code == 0
        refused = find_error(await client.call_tool("read_file", {"project": "gone", "path": "README.md"}))
        assert refused["code"] in {"UNKNOWN_PROJECT", "LOCAL_EXECUTOR_OFFLINE"}
        await until(lambda: machine.process.poll() is not None)
        listed = find_result(await client.call_tool("list_projects", {}))["projects"]
        assert "gone" not in [p["slug"] for p in listed]
    await until(lambda: not os.path.exists(f"/proc/{running['pid']}"))


async def test_the_end_of_a_session_is_told_again_when_nobody_could_hear_it(world):
    """What it had started may not run on for as long as its gateway lives."""
    async with world.gateway.connect("legacy", world.secret, "/p/web/mcp") as client:
        started = find_result(await client.call_tool("start_command", {"command": "sleep 60"}))
        world.fleet.kill_server()
    world.fleet.start_server()
    await until(lambda: not os.path.exists(f"/proc/{started['pid']}"))
    async with world.gateway.connect("legacy", world.secret, "/p/web/mcp") as client:
        await until_run(client)


async def until_listed(client, slug):
    async def is_listed():
        return slug in [p["slug"] for p in find_result(await client.call_tool("list_projects", {}))["projects"]]

    await until_true(is_listed)


async def until_run(client):
    """Call until a call runs again."""

    async def runs():
        return not (await client.call_tool("run_command", {"command": "true"})).is_error

    await until_true(runs)
