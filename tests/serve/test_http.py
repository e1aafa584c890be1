"""The server over HTTP: the door, two endpoints, both eras, and what ends when."""

import json
import signal
import socket
import threading
import time
from contextlib import ExitStack, suppress

import anyio
import httpx2
import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.limits import MESSAGE_BYTES
from exeora_ws.serve.http import serve_http
from exeora_ws.serve.options import HttpOptions
from exeora_ws.serve.running import list_servers
from exeora_ws.serve.tokens import TokenBook
from mcp.shared.exceptions import MCPError

HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
ACCEPTS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PATHS = ("/mcp", "/p/alpha/mcp")


def post(site, path, body, secret=None, **headers):
    everything = {**ACCEPTS, **(site.headers(secret) if secret else {}), **headers}
    return httpx2.post(site.url + path, json=body, headers=everything, timeout=10)


def open_session(site, path, secret):
    """Shake hands by hand; gives the headers of the session."""
    answer = post(site, path, HANDSHAKE, secret)
    assert answer.status_code == 200, answer.text
    session = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    assert post(site, path, {"jsonrpc": "2.0", "method": "notifications/initialized"}, secret, **session).is_success
    return session


def call(tool, arguments, *, era="legacy", identity=1):
    """One request by hand, and the headers it needs."""
    params = {"name": tool, "arguments": arguments}
    headers = {}
    if era != "legacy":
        params["_meta"] = ENVELOPE
        headers = {"MCP-Protocol-Version": era, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}, headers


def read_answer(response):
    """The JSON of an answer, sent plainly or as the last event of a stream."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    events = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return json.loads(events[-1])


async def wait_until(holds, seconds=5.0):
    with anyio.fail_after(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await anyio.sleep(0.02)


# The door


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7373", "127.0.0.1.evil.example", "127.0.0.1@evil.example", ""]
)
def test_a_foreign_host_is_refused_before_anything_else(site, path, host):
    for secret in (site.make_token(), None):
        assert post(site, path, HANDSHAKE, secret, Host=host).status_code in (400, 421)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://", "localhost"]
)
def test_a_foreign_origin_is_refused(site, path, origin):
    assert post(site, path, HANDSHAKE, site.make_token(), Origin=origin).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [{"Host": "localhost"}, {"Host": "127.0.0.1"}, {"Host": "LOCALHOST:1"}, {"Origin": "http://localhost:6274"}],
)
def test_loopback_by_any_of_its_names_is_served(site, headers):
    assert post(site, "/mcp", HANDSHAKE, site.make_token(), **headers).status_code == 200


def test_without_a_valid_token_nobody_comes_in(site):
    revoked = site.make_token()
    (token,) = [t for t in site.book.list() if t.used is None and t.revoked is None][-1:]
    site.book.revoke(token.id)
    over = site.make_token(seconds=0.001)
    time.sleep(0.01)
    valid = site.make_token()
    attempts = [None, "x", "exo_" + "A" * 43, revoked, over, valid[:-1], valid + "A", valid.upper()]
    for secret in attempts:
        answer = post(site, "/mcp", HANDSHAKE, secret)
        assert answer.status_code == 401, secret
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "exo_…" in answer.json()["error"]["message"]
        assert secret is None or secret == "x" or secret not in answer.text
    answer = httpx2.post(site.url + "/mcp", json=HANDSHAKE, headers={**ACCEPTS, "Authorization": f"Basic {valid}"})
    assert answer.status_code == 401
    assert post(site, "/mcp", HANDSHAKE, valid).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/", "/mcp/x", "/p/mcp", "/p//mcp", "/p/alpha", "/p/alpha/beta/mcp", "/.well-known/oauth-protected-resource"],
)
def test_elsewhere_is_nothing(site, path):
    assert post(site, path, HANDSHAKE, site.make_token()).status_code == 404


def test_a_project_that_is_unknown_and_one_that_was_not_granted_are_answered_alike(site):
    alpha = site.app.inventory.require_project("alpha")
    secret = site.make_token(account=False, projects=[alpha.id])
    answers = [post(site, f"/p/{name}/mcp", HANDSHAKE, secret) for name in ("beta", "gamma", "%20", "main")]
    assert {a.status_code for a in answers} == {404}
    assert len({a.content for a in answers}) == 1
    assert answers[0].json()["error"]["data"]["error"]["code"] == "UNKNOWN_PROJECT"
    assert post(site, "/p/alpha/mcp", HANDSHAKE, secret).status_code == 200


def test_a_token_of_a_project_does_not_open_the_account(site):
    alpha = site.app.inventory.require_project("alpha")
    answer = post(site, "/mcp", HANDSHAKE, site.make_token(account=False, projects=[alpha.id]))
    assert answer.status_code == 403
    assert answer.json()["error"]["data"]["error"]["code"] == "FORBIDDEN"


def test_too_long_a_body_is_refused(site):
    secret = site.make_token()
    body = {**HANDSHAKE, "padding": "x" * MESSAGE_BYTES}
    assert post(site, "/mcp", body, secret).status_code == 413
    assert post(site, "/mcp", HANDSHAKE, secret).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b'"x"',
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        b"\xff\xfe",
        b"[" * 10_000,
    ],
)
@pytest.mark.parametrize("version", [None, "2025-11-25", "2026-07-28", "1999-01-01"])
def test_what_is_no_request_is_refused_and_shows_nothing_of_us(site, body, version):
    headers = {**ACCEPTS, **site.headers(site.make_token()), **({"MCP-Protocol-Version": version} if version else {})}
    answer = httpx2.post(site.url + "/mcp", content=body, headers=headers, timeout=10)
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in answer.text
    assert "/work" not in answer.text


# Who reaches what


def test_a_session_is_known_only_where_and_by_whom_it_was_opened(site):
    one, other = site.make_token(), site.make_token()
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for opened in PATHS:
        session = open_session(site, opened, one)
        assert post(site, opened, listing, one, **session).status_code == 200
        for path in (*PATHS, "/p/beta/mcp"):
            for secret in (one, other):
                if (path, secret) != (opened, one):
                    assert post(site, path, listing, secret, **session).status_code == 404, (path, opened)
        everything = {**ACCEPTS, **site.headers(other), **session}
        assert httpx2.delete(site.url + opened, headers=everything).status_code == 404
        assert post(site, opened, listing, one, **session).status_code == 200


@pytest.mark.anyio
async def test_an_account_reaches_the_projects_granted_to_it_and_no_other(site, era):
    inventory = site.app.inventory
    alpha, beta = inventory.require_project("alpha"), inventory.require_project("beta")
    async with site.connect(era, site.make_token(projects=[alpha.id])) as client:
        listed = await client.call_tool("list_projects", {})
        assert [p["slug"] for p in listed.structured_content["projects"]] == ["alpha"]
        for chosen in ({}, {"project": "alpha"}, {"project": alpha.id}):
            assert (await client.call_tool("echo", {"text": "x", **chosen})).structured_content["project"] == "alpha"
        errors = []
        for chosen in ("beta", beta.id, "gamma", "", "ALPHA", "../alpha"):
            result = await client.call_tool("list_git_workspaces", {"project": chosen})
            assert result.is_error, chosen
            errors.append(json.dumps(result.structured_content).replace(json.dumps(chosen)[1:-1], "_"))
        assert len(set(errors[:3])) == 1
        assert "UNKNOWN_PROJECT" in errors[0]
        main = inventory.require_place(beta, "main").workspace
        result = await client.call_tool("echo", {"text": "x", "workspace": main.id})
        assert result.structured_content["error"]["code"] == "UNKNOWN_WORKSPACE"


@pytest.mark.anyio
async def test_with_more_than_one_project_a_call_names_its_own(site, era):
    async with site.connect(era, site.make_token()) as client:
        result = await client.call_tool("list_git_workspaces", {})
        assert result.structured_content["error"]["reason"] == "missing_field"
        assert "project" in result.structured_content["error"]["message"]


@pytest.mark.anyio
async def test_a_read_only_token_is_refused_what_writes(site, era):
    async with site.connect(era, site.make_token(read_only=True), "/p/alpha/mcp") as client:
        assert all(t.annotations.read_only_hint for t in (await client.list_tools()).tools)
        for tool, arguments in (("create_workspace", {"branch": "x"}), ("run_command", {"command": "touch x"})):
            result = await client.call_tool(tool, arguments)
            assert result.structured_content["error"]["code"] == "FORBIDDEN", tool
        assert not (await client.call_tool("list_git_workspaces", {})).is_error


@pytest.mark.anyio
async def test_a_process_of_another_project_is_as_unknown_as_one_that_is_not(site, era):
    inventory = site.app.inventory
    one = site.make_token(account=False, projects=[inventory.require_project("alpha").id])
    other = site.make_token(account=False, projects=[inventory.require_project("beta").id])
    async with site.connect(era, one, "/p/alpha/mcp") as alpha, site.connect(era, other, "/p/beta/mcp") as beta:
        started = await alpha.call_tool("start_command", {"command": "echo mine; exec sleep 60"})
        process = started.structured_content["processId"]
        answers = []
        for identity in (process, process[:-1] + ("0" if process[-1] != "0" else "1")):
            for tool, more in (("get_command_output", {}), ("send_command_input", {"data": "x"}), ("kill_command", {})):
                result = await beta.call_tool(tool, {"processId": identity, **more})
                assert result.is_error
                answers.append((tool, json.dumps(result.structured_content).replace(identity, "_")))
        assert len(set(answers)) == 3, "the two ids are told apart"
        read = await alpha.call_tool("get_command_output", {"processId": process})
        assert read.structured_content["running"] is True
        await alpha.call_tool("kill_command", {"processId": process})


@pytest.mark.anyio
async def test_conversations_do_not_move_each_other(site, era):
    secret = site.make_token()

    async def talk(path, chosen, expected):
        async with site.connect(era, secret, path) as client:
            for number in range(15):
                result = await client.call_tool("echo", {"text": str(number), **chosen})
                content = result.structured_content
                assert (content["project"], content["text"]) == (expected, str(number))

    async with anyio.create_task_group() as talks:
        for name in ("alpha", "beta"):
            talks.start_soon(talk, "/mcp", {"project": name}, name)
            talks.start_soon(talk, f"/p/{name}/mcp", {}, name)


# What the protocol carries


@pytest.mark.anyio
async def test_progress_and_a_result_larger_than_an_event_may_be(site, era):
    seen = []

    async def keep(_number, _total, line):
        seen.append(line)

    async with site.connect(era, site.make_token()) as client:
        await client.call_tool("count", {"lines": 1000}, progress_callback=keep)
        assert seen[-1] == "the last line"
        for character in "x\n漢":
            size = 150_000 if character == "漢" else 450_000
            result = await client.call_tool("fill", {"size": size, "character": character})
            assert not result.is_error
            assert len(result.structured_content["text"]) == size
            whole = result.content[0].text.startswith('{"text"')
            assert whole or "structuredContent" in result.content[0].text
        assert not (await client.call_tool("fill", {"size": 1000})).is_error


@pytest.mark.anyio
async def test_the_client_is_told_that_the_tools_changed(site, era):
    heard = anyio.Event()

    async def hear(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async with site.connect(era, site.make_token(), message_handler=hear) as client:
        assert client.server_capabilities.tools.list_changed is True
        with anyio.fail_after(10):
            if era == "legacy":
                while not heard.is_set():  # the standing stream may still be on its way
                    await client.call_tool("change", {})
                    await anyio.sleep(0.1)
            else:
                async with client.listen(tools_list_changed=True) as changes:
                    await client.call_tool("change", {})
                    async for change in changes:
                        assert type(change).__name__ == "ToolsListChanged"
                        break


@pytest.mark.anyio
async def test_a_cancelled_call_ends(site, era, tmp_path):
    marker = tmp_path / "marker"
    async with site.connect(era, site.make_token()) as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "sleep", {"seconds": 60, "marker": str(marker)})
            await wait_until(lambda: marker.exists() and marker.read_text() == "started")
            calls.cancel_scope.cancel()
        await wait_until(lambda: marker.read_text() == "cancelled", 2.0)
        assert not (await client.call_tool("list_projects", {})).is_error


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_connection_that_drops_ends_its_call(site, era, tmp_path):
    secret, marker = site.make_token(), tmp_path / "marker"
    session = open_session(site, "/mcp", secret) if era == "legacy" else {}
    body, headers = call("sleep", {"seconds": 60, "marker": str(marker)}, era=era)
    everything = {**ACCEPTS, **site.headers(secret), **session, **headers}
    with suppress(httpx2.TimeoutException):
        httpx2.post(site.url + "/mcp", json=body, headers=everything, timeout=httpx2.Timeout(10, read=1.5))
    deadline = time.monotonic() + 2
    while marker.read_text() != "cancelled" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marker.read_text() == "cancelled"


# What ends when


def test_a_session_that_its_client_ends_takes_its_processes_along(site):
    secret = site.make_token()
    session = open_session(site, "/p/alpha/mcp", secret)
    body, _ = call("start_command", {"command": "exec sleep 60"})
    started = read_answer(post(site, "/p/alpha/mcp", body, secret, **session))["result"]["structuredContent"]
    everything = {**ACCEPTS, **site.headers(secret), **session}
    assert httpx2.delete(site.url + "/p/alpha/mcp", headers=everything, timeout=10).status_code == 200
    wait_for_end(started["pid"])
    deadline = time.monotonic() + 2
    while f"http-{session['Mcp-Session-Id']}" not in site.closed_sessions():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert post(site, "/p/alpha/mcp", body, secret, **session).status_code == 404


def wait_for_end(pid, seconds=3.0):
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        assert time.monotonic() < deadline, "a process has survived"
        time.sleep(0.02)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_request_whose_token_is_revoked_is_answered_as_one_without(site, tmp_path):
    marker = tmp_path / "marker"
    secret = site.make_token()
    token = site.book.list()[-1]

    def revoke_once_it_runs():
        while not marker.exists():
            time.sleep(0.01)
        site.book.revoke(token.id)

    revoking = threading.Thread(target=revoke_once_it_runs)
    revoking.start()
    body, headers = call("sleep", {"seconds": 60, "marker": str(marker)}, era="2026-07-28")
    answer = post(site, "/mcp", body, secret, **headers)
    revoking.join()
    assert answer.status_code == 401
    assert "not valid any more" in answer.json()["error"]["message"]


@pytest.mark.anyio
async def test_revoking_a_token_ends_what_is_open_with_it(site, era, tmp_path):
    marker = tmp_path / "marker"
    secret = site.make_token()
    token = site.book.list()[-1]
    ended = anyio.Event()

    async def call_until_cut(client):
        with suppress(MCPError, anyio.ClosedResourceError):
            await client.call_tool("sleep", {"seconds": 60, "marker": str(marker)})
        ended.set()

    with anyio.move_on_after(20):
        try:
            async with site.connect(era, secret, "/p/alpha/mcp") as client, anyio.create_task_group() as calls:
                pid = (await client.call_tool("start_command", {"command": "exec sleep 60"})).structured_content["pid"]
                calls.start_soon(call_until_cut, client)
                await wait_until(lambda: marker.exists() and marker.read_text() == "started")
                site.book.revoke(token.id)
                await wait_until(lambda: marker.read_text() == "cancelled", 2.0)
                await wait_until(lambda: not is_alive(pid), 3.0)
                with pytest.raises(Exception):  # noqa: B017, PT011 - each transport has its own
                    await client.call_tool("list_projects", {})
                calls.cancel_scope.cancel()
        except* Exception:  # noqa: BLE001 - the client's own way of ending a session that is gone
            pass
    assert marker.read_text() == "cancelled"
    assert not is_alive(pid)
    assert post(site, "/p/alpha/mcp", HANDSHAKE, secret).status_code == 401


def test_a_signal_has_calls_answered_processes_ended_and_the_server_gone_in_time(start_site, project, tmp_path):
    with start_site() as site:
        secret, marker = site.make_token(), tmp_path / "marker"
        session = open_session(site, "/mcp", secret)
        pids = []
        for era in ("legacy", "2026-07-28"):
            body, headers = call("start_command", {"command": "exec sleep 60"}, era=era)
            answer = read_answer(post(site, "/mcp", body, secret, **(headers or session)))
            pids.append(answer["result"]["structuredContent"]["pid"])
        everything = {**ACCEPTS, **site.headers(secret), **session}
        with (
            httpx2.Client(timeout=20) as client,
            client.stream("GET", site.url + "/mcp", headers=everything) as standing,
        ):
            body, _ = call("sleep", {"seconds": 60, "marker": str(marker)})
            with client.stream("POST", site.url + "/mcp", json=body, headers=everything) as response:
                while not marker.exists():
                    time.sleep(0.01)
                asked = time.monotonic()
                site.process.send_signal(signal.SIGTERM)
                response.read()
                answer = read_answer(response)
            assert answer["result"]["structuredContent"]["error"]["code"] == "CANCELLED"
            assert standing.status_code == 200
            assert site.process.wait(6) == 0
        assert time.monotonic() - asked < 5
        assert not any(is_alive(pid) for pid in pids)
        events = [event["event"] for event in site.events()]
        assert events == ["session_opened", "stopping", "session_closed", "stopped"]
        assert len(site.closed_sessions()) == 2


def test_many_sessions_with_stubborn_processes_do_not_make_the_end_longer(start_site, project):
    with start_site() as site:
        secret, pids = site.make_token(), []
        command = "trap '' TERM; while :; do sleep 1; done"
        for _ in range(4):
            session = open_session(site, "/mcp", secret)
            body, _ = call("start_command", {"command": command})
            pids.append(read_answer(post(site, "/mcp", body, secret, **session))["result"]["structuredContent"]["pid"])
        asked = time.monotonic()
        site.process.send_signal(signal.SIGTERM)
        assert site.process.wait(8) == 0
        assert time.monotonic() - asked < 5
        assert not any(is_alive(pid) for pid in pids)
        assert len(site.closed_sessions()) == len(set(site.closed_sessions())) == 4


def test_too_many_failures_are_put_off_and_a_valid_token_never_is(start_site):
    with start_site() as site:
        secret = site.make_token()
        answers = [post(site, "/mcp", HANDSHAKE, "exo_" + "A" * 43) for _ in range(22)]
        assert [a.status_code for a in answers] == [401] * 20 + [429] * 2
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert post(site, "/mcp", HANDSHAKE, secret).status_code == 200


def test_a_running_server_is_listed_with_its_url(site):
    (server,) = list_servers(site.app.places)
    assert (server.face, server.url, server.pid) == ("http", site.url, site.process.pid)


def test_a_port_that_is_taken_is_said(app):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ToolFailed) as caught:
        serve_http(app, TokenBook(app.places), HttpOptions(port=taken.getsockname()[1]))
    assert caught.value.reason == "port_taken"


def test_more_sessions_than_may_be_are_refused_until_one_ends(start_site):
    with start_site() as site:
        secret, answers = site.make_token(), []
        with httpx2.Client(headers={**ACCEPTS, **site.headers(secret)}, timeout=30) as client:
            while len(answers) < 300 and (not answers or answers[-1].status_code == 200):
                answers.append(client.post(site.url + "/mcp", json=HANDSHAKE))
            assert (len(answers), answers[-1].status_code) == (257, 503)
            body, headers = call("list_projects", {}, era="2026-07-28")
            assert client.post(site.url + "/mcp", json=body, headers=headers).status_code == 200
            first = {"Mcp-Session-Id": answers[0].headers["mcp-session-id"]}
            assert client.delete(site.url + "/mcp", headers=first).status_code == 200
            assert client.post(site.url + "/mcp", json=HANDSHAKE).status_code == 200


def test_more_connections_than_may_be_are_refused_and_take_nobody_away(start_site):
    with start_site() as site:
        secret = site.make_token()
        host, port = site.url.removeprefix("http://").split(":")
        body, headers = call("list_projects", {}, era="2026-07-28")
        with (
            httpx2.Client(headers={**ACCEPTS, **site.headers(secret), **headers}, timeout=30) as early,
            ExitStack() as idle,
        ):
            assert early.post(site.url + "/mcp", json=body).status_code == 200
            for _ in range(300):
                idle.enter_context(socket.create_connection((host, int(port))))
            assert post(site, "/mcp", body, secret, **headers).status_code == 200
            for _ in range(220):
                idle.enter_context(socket.create_connection((host, int(port))))
            assert post(site, "/mcp", body, secret, **headers).status_code == 503
        assert post(site, "/mcp", body, secret, **headers).status_code == 200
