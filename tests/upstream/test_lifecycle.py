"""Servers that misbehave: at the start, in between, at the end. Nothing waits for them, nothing of them is left."""

import os
import threading
import time
from dataclasses import replace

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.upstream.calls import UpstreamCall
from exeora_ws.upstream.upstreams import Timing

from support.upstream_world import World, call, is_running, program, text_of, until


def pids_of(world: World, *, lines: int = 1) -> list[int]:
    file = world.folder / "pids"
    until(lambda: file.exists() and len(file.read_text().splitlines()) >= lines)
    return [int(pid) for line in file.read_text().splitlines() for pid in line.split()]


def stubborn(world: World, *more: str) -> dict:
    return program("stubborn", str(world.folder / "pids"), *more)


def test_junk_and_latin_bytes_do_not_end_a_session(world: World):
    upstreams, project = world.serve({"s": program("junk")})
    assert len(upstreams.tools(project.id)) == 7
    for _ in range(3):
        assert text_of(call(upstreams, project, "mcp__s__fine")) == "fine"
    assert text_of(call(upstreams, project, "mcp__s__latin")) == "caf\ufffd"
    assert text_of(call(upstreams, project, "mcp__s__half")) == "a\ufffdz \U0001f600"


@pytest.mark.parametrize("tool", ["nan", "huge", "deep", "list"])
def test_an_answer_that_is_none_fails_at_once_and_the_session_lives(world: World, tool: str):
    upstreams, project = world.serve({"s": program("junk")})
    started = time.monotonic()
    with pytest.raises(ToolFailed) as caught:
        call(upstreams, project, f"mcp__s__{tool}")
    assert time.monotonic() - started < 5
    assert caught.value.reason == "upstream_protocol"
    assert text_of(call(upstreams, project, "mcp__s__fine")) == "fine"


def test_a_server_that_hangs_holds_up_nobody(world: World):
    world.surroundings = replace(world.surroundings, start_seconds=1.0)
    world.write({"hangs": program("hangs"), "s": program("plain")})
    upstreams, project = world.open(), world.project()
    started = time.monotonic()
    upstreams.start(project)
    upstreams.tools(project.id)
    assert time.monotonic() - started < 0.5
    until(lambda: upstreams.find(project.id, "mcp__s__where"))
    assert {s["name"]: s["state"] for s in upstreams.status(project.id)} == {"hangs": "starting", "s": "ready"}
    assert upstreams.wait_until_settled(project.id, 10)
    failure = next(s for s in upstreams.status(project.id) if s["name"] == "hangs")["failure"]
    assert failure["data"] == {"server": "hangs", "phase": "initialize", "stderr": "still warming up"}
    assert failure["message"] == "upstream server 'hangs': initialize: not through within 1 s"


def test_a_failed_start_is_reported_once_and_tried_again(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("exeora_ws.upstream.offer.RETRY_SECONDS", (0.05, 0.05))
    switch = world.folder / "switch"
    upstreams, project = world.serve({"s": program("fails", str(switch)), "t": program("plain")})
    status = upstreams.status(project.id)[0]
    assert status["state"] == "failed"
    assert status["failure"]["data"] == {
        "server": "s",
        "phase": "initialize",
        "exitCode": 3,
        "stderr": "cannot find the widget",
    }
    standing = upstreams._offers[project.id]._standings["s"]
    until(lambda: standing.failures >= 3)
    assert world.reports == ["upstream server 's': initialize: it ended (exit code 3): cannot find the widget"]
    switch.touch()
    until(lambda: upstreams.find(project.id, "mcp__s__works"))
    assert upstreams.status(project.id)[0]["state"] == "ready"


def test_a_failed_server_is_tried_at_once_on_demand(world: World):
    switch = world.folder / "switch"
    upstreams, project = world.serve({"s": program("fails", str(switch))})
    switch.touch()
    upstreams.retry(project.id, "s")
    until(lambda: upstreams.find(project.id, "mcp__s__works"), 1.5)


def test_a_server_that_fails_later_is_reported_again(world: World):
    switch = world.folder / "switch"
    switch.touch()
    upstreams, project = world.serve({"s": program("fails", str(switch))})
    assert world.reports == []
    switch.unlink()
    upstreams._pool.close_directory(project.root)
    for _ in range(2):
        with pytest.raises(ToolFailed):
            call(upstreams, project, "mcp__s__works")
    assert len(world.reports) == 1
    assert upstreams.status(project.id)[0]["state"] == "failed"
    assert upstreams.find(project.id, "mcp__s__works") is not None
    switch.touch()
    assert text_of(call(upstreams, project, "mcp__s__works")) == "yes"
    assert upstreams.status(project.id)[0]["state"] == "ready"


def test_a_missing_program_is_named(world: World):
    upstreams, project = world.serve({"s": {"command": "no-such-launcher"}})
    failure = upstreams.status(project.id)[0]["failure"]
    assert failure["message"] == "upstream server 's': launch: there is no program 'no-such-launcher'"
    assert failure["reason"] == "upstream_failed"


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26", "2024-11-05"])
def test_older_protocol_versions_and_a_servers_own_requests(world: World, version: str):
    upstreams, project = world.serve({"s": program("old", version)})
    assert upstreams.find(project.id, "mcp__s__x") is not None


def test_an_unknown_protocol_version_is_refused(world: World):
    upstreams, project = world.serve({"s": program("old", "1999-01-01")})
    assert "protocol version '1999-01-01'" in upstreams.status(project.id)[0]["failure"]["message"]


def test_closing_ends_whole_trees_in_bounded_time(world: World):
    upstreams, _project = world.serve({"a": stubborn(world), "b": stubborn(world)})
    pids = pids_of(world, lines=2)
    assert len(pids) == 8
    assert all(is_running(pid) for pid in pids)
    started = time.monotonic()
    upstreams.close()
    assert time.monotonic() - started < 6
    assert not any(is_running(pid) for pid in pids)


def test_the_children_of_a_polite_server_go_too(world: World):
    upstreams, _project = world.serve({"s": stubborn(world, "polite")})
    pids = pids_of(world)
    upstreams.close()
    assert not any(is_running(pid) for pid in pids)


def test_what_a_dying_server_started_goes_with_it(world: World):
    upstreams, project = world.serve({"s": stubborn(world, "polite")})
    pids = pids_of(world)
    with pytest.raises(ToolFailed) as caught:
        call(upstreams, project, "mcp__s__die")
    assert caught.value.data["exitCode"] == 9
    until(lambda: not any(is_running(pid) for pid in pids))


def test_closing_during_a_start_leaves_nothing(world: World):
    world.write({f"s{n}": program("hangs") for n in range(4)})
    upstreams, project = world.open(), world.project()
    upstreams.start(project)
    until(lambda: len(upstreams._pool._slots) == 4)
    children = [i._connection for i in upstreams._pool.find_running()]
    started = time.monotonic()
    upstreams.close()
    assert time.monotonic() - started < 6
    assert not any(c.running for c in children if c is not None)
    assert world.reports == []


def test_an_idle_server_is_ended_and_started_again_on_demand(world: World):
    upstreams, project = world.serve({"s": program("plain")}, timing=Timing(watch=0.05, quiet=0.02, idle=0.3))
    pid = int(text_of(call(upstreams, project, "mcp__s__pid")))
    until(lambda: not is_running(pid))
    assert upstreams.find(project.id, "mcp__s__pid") is not None
    assert int(text_of(call(upstreams, project, "mcp__s__pid"))) != pid


def test_a_server_in_a_call_is_not_idle(world: World):
    upstreams, project = world.serve({"s": program("plain")}, timing=Timing(watch=0.02, quiet=0.02, idle=0.1))
    with pytest.raises(Exception, match="no answer within"):
        call(upstreams, project, "mcp__s__slow", seconds=1.0)


def test_removing_a_workspace_ends_its_servers_and_the_calls_in_them(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    folder = world.folder / "w"
    folder.mkdir()
    pid = int(text_of(call(upstreams, project, "mcp__s__pid", directory=folder)))
    failed: list[Exception] = []
    begun = threading.Event()

    def hang() -> None:
        try:
            call(upstreams, project, "mcp__s__slow", directory=folder, on_progress=lambda _: begun.set())
        except ToolFailed as error:
            failed.append(error)

    thread = threading.Thread(target=hang)
    thread.start()
    assert begun.wait(10)
    assert upstreams.stop_directory(folder) == ["s"]
    thread.join(5)
    assert not is_running(pid)
    assert failed[0].reason == "upstream_lost"
    assert text_of(call(upstreams, project, "mcp__s__where")) == str(project.root)


def test_a_workspace_deleted_by_hand_loses_its_servers(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    folder = world.folder / "w"
    folder.mkdir()
    pid = int(text_of(call(upstreams, project, "mcp__s__pid", directory=folder)))
    os.rmdir(folder)
    until(lambda: not is_running(pid))


def test_closed_upstreams_take_no_calls(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    tool = upstreams.find(project.id, "mcp__s__pid")
    upstreams.close()
    with pytest.raises(ToolFailed) as caught:
        upstreams.call(project.id, UpstreamCall(tool, project.root, {}))
    assert caught.value.reason == "upstream_stopped"


def test_the_end_waits_for_what_somebody_else_is_just_ending(world: World):
    upstreams, project = world.serve({"s": stubborn(world)})
    pids = pids_of(world)
    ending = threading.Thread(target=upstreams.stop_directory, args=(project.root,))
    ending.start()
    until(lambda: not upstreams._pool._slots)
    assert any(is_running(pid) for pid in pids), "it takes its time"
    upstreams.close()
    assert not any(is_running(pid) for pid in pids)
    ending.join()


def test_whoever_closes_second_waits_until_it_has_ended(world: World):
    upstreams, _ = world.serve({"s": stubborn(world)})
    pids = pids_of(world)
    (instance,) = upstreams._pool.find_running()
    closers = [threading.Thread(target=instance.close) for _ in range(3)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join()
        assert not any(is_running(pid) for pid in pids)
