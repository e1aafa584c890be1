"""Upstreams behind Streamable HTTP, on loopback."""

import threading
import time

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ToolFailed

from support.remote_upstream import Remote
from support.upstream_world import Project, World, call, text_of, until


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_PROXY", "*")


def serve(world: World, remote: Remote, **more) -> tuple:
    return world.serve({"r": {"url": remote.url, **more}})


@pytest.mark.parametrize("mode", ["json", "events", "moved"])
def test_a_result_passes_as_it_came(world: World, remote: Remote, mode: str):
    remote.mode = mode
    upstreams, project = serve(world, remote)
    result = call(upstreams, project, "mcp__r__echo", {"a": None})
    content = [{"type": "text", "text": '{"a": null}', "zzz": 1}]
    assert result == {"content": content, "structuredContent": {"n": None}, "x": 1}


def test_headers_session_and_version_are_sent(world: World, remote: Remote, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOKEN", "t0ken-value")
    headers = {"Authorization": "Bearer ${TOKEN}", "Accept": "text/html", "X-Own": "1"}
    upstreams, project = serve(world, remote, headers=headers)
    call(upstreams, project, "mcp__r__echo")
    methods = [message["method"] for _, _, message in remote.requests if message["method"] != "GET"]
    assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    first = {k.lower(): v for k, v in remote.requests[0][1].items()}
    last = {k.lower(): v for k, v in remote.requests[-1][1].items()}
    assert first["authorization"] == last["authorization"] == "Bearer t0ken-value"
    assert first["accept"] == "application/json, text/event-stream"
    assert first["x-own"] == "1"
    assert "mcp-session-id" not in first
    assert last["mcp-session-id"] in remote.sessions
    assert last["mcp-protocol-version"] == "2025-11-25"


def test_progress_over_events(world: World, remote: Remote):
    remote.mode = "events"
    upstreams, project = serve(world, remote)
    seen: list[dict] = []
    call(upstreams, project, "mcp__r__echo", on_progress=seen.append)
    assert seen == [{"progress": 1, "total": 2, "message": "half"}]


def test_an_event_of_three_megabytes_is_taken(world: World, remote: Remote):
    remote.mode = "large"
    upstreams, project = serve(world, remote)
    assert len(text_of(call(upstreams, project, "mcp__r__echo"))) == 3_000_000


def test_a_stream_that_breaks_off_is_taken_up_again(world: World, remote: Remote):
    remote.mode = "resume"
    upstreams, project = serve(world, remote)
    assert text_of(call(upstreams, project, "mcp__r__echo", {"a": 1})) == '{"a": 1}'
    assert remote.calls == 1


def test_a_cancelled_call_is_withdrawn_and_its_socket_closed(world: World, remote: Remote):
    remote.mode = "slow"
    upstreams, project = serve(world, remote)
    cancellation = Cancellation()
    begun = threading.Event()
    threading.Thread(target=lambda: (begun.wait(10), cancellation.cancel())).start()
    with pytest.raises(Cancelled):
        call(upstreams, project, "mcp__r__echo", cancellation=cancellation, on_progress=lambda _: begun.set())
    assert remote.withdrawn.wait(5)
    assert remote.dropped.wait(15)
    called = next(m for _, _, m in remote.requests if m["method"] == "tools/call")
    withdrawn = next(m for _, _, m in remote.requests if m["method"] == "notifications/cancelled")
    assert withdrawn["params"]["requestId"] == called["id"]


def test_a_lost_session_is_begun_again_and_the_call_made_once(world: World, remote: Remote):
    upstreams, project = serve(world, remote)
    remote.sessions.clear()
    assert text_of(call(upstreams, project, "mcp__r__echo", {"a": 1})) == '{"a": 1}'
    assert remote.calls == 1


@pytest.mark.parametrize(
    ("mode", "reason", "words"),
    [
        ("error", "upstream_protocol", "HTTP 500 Internal Server Error: it broke"),
        ("html", "upstream_protocol", "neither JSON nor events"),
        ("rpc-error", "upstream_error", "refused"),
        ("broken", "upstream_lost", "ended before the answer"),
    ],
)
def test_what_goes_wrong_in_a_call_is_said(world: World, remote: Remote, mode: str, reason: str, words: str):
    upstreams, project = serve(world, remote)
    remote.mode = mode
    with pytest.raises(ToolFailed) as caught:
        call(upstreams, project, "mcp__r__echo")
    assert (caught.value.reason, words in caught.value.message) == (reason, True), caught.value.message
    remote.mode = "json"
    assert call(upstreams, project, "mcp__r__echo")


def test_a_refused_token_appears_nowhere(world: World, remote: Remote, monkeypatch, caplog):
    monkeypatch.setenv("TOKEN", "t0ken-value/x")
    caplog.set_level("DEBUG")
    remote.mode = "unauthorized"
    world.write(
        {"r": {"url": remote.url + "?key=${TOKEN}&other=literal-1", "headers": {"Authorization": "Bearer ${TOKEN}"}}}
    )
    upstreams, project = world.open(), world.project()
    upstreams.start(project)
    assert upstreams.wait_until_settled(project.id, 10)
    failure = upstreams.status(project.id)[0]["failure"]
    assert "HTTP 401 Unauthorized: bad token" in failure["message"]
    told = repr(upstreams.status(project.id)) + repr(world.reports) + caplog.text
    assert "t0ken-value" not in told
    assert "literal-1" not in told
    assert "[redacted]" in told
    assert "t0ken" in str(remote.requests)


def test_headers_do_not_follow_a_redirect_to_another_host(world: World, remote: Remote):
    remote.mode = "elsewhere"
    upstreams, project = serve(world, remote)
    assert "redirects to another host" in upstreams.status(project.id)[0]["failure"]["message"]


def test_a_server_that_is_not_there(world: World, remote: Remote):
    remote.close()
    upstreams, project = serve(world, remote)
    status = upstreams.status(project.id)[0]
    assert status["state"] == "failed"
    assert "cannot be reached" in status["failure"]["message"]
    assert status["kind"] == "http"
    assert status["target"] == remote.url.removesuffix("/mcp")


def test_an_announced_change_is_read(world: World, remote: Remote):
    upstreams, project = serve(world, remote)
    until(lambda: remote.listeners)
    remote.tools = [*remote.tools, {"name": "late", "inputSchema": {"type": "object"}}]
    remote.announce()
    until(lambda: upstreams.find(project.id, "mcp__r__late"))


def test_a_server_without_a_stream_of_its_own(world: World, remote: Remote):
    remote.mode = "no-stream"
    upstreams, project = serve(world, remote)
    remote.mode = "json"
    assert call(upstreams, project, "mcp__r__echo")


def test_one_session_serves_every_directory_and_project(world: World, remote: Remote):
    upstreams, project = serve(world, remote)
    other: Project = world.project("other")
    upstreams.start(other)
    assert upstreams.wait_until_settled(other.id, 10)
    call(upstreams, other, "mcp__r__echo")
    call(upstreams, project, "mcp__r__echo", directory=other.root)
    assert len(remote.sessions) == 1


def test_closing_ends_the_session(world: World, remote: Remote):
    upstreams, _project = serve(world, remote)
    started = time.monotonic()
    upstreams.close()
    assert time.monotonic() - started < 3
    assert remote.sessions == set()
    assert not [t for t in threading.enumerate() if t.name.startswith("upstream")]
