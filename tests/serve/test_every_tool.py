"""Every tool of the catalog over stdio and HTTP, in both eras, by the official clients of both languages."""

import json
import subprocess

import anyio
import pytest
from jsonschema import Draft202012Validator

from support import node_clients as tools
from support.every_tool import FAILING, steps_for
from support.mcp_server import command_line

installed = pytest.mark.skipif(not tools.MODULES.exists(), reason=tools.HOW)


def fill_in(arguments, saved):
    return {k: saved[v[1:]] if isinstance(v, str) and v.startswith("$") else v for k, v in arguments.items()}


async def call_everything(client, *, account):
    schemas = {t.name: t.output_schema for t in (await client.list_tools()).tools}
    saved = {}
    for step in steps_for(account=account):
        result = await client.call_tool(step["tool"], fill_in(step["arguments"], saved))
        content = result.structured_content
        assert not result.is_error, (step, content)
        Draft202012Validator(schemas[step["tool"]]).validate(content)
        assert json.loads(result.content[0].text) == content
        saved |= {name: content[field] for name, field in step.get("save", {}).items()}
    for step in FAILING:
        result = await client.call_tool(step["tool"], step["arguments"])
        assert result.is_error, step
        Draft202012Validator(schemas[step["tool"]]).validate(result.structured_content)
        assert result.content[0].text.startswith(result.structured_content["error"]["code"])


@pytest.mark.anyio
@pytest.mark.parametrize("scope", ["app", "all"])
async def test_by_the_python_client_over_stdio(connect_stdio, project, era, scope):
    async with connect_stdio(era, scope) as client:
        await call_everything(client, account=scope == "all")


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/mcp", "/p/app/mcp"])
async def test_by_the_python_client_over_http(start_site, project, era, path):
    with start_site() as site:
        async with site.connect(era, site.make_token(), path) as client:
            await call_everything(client, account=path == "/mcp")


CLIENTS = [("sdk", "legacy"), ("client", "legacy"), ("client", "2026-07-28")]


def run_official(task):
    command = [str(tools.find_node()), str(tools.FOLDER / "official.mjs")]
    done = subprocess.run(
        command, input=json.dumps(task), capture_output=True, text=True, timeout=120, check=False, cwd=tools.FOLDER
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_official(found, *, account):
    steps = steps_for(account=account)
    assert found["server"]["name"] == "exeora"
    assert found["instructions"].startswith("Instructions for")
    assert found["prompt"] == f"account={account}"
    for step, result in zip([*steps, *FAILING], found["results"], strict=True):
        assert "thrown" not in result, result
        assert result["isError"] is (step in FAILING), result
        if step in FAILING:
            assert result["text"].startswith(result["structured"]["error"]["code"])
        else:
            assert json.loads(result["text"]) == result["structured"]


@installed
@pytest.mark.parametrize(("client", "era"), CLIENTS)
def test_by_the_typescript_clients_over_stdio(project, environment, client, era):
    command, *arguments = command_line("stdio", "app")
    steps = [*steps_for(account=False), *FAILING]
    stdio = {"command": command, "args": arguments, "env": environment}
    check_official(run_official({"client": client, "era": era, "stdio": stdio, "steps": steps}), account=False)


@installed
@pytest.mark.parametrize(("client", "era"), CLIENTS)
def test_by_the_typescript_clients_over_http(start_site, project, client, era):
    steps = [*steps_for(account=True), *FAILING]
    with start_site() as site:
        http = {"url": site.url + "/mcp", "token": site.make_token()}
        check_official(run_official({"client": client, "era": era, "http": http, "steps": steps}), account=True)


INSPECTOR = tools.find_program("@modelcontextprotocol/inspector", "clients/launcher/build/index.js")


def run_inspector(*arguments, env):
    command = [*INSPECTOR, "--cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env, cwd=tools.FOLDER)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(INSPECTOR is None, reason=tools.HOW)
def test_by_the_inspector(start_site, project, environment):
    with start_site() as site:
        url, authorization = site.url + "/mcp", f"Authorization: Bearer {site.make_token()}"
        over_http = [url, "--transport", "http", "--header", authorization]
        # It passes on little of the environment.
        over_stdio = ["env", *(f"{name}={value}" for name, value in environment.items()), *command_line("stdio", "all")]
        listed = run_inspector(*over_http, "--method", "tools/list", env=environment)
        assert {t["name"] for t in listed["tools"]} >= {"list_projects", "create_workspace"}
    called = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"]
    result = run_inspector(*over_stdio, *called, env=environment)
    assert result["structuredContent"]["text"] == "hello"


@pytest.mark.anyio
async def test_twenty_four_workspaces_are_made_eight_at_once(connect_stdio, project, app, era):
    made, limit = [], anyio.CapacityLimiter(8)

    async def make(client, number):
        async with limit:
            result = await client.call_tool("create_workspace", {"branch": f"feature/{number}", "from": "main"})
        assert not result.is_error, result.structured_content
        made.append(result.structured_content["workspace"]["slug"])

    async with connect_stdio(era, "app") as client, anyio.create_task_group() as making:
        for number in range(24):
            making.start_soon(make, client, number)
    assert sorted(made) == sorted(f"feature-{n}" for n in range(24))
    assert len(app.inventory.list_workspaces(project)) == 25
