"""The parts that decide without a wire: hosts, failures, pages, sizes, log, running servers."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial

import anyio
import anyio.lowlevel
import pytest
import uvicorn
from exeora_ws.cancellation import Step
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.limits import LIST_PAGE_BYTES, RESULT_BYTES
from exeora_ws.serve import jsontext, listening
from exeora_ws.serve.crew import Crew
from exeora_ws.serve.failures import FailureLimit
from exeora_ws.serve.hosts import LOOPBACK, choose_hosts, is_host_allowed, is_origin_allowed
from exeora_ws.serve.lifetime import end_before_leaving, look_after
from exeora_ws.serve.listing import describe_output, page_of
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.peer import Peer
from exeora_ws.serve.pipes import LineReader, LineWriter
from exeora_ws.serve.progress import ProgressLine
from exeora_ws.serve.readers import Readers
from exeora_ws.serve.reception import Arrival
from exeora_ws.serve.results import HTTP_WIRE_BYTES, show_error, show_outcome
from exeora_ws.serve.running import announce_server, list_servers
from exeora_ws.tools.call import Outcome
from exeora_ws.tools.proxied import VerbatimResult
from hypothesis import given
from hypothesis import strategies as st

from support.mcp_server import Filled


@pytest.mark.parametrize("header", ["127.0.0.1", "127.0.0.1:7373", "localhost:1", "LocalHost", "[::1]:80", "[::1]"])
def test_our_own_names_are_allowed(header):
    assert is_host_allowed(header, LOOPBACK)
    assert is_origin_allowed(f"http://{header}", LOOPBACK)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "evil",
        "127.0.0.1.evil",
        "evil@localhost",
        "localhost@evil",
        "localhost/x",
        "localhost:x",
        "localhost:99999999",
        "localhost?x",
        "[::1",
        "0.0.0.0",
        " localhost.",
        "localhost.",
        "127.1",
    ],
)
def test_other_names_are_not(header):
    assert not is_host_allowed(header, LOOPBACK)
    assert not is_origin_allowed(f"http://{header}", LOOPBACK)


@given(st.text())
def test_no_text_breaks_the_judging_of_a_host(text):
    assert is_host_allowed(text, frozenset(("example.com",))) in (True, False)
    assert is_origin_allowed(text, LOOPBACK) in (True, False)


def test_an_origin_may_be_missing_and_a_host_may_not():
    assert is_origin_allowed(None, LOOPBACK)
    assert not is_host_allowed(None, LOOPBACK)
    assert not is_origin_allowed("null", LOOPBACK)
    assert not is_origin_allowed("ftp://localhost", LOOPBACK)


@pytest.mark.parametrize(
    ("host", "options", "reason"),
    [
        ("0.0.0.0", {}, "host_not_loopback"),
        ("192.168.1.1", {}, "host_not_loopback"),
        ("example.com", {}, "host_not_loopback"),
        ("::", {}, "host_not_loopback"),
        ("0.0.0.0", {"behind_proxy": True}, "missing_field"),
        ("127.0.0.1", {"allowed": ["example.com"]}, "conflicting_fields"),
    ],
)
def test_only_loopback_is_listened_on_without_a_proxy(host, options, reason):
    with pytest.raises(InvalidArguments) as caught:
        choose_hosts(host, **{"behind_proxy": False, "allowed": (), **options})
    assert caught.value.reason == reason


def test_behind_a_proxy_only_the_names_given_are_ours():
    allowed = choose_hosts("0.0.0.0", behind_proxy=True, allowed=["Agents.Example.com"])
    assert is_host_allowed("agents.example.com", allowed)
    assert not is_host_allowed("localhost", allowed)
    assert choose_hosts("127.0.0.2", behind_proxy=False, allowed=()) == LOOPBACK | {"127.0.0.2"}


def test_failures_are_counted_for_each_peer_and_forgotten_in_time():
    now = [0.0]
    limit = FailureLimit(3, 60, lambda: now[0])
    assert [limit.note_failure("a") for _ in range(3)] == [None] * 3
    now[0] = 20
    assert limit.note_failure("a") == 40
    assert limit.note_failure("b") is None
    now[0] = 61
    assert limit.note_failure("a") is None


def test_a_crowd_of_peers_does_not_fill_the_memory():
    limit = FailureLimit()
    for number in range(5_000):
        limit.note_failure(str(number))
    assert len(limit._failures) == 1_000


@given(st.lists(st.integers(0, LIST_PAGE_BYTES + 10), max_size=12))
def test_pages_hold_every_entry_once_and_are_not_too_large(sizes):
    entries = [{"n": n, "x": "y" * size} for n, size in enumerate(sizes)]
    seen, cursor, pages = [], None, 0
    while True:
        page, cursor = page_of(entries, cursor)
        assert len(page) == 1 or sum(len(json.dumps(e)) for e in page) <= LIST_PAGE_BYTES * 1.01
        seen += page
        pages += 1
        if cursor is None:
            break
        assert page
    assert seen == entries
    assert pages <= max(1, len(entries))


@given(st.text())
def test_no_cursor_but_ours_is_taken(cursor):
    with pytest.raises(InvalidArguments) as caught:
        page_of([{"n": 1}], cursor)
    assert caught.value.reason == "invalid_cursor"


def test_the_schema_of_a_result_without_required_fields_still_tells_a_failure_apart():
    schema = describe_output({"type": "object", "properties": {}})
    assert schema["anyOf"] == [{"required": []}, {"required": ["error"]}]


@pytest.mark.parametrize("character", ["x", "\n", '"', "漢", "é", "\x00", "😀"])
@pytest.mark.parametrize("size", [1, 100_000, 500_000, RESULT_BYTES])
def test_no_answer_over_http_is_larger_than_a_client_takes_and_every_one_says_so(character, size):
    outcome = Outcome("fill", result=Filled(text=character * (size // len(character.encode()))))
    answer = show_outcome(outcome, wire_bytes=HTTP_WIRE_BYTES)
    assert len(json.dumps(answer)) <= HTTP_WIRE_BYTES * 1.01
    if answer["isError"]:
        assert answer["structuredContent"]["error"]["reason"] == "result_too_large"
    else:
        assert answer["structuredContent"] == outcome.to_dict()
        text = answer["content"][0]["text"]
        assert "structuredContent only" in text or json.loads(text) == outcome.to_dict()


def test_another_servers_answer_passes_as_it_came_or_not_at_all():
    raw = {"content": [{"type": "widget", "odd": None}], "structuredContent": [1], "isError": True, "vendor": 1}
    outcome = Outcome("mcp__x", result=VerbatimResult(raw=raw))
    assert show_outcome(outcome, wire_bytes=HTTP_WIRE_BYTES) == raw
    large = Outcome("mcp__x", result=VerbatimResult(raw={"content": [{"type": "text", "text": "x" * HTTP_WIRE_BYTES}]}))
    assert show_outcome(large) == dict(large.result.raw)
    refused = show_outcome(large, wire_bytes=HTTP_WIRE_BYTES)
    assert refused["structuredContent"]["error"]["reason"] == "result_too_large"


def test_an_error_without_extras_is_one_line():
    answer = show_error(ToolFailed("it failed"))
    assert answer["content"] == [{"type": "text", "text": "TOOL_FAILED: it failed"}]
    assert answer["isError"] is True


@pytest.mark.anyio
async def test_progress_from_many_threads_is_a_few_lines_and_ends_with_the_newest():
    sent = []

    async def send(number, _total, line):
        sent.append((number, line))

    line = ProgressLine(send)
    async with anyio.create_task_group() as beside:
        beside.start_soon(line.pump)
        threads = [threading.Thread(target=lambda: [line.say("x" * 10_000) for _ in range(1000)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        await anyio.to_thread.run_sync(lambda: [t.join() for t in threads])
        line.say("the newest")
        await anyio.sleep(0.5)
        beside.cancel_scope.cancel()
    assert sent[-1][1] == "the newest"
    assert all(len(text) <= 500 for _, text in sent)
    assert len(sent) < 50


@pytest.mark.anyio
async def test_steps_of_another_server_are_all_sent_in_order_before_the_answer():
    sent = []

    async def send(*step):
        await anyio.lowlevel.checkpoint()
        sent.append(step)

    line = ProgressLine(send)
    async with anyio.create_task_group() as beside:
        beside.start_soon(line.pump)
        for number in range(3):
            line.say(Step(number, 3, f"s{number}"))
        await anyio.sleep(0.05)
        line.say(Step(3.5))
        line.say("a line of our own")
        await line.flush()
        beside.cancel_scope.cancel()
    assert sent == [(0, 3, "s0"), (1, 3, "s1"), (2, 3, "s2"), (3.5, None, None)]


@pytest.mark.anyio
async def test_a_body_that_does_not_come_is_a_client_that_has_gone(monkeypatch):
    monkeypatch.setattr(listening, "_BODY_SECONDS", 0.05)
    gone = anyio.Event()
    receive = listening.Patience(anyio.sleep_forever, gone)
    with anyio.fail_after(2):
        assert (await receive())["type"] == "http.disconnect"
    assert gone.is_set()


@pytest.mark.anyio
async def test_a_whole_body_may_be_followed_by_any_silence(monkeypatch):
    monkeypatch.setattr(listening, "_BODY_SECONDS", 0.05)
    messages = [{"type": "http.request", "body": b"", "more_body": False}]

    async def give():
        return messages.pop() if messages else await anyio.sleep_forever()

    receive = listening.Patience(give, anyio.Event())
    assert (await receive())["type"] == "http.request"
    with anyio.move_on_after(0.2) as silence:
        await receive()
    assert silence.cancelled_caught


async def hello(_scope, receive, send):
    """A server that answers when it has the whole body."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.mark.anyio
async def test_a_connection_on_which_no_whole_head_comes_is_closed(monkeypatch):
    monkeypatch.setattr(listening, "_HEAD_SECONDS", 0.3)
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    async def is_closed(client):
        with anyio.move_on_after(1.5), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await client.receive()
        return anyio.current_time()

    with listening.listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(
            uvicorn.Config(
                hello, http=listening.HurriedProtocol, lifespan="off", log_config=None, timeout_keep_alive=30
            )
        )
        address = listener.getsockname()
        async with anyio.create_task_group() as beside:
            beside.start_soon(server.serve, [listener])
            for before, sent in ((b"", b""), (b"", b"GET / HT"), (whole, b"GET")):
                async with await anyio.connect_tcp(*address) as client:
                    if before:
                        await client.send(before)
                        assert b"200" in await client.receive()
                    if sent:
                        await client.send(sent)
                    began = anyio.current_time()
                    assert await is_closed(client) - began < 1.2, sent
            async with await anyio.connect_tcp(*address) as client:
                for _ in range(3):  # between two requests it may be silent for longer
                    await client.send(whole)
                    assert b"200" in await client.receive()
                    await anyio.sleep(0.5)
            server.should_exit = True


def test_the_log_is_for_its_owner_alone(app):
    code = (
        "import logging\nfrom exeora_ws.settings import find_places\nfrom exeora_ws.serve.log import keep_log\n"
        "keep_log(find_places()); keep_log(find_places())\n"
        "logging.getLogger('exeora').error('once'); logging.getLogger('x').info('never')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=os.getcwd())
    assert (done.stdout, done.stderr) == (b"", b"")
    assert app.places.log.stat().st_mode & 0o777 == 0o600
    assert app.places.log.read_text().count("once") == 1
    assert "never" not in app.places.log.read_text()
    assert callable(keep_log)


def test_a_server_is_listed_while_it_runs(app):
    assert list_servers(app.places) == []
    with announce_server(app.places, face="http", url="http://127.0.0.1:1"):
        (server,) = list_servers(app.places)
        assert (server.pid, server.face, server.url) == (os.getpid(), "http", "http://127.0.0.1:1")
        assert list_servers(app.places) == [server]
    assert list_servers(app.places) == []


def test_what_is_no_server_is_not_listed(app):
    folder = app.places.runtime / "servers"
    folder.mkdir(parents=True)
    (folder / "1-empty.json").write_text("")
    (folder / "2-dead.json").write_text('{"pid": 1}')
    (folder / "3-nonsense.json").write_text("nonsense")
    assert list_servers(app.places) == []
    assert [p.name for p in folder.iterdir()] == ["1-empty.json"]


def test_a_folder_that_cannot_be_written_does_not_keep_a_server_from_serving(app):
    app.places.runtime.parent.mkdir(parents=True, exist_ok=True)
    app.places.runtime.write_text("in the way")
    with announce_server(app.places, face="stdio"):
        assert list_servers(app.places) == []


def test_tokens_and_status_load_nothing_of_the_library():
    code = (
        "import sys, exeora_ws.serve.running, exeora_ws.serve.tokens, exeora_ws.serve.log, exeora_ws.app\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('mcp', 'mcp_types', 'uvicorn', 'starlette', 'anyio')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert done.stdout.strip() == "[]"


class Ended:
    """An app that notes what is ended."""

    def __init__(self):
        self.sessions, self.closed = [], 0

    def close_session(self, session):
        self.sessions.append(session)
        raise ToolFailed("the database is busy")

    def close(self):
        self.closed += 1


def test_a_bug_in_a_server_leaves_nothing_running():
    async def serve(_signals):
        raise ValueError("a bug")

    app = Ended()
    with pytest.raises(ToolFailed):
        anyio.run(end_before_leaving, serve, app, partial(app.close_session, "session-1"))
    assert (app.sessions, app.closed) == (["session-1"], 1)


def test_what_a_server_does_beside_its_work_may_fail(caplog):
    async def fail():
        raise ToolFailed("the database is busy")

    anyio.run(look_after, fail, "looking")
    assert "looking failed" in caplog.text


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_lines_are_read_in_order_also_when_all_readers_are_busy(tmp_path, kind):
    lines = [b"wait %d" % number for number in range(6)] + [b"go"]
    if kind == "pipe":
        near, far = os.pipe()
        os.write(far, b"\n".join(lines[:3]) + b"\n")
    else:
        (tmp_path / "lines").write_bytes(b"\n".join(lines))
        near, far = os.open(tmp_path / "lines", os.O_RDONLY), -1
    go, ended, seen, done = threading.Event(), threading.Event(), [], []

    def receive(line):
        seen.append(line)
        if line == b"go":
            go.set()
            return None
        return lambda: done.append(go.wait(10))

    arrival = Arrival(LineReader(near), LineWriter(1), Peer())
    Readers(arrival, receive, Crew(8), ended.set, most=2).start()
    if kind == "pipe":
        for line in lines[3:]:
            os.write(far, line + b"\n")
        os.close(far)
    assert ended.wait(10)
    assert seen == lines
    end = time.monotonic() + 10
    while len(done) < 6 and time.monotonic() < end:
        time.sleep(0.01)
    assert done == [True] * 6


@given(st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")), max_size=8), st.booleans())
def test_lines_are_what_stands_between_newlines(lines, ended):
    near, far = os.pipe()
    os.write(far, b"\n".join(lines) + (b"\n" if ended else b""))
    os.close(far)
    reader = LineReader(near)
    got = []
    while (line := reader.read()) is not None:
        got.append(line)
    os.close(near)
    assert got == [line for line in lines if line.strip()]
    assert reader.ended


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_json_is_read_and_written_as_the_standard_library_does(value, escaped):
    assert jsontext.parse(json.dumps(value, ensure_ascii=escaped).encode()) == value
    assert json.loads(jsontext.render(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "nonsense", "[1", "1 2", '{"a":1,"a":2}', "NaN", "-Infinity", "1e999", "-0", "9" * 20),
        '"\\ud800"',
        "[" * 120 + "]" * 120,
    ],
)
def test_what_parsers_read_differently_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - several kinds
        jsontext.parse(text.encode())
