"""What the SDK's client sees of the server, in both eras."""

import json

import anyio
import pytest
from exeora_ws.app import open_app
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

pytestmark = pytest.mark.anyio

HINTS = ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")


async def test_the_handshake_says_who_and_how(connect, era):
    async with connect(era) as client:
        assert client.server_info.name == "exeora"
        assert client.server_info.version
        assert client.instructions == "Instructions for an account."
        assert client.server_capabilities.tools.list_changed is True


async def test_instructions_and_prompt_are_those_of_the_scope(connect, project, era):
    async with connect(era, "app") as client:
        assert client.instructions == "Instructions for a project."
        assert [p.name for p in (await client.list_prompts()).prompts] == ["coding_agent"]
        assert (await client.get_prompt("coding_agent")).messages[0].content.text == "account=False"
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("nope")
        assert caught.value.code == -32602


async def test_every_tool_is_described_whole(connect, project, era):
    async with connect(era) as client:
        tools = (await client.list_tools()).tools
    assert {"create_workspace", "list_projects", "remove_workspace"} <= {t.name for t in tools}
    for tool in tools:
        assert tool.title
        assert tool.description
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert all(isinstance(getattr(tool.annotations, hint), bool) for hint in HINTS), tool.name
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)


async def test_an_account_names_projects_and_a_project_cannot(connect, project, era):
    async with connect(era) as client:
        account = {t.name: t for t in (await client.list_tools()).tools}
    async with connect(era, "app") as client:
        bound = {t.name: t for t in (await client.list_tools()).tools}
        for hidden in ("list_projects", "list_workspaces"):
            result = await client.call_tool(hidden, {})
            assert result.is_error
            assert result.structured_content["error"]["code"] == "UNKNOWN_TOOL"
        result = await client.call_tool("echo", {"text": "x", "project": "app"})
        assert result.structured_content["error"]["reason"] == "unknown_field"
    assert set(account) - set(bound) == {"list_projects", "list_workspaces"}
    assert "project" in account["create_workspace"].input_schema["properties"]
    assert "project" not in account["list_projects"].input_schema["properties"]
    assert all("project" not in t.input_schema["properties"] for t in bound.values())


async def test_a_read_only_caller_is_shown_only_what_reads(connect, era):
    async with connect(era, "read-only") as client:
        tools = (await client.list_tools()).tools
    assert "list_projects" in {t.name for t in tools}
    assert all(t.annotations.read_only_hint for t in tools)


async def test_a_result_is_structured_and_the_same_json_as_text(connect, project, era):
    async with connect(era, "app") as client:
        result = await client.call_tool("echo", {"text": "naïve 漢字 \u2028"})
    assert not result.is_error
    assert result.structured_content["text"] == "naïve 漢字 \u2028"
    assert result.structured_content["workspace"] == "main"
    assert [c.type for c in result.content] == ["text"]
    assert json.loads(result.content[0].text) == result.structured_content


async def test_a_failure_is_a_result_that_starts_with_its_code(connect, era):
    async with connect(era) as client:
        result = await client.call_tool("fail", {})
    assert result.is_error
    assert result.content[0].text == "TOOL_FAILED (no_good): it is no good\ntry another"
    assert result.structured_content == {
        "error": {
            "code": "TOOL_FAILED",
            "reason": "no_good",
            "message": "it is no good",
            "hint": "try another",
            "data": {"tried": [1, None]},
        }
    }


async def test_a_failure_fits_the_published_output_schema(connect, era):
    async with connect(era) as client:
        schema = next(t for t in (await client.list_tools()).tools if t.name == "fail").output_schema
        failed = (await client.call_tool("fail", {})).structured_content
    check = Draft202012Validator(schema)
    check.validate(failed)
    check.validate({"done": True})
    assert not check.is_valid({})
    assert not check.is_valid({"error": {"code": "NO_CODE", "message": "x"}})


@pytest.mark.parametrize(
    ("arguments", "reason", "field"),
    [
        ({"text": "x", "zzz": 1}, "unknown_field", "zzz"),
        ({}, "missing_field", "text"),
        ({"text": 7}, "wrong_value", "text"),
        ({"text": "x", "workspace": 7}, "wrong_value", "workspace"),
        (None, "missing_field", "text"),
    ],
)
async def test_wrong_arguments_are_a_result_that_names_the_field(connect, project, era, arguments, reason, field):
    async with connect(era, "app") as client:
        result = await client.call_tool("echo", arguments)
    error = result.structured_content["error"]
    assert result.is_error
    assert (error["code"], error["reason"]) == ("INVALID_ARGUMENTS", reason)
    assert error["message"].startswith(field)


async def test_a_workspace_that_does_not_resolve_runs_nothing(connect, project, era):
    async with connect(era, "app") as client:
        for selector in ("nope", "", "Main", "main ", "../main", "wsp_x", "-"):
            result = await client.call_tool("echo", {"text": "x", "workspace": selector})
            assert result.is_error, selector
            assert result.structured_content["error"]["code"] == "UNKNOWN_WORKSPACE"


async def test_an_unknown_tool_is_a_result(connect, era):
    async with connect(era) as client:
        result = await client.call_tool("nope", {})
    assert result.is_error
    assert result.structured_content["error"]["code"] == "UNKNOWN_TOOL"


@pytest.mark.parametrize("tool", ["bug", "bad_result"])
async def test_a_bug_is_a_protocol_error_with_an_id_that_stands_in_the_log(connect, era, tool, sealed):
    async with connect(era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(tool, {})
        assert not (await client.call_tool("list_projects", {})).is_error
    error = caught.value.error
    identity = error.data["id"]
    assert error.code == -32603
    assert error.message == f"internal error {identity}; see the log"
    assert error.data == {"id": identity}
    log = open_app().places.log
    assert f"bug {identity} in" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


async def test_a_result_of_up_to_a_million_bytes_passes_and_a_larger_one_says_so(connect, era):
    async with connect(era) as client:
        frame = len('{"text":""}')
        whole = await client.call_tool("fill", {"size": 1_000_000 - frame})
        assert len(whole.content[0].text) == 1_000_000
        result = await client.call_tool("fill", {"size": 1_000_001 - frame})
        assert result.is_error
        assert result.structured_content["error"]["reason"] == "result_too_large"
        assert not (await client.call_tool("fill", {"size": 1})).is_error


async def test_calls_run_beside_each_other(connect, era, tmp_path):
    async with connect(era) as client, anyio.create_task_group() as calls:
        with anyio.fail_after(10):
            for number in range(50):
                arguments = {"seconds": 30, "marker": str(tmp_path / str(number))}
                calls.start_soon(client.call_tool, "sleep", arguments)
            assert not (await client.call_tool("list_projects", {})).is_error
        calls.cancel_scope.cancel()


async def test_the_client_is_told_that_the_tools_changed(connect, era):
    told = []
    heard = anyio.Event()

    async def hear(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.append(message)
            heard.set()

    async with connect(era, message_handler=hear) as client:
        with anyio.fail_after(5):
            if era == "legacy":
                await client.call_tool("change", {})
                await heard.wait()
                await client.call_tool("list_projects", {})
                assert len(told) <= 3  # fifty changes at once are not fifty messages
            else:
                async with client.listen(tools_list_changed=True) as changes:
                    await client.call_tool("change", {})
                    async for change in changes:
                        assert type(change).__name__ == "ToolsListChanged"
                        break


async def test_a_cursor_that_no_page_gave_is_refused(connect, era):
    async with connect(era) as client:
        for cursor in ("x", "", "ZnJvbTow", "ZnJvbTo5OTk5", "ZnJvbTotMQ=="):
            with pytest.raises(MCPError) as caught:
                await client.list_tools(cursor=cursor)
            assert caught.value.code == -32602


async def test_a_tool_that_the_policy_hides_is_not_listed_and_a_change_is_told(connect, project, era):
    policy = project.root / "exeora.toml"
    told = anyio.Event()

    async def hear(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.set()

    async def listen(client):
        async with client.listen(tools_list_changed=True) as changes:
            async for _ in changes:
                told.set()

    async with connect(era, "app", message_handler=hear) as client, anyio.create_task_group() as beside:
        if era != "legacy":
            beside.start_soon(listen, client)
        assert "run_command" in {t.name for t in (await client.list_tools()).tools}
        policy.write_text('mode = "read_only"\n')
        result = await client.call_tool("run_command", {"command": "touch x"})
        assert result.structured_content["error"]["code"] == "FORBIDDEN"
        with anyio.fail_after(6):
            await told.wait()
        assert "run_command" not in {t.name for t in (await client.list_tools()).tools}
        beside.cancel_scope.cancel()


async def test_the_inventory_answers_while_the_repository_is_away(connect, project, era):
    project.root.rename(project.root.with_name("away"))
    async with connect(era) as client:
        result = await client.call_tool("list_workspaces", {})
        assert [w["available"] for w in result.structured_content["workspaces"]] == [False]
        assert (await client.call_tool("list_projects", {})).structured_content["projects"][0]["slug"] == "app"
        result = await client.call_tool("run_command", {"command": "true"})
        assert result.structured_content["error"]["code"] == "WORKSPACE_UNAVAILABLE"
