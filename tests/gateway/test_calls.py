"""Calls through a gateway to machines: placed, refused, asked about, carried out, answered as the machine worded it."""

import json

import pytest

pytestmark = pytest.mark.anyio


def structured(result):
    assert not result.is_error, result
    return result.structured_content


def error(result):
    assert result.is_error, result
    return result.structured_content["error"]


async def test_the_projects_of_all_machines_are_listed_with_slugs_of_their_own(world, era):
    async with world.gateway.connect(era, world.secret) as client:
        projects = structured(await client.call_tool("list_projects", {}))["projects"]
    assert [(p["slug"], p["machine"]["name"], p["machine"]["online"]) for p in projects] == [
        ("app", "one", True),
        ("app-two", "two", True),
        ("web", "one", True),
    ]
    assert [p["id"] for p in projects[:2]] == [world.projects["one"]["app"].id, world.projects["two"]["app"].id]


async def test_a_call_acts_on_the_machine_and_in_the_workspace_it_names(world, era):
    async with world.gateway.connect(era, world.secret) as client:
        made = structured(
            await client.call_tool("create_workspace", {"project": "app-two", "branch": f"feature/{era}"})
        )["workspace"]
        for workspace in (made["id"], made["slug"]):
            arguments = {"project": "app-two", "workspace": workspace, "command": "pwd; git branch --show-current"}
            done = structured(await client.call_tool("run_command", arguments))
            assert done["stdout"].split() == [made["path"], f"feature/{era}"]
        main = structured(await client.call_tool("run_command", {"project": "app-two", "command": "pwd"}))
    assert main["stdout"].strip() == str(world.projects["two"]["app"].root)


async def test_a_workspace_that_nobody_knows_is_an_error_of_the_machine_never_main(world, era):
    async with world.gateway.connect(era, world.secret, "/p/web/mcp") as client:
        answer = await client.call_tool("write_file", {"workspace": "nowhere", "path": "x.txt", "content": "x"})
    assert error(answer)["code"] == "UNKNOWN_WORKSPACE"
    assert not (world.projects["one"]["web"].root / "x.txt").exists()


async def test_results_and_errors_are_those_of_the_machine_itself(world, era):
    async with world.gateway.connect(era, world.secret, "/p/app/mcp") as client:
        read = await client.call_tool("read_file", {"path": "README.md"})
        missing = await client.call_tool("read_file", {"path": "no.txt"})
        wrong = await client.call_tool("read_file", {"path": 5})
        unknown = await client.call_tool("no_such_tool", {})
    assert json.loads(read.content[0].text) == structured(read)
    assert structured(read)["content"].startswith("# app")
    assert error(missing)["code"] == "PATH_NOT_FOUND"
    assert missing.content[0].text.startswith("PATH_NOT_FOUND")
    assert error(wrong)["code"] == "INVALID_ARGUMENTS"
    assert error(unknown)["code"] == "UNKNOWN_TOOL"
