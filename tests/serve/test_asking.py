"""A call that a person must confirm: asked through the client, in the way of its era, on both transports."""

import json
import threading
from contextlib import asynccontextmanager

import anyio
import httpx2
import mcp_types as mcp
import pytest
from exeora_ws.policy.gate import Answer
from exeora_ws.serve.asking import judge_answer

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["stdio", "http"])
def transport(request):
    return request.param


@pytest.fixture
def confirmed(project):
    """The project asks before anything that writes."""
    (project.root / "exeora.toml").write_text("approve = true\n")
    return project


@pytest.fixture
def connect_by(transport, connect_stdio, start_site, confirmed):
    """Connect to the project by the transport of this test."""

    @asynccontextmanager
    async def connected(era, **options):
        if transport == "stdio":
            async with connect_stdio(era, confirmed.slug, **options) as client:
                yield client
        else:
            with start_site() as site:
                async with site.connect(era, site.make_token(), f"/p/{confirmed.slug}/mcp", **options) as client:
                    yield client

    return connected


class Person:
    """Answers what the client shows, and remembers it."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, _context, params):
        self.asked.append(params)
        answer = self.answers.pop(0)
        if isinstance(answer, bool):
            return mcp.ElicitResult(action="accept", content={"confirm": answer})
        return mcp.ElicitResult(action=answer)


async def run(client, command):
    return await client.call_tool("run_command", {"command": command})


async def test_yes_runs_what_was_shown_and_everything_else_runs_nothing(connect_by, confirmed, era):
    person = Person(True, False, "decline", "cancel", "accept", True)
    async with connect_by(era, elicitation_callback=person) as client:
        done = await run(client, "echo yes > written")
        assert not done.is_error, done.structured_content
        assert (confirmed.root / "written").read_text() == "yes\n"
        for _ in range(4):
            result = await run(client, "echo no > written")
            assert result.structured_content["error"]["code"] == "APPROVAL_DECLINED"
        assert (confirmed.root / "written").read_text() == "yes\n"
        assert not (await client.call_tool("list_git_workspaces", {})).is_error
        assert not (await run(client, "echo again > written")).is_error
    assert len(person.asked) == 6
    shown = person.asked[0]
    assert shown.mode == "form"
    assert "run_command" in shown.message
    assert "echo yes > written" in shown.message
    assert "project app" in shown.message
    assert list(shown.requested_schema["properties"]) == ["confirm"]


async def test_a_client_that_cannot_ask_is_refused_when_nobody_else_is_there(connect_stdio, confirmed, era):
    async with connect_stdio(era, confirmed.slug) as client:
        result = await run(client, "echo x > written")
    assert result.structured_content["error"]["code"] == "FORBIDDEN"
    assert result.structured_content["error"]["reason"] == "nobody_to_ask"
    assert not (confirmed.root / "written").exists()


async def test_somebody_at_another_window_may_answer_first(app, connect_stdio, confirmed, era):
    approvals = app.calls.gate._gate._approvals
    asked = threading.Event()

    async def look_away(_context, _params):
        asked.set()
        if era == "legacy":
            await anyio.sleep(5)
        else:  # the client asks first and calls again after
            await anyio.sleep(0.5)
        return mcp.ElicitResult(action="decline")

    def allow():
        assert asked.wait(10)
        (pending,) = approvals.list_pending()
        approvals.allow(pending.id, "approvals")

    thread = threading.Thread(target=allow)
    thread.start()
    async with connect_stdio(era, confirmed.slug, elicitation_callback=look_away) as client:
        with anyio.fail_after(15):
            result = await run(client, "echo other > written")
    thread.join()
    assert not result.is_error, result.structured_content
    assert (confirmed.root / "written").read_text() == "other\n"


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


async def test_an_answer_counts_once_and_only_for_the_call_it_was_given_for(start_site, confirmed):
    with start_site() as site:
        secret = site.make_token()

        def ask(command, **more):
            params = {"name": "run_command", "arguments": {"command": command}, "_meta": ENVELOPE, **more}
            headers = {
                **site.headers(secret),
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "run_command",
            }
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = httpx2.post(site.url + "/p/app/mcp", json=body, headers=headers, timeout=20)
            return answer.json()["result"]

        def answer(state):
            yes = {"confirm": {"action": "accept", "content": {"confirm": True}}}
            return {"requestState": state, "inputResponses": yes}

        first = ask("echo 1 >> written")
        assert first["resultType"] == "input_required"
        assert first["inputRequests"]["confirm"]["method"] == "elicitation/create"
        state = first["requestState"]
        for command, wrong in (
            ("echo 2 >> written", answer(state)),
            ("echo 1 >> written", answer(state[:-2] + "AA")),
            ("echo 1 >> written", answer("nonsense")),
            ("echo 1 >> written", answer("")),
        ):
            refused = ask(command, **wrong)
            assert refused["structuredContent"]["error"]["reason"] == "approval_mismatch", wrong
        assert not (confirmed.root / "written").exists()
        assert ask("echo 1 >> written", requestState=state)["resultType"] == "input_required"
        assert ask("echo 1 >> written", **answer(state))["isError"] is False
        again = ask("echo 1 >> written", **answer(state))
        assert again["structuredContent"]["error"]["reason"] == "approval_used"
        assert (confirmed.root / "written").read_text() == "1\n"
        assert "input_required" in json.dumps(ask("echo 1 >> written"))


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ({"action": "accept", "content": {"confirm": True}}, Answer.ALLOW),
        ({"action": "accept", "content": {"confirm": False}}, Answer.DECLINE),
        ({"action": "accept", "content": {"confirm": "true"}}, Answer.DECLINE),
        ({"action": "accept", "content": {"confirm": 1}}, Answer.DECLINE),
        ({"action": "accept", "content": {}}, Answer.DECLINE),
        ({"action": "accept"}, Answer.DECLINE),
        ({"action": "decline", "content": {"confirm": True}}, Answer.DECLINE),
        ({"action": "cancel"}, Answer.DECLINE),
    ],
)
def test_only_a_yes_is_a_yes(result, answer):
    assert judge_answer(mcp.ElicitResult(**result)) is answer
