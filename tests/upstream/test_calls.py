"""Calls through real servers: results as they came, errors that say what happened, the right directory."""

import json
import os
import threading
import time
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, Forbidden, InvalidArguments, ToolFailed, ToolTimeout, UnknownTool
from exeora_ws.upstream.calls import MAX_LEVELS, UpstreamCall

from support.upstream_world import World, call, is_running, program, text_of, until


def test_a_result_passes_as_it_came(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    result = call(upstreams, project, "mcp__s__rich")
    assert result == {
        "content": [
            {"type": "text", "text": "t\u2028\x00", "annotations": {"priority": 1}, "zzz": 1},
            {"type": "image", "data": "cG5n", "mimeType": "image/png"},
            {"type": "hologram", "beam": [1, 2.5, None]},
        ],
        "structuredContent": {"a": None, "big": 2**70, "f": 1.0, "e": [], "t": True},
        "vendor": 1,
        "_meta": {"v": 1},
    }
    assert list(result) == ["content", "structuredContent", "vendor", "_meta"]
    assert list(result["structuredContent"]) == ["a", "big", "f", "e", "t"]
    assert isinstance(result["structuredContent"]["f"], float)


def test_a_result_that_is_nested_more_deeply_than_clients_read_is_an_error(world: World):
    upstreams, project = world.serve({"s": program("deep")})
    assert call(upstreams, project, "mcp__s__nest", {"levels": MAX_LEVELS - 4})["content"] == []
    for levels in (MAX_LEVELS, 700):
        with pytest.raises(ToolFailed) as caught:
            call(upstreams, project, "mcp__s__nest", {"levels": levels})
        assert caught.value.reason == "upstream_protocol"


def test_an_error_result_that_breaks_its_own_schema_passes(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    expected = {"content": [], "structuredContent": {"n": "no integer"}, "isError": True}
    assert call(upstreams, project, "mcp__s__wrong") == expected


def test_arguments_arrive_as_sent(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    sent = {"workspace_": "x", "n": None, "deep": [{"é\u2028": 1.5}], "big": 2**64}
    assert json.loads(text_of(call(upstreams, project, "mcp__s__echo", sent))) == sent


def test_arguments_that_json_does_not_have_are_refused(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    with pytest.raises(InvalidArguments):
        call(upstreams, project, "mcp__s__echo", {"x": float("nan")})


def test_a_jsonrpc_error_is_told_with_its_code(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    with pytest.raises(ToolFailed) as caught:
        call(upstreams, project, "mcp__s__refuse")
    assert caught.value.reason == "upstream_error"
    assert "not like this" in caught.value.message
    assert caught.value.data == {
        "server": "s",
        "phase": "tools/call",
        "upstreamCode": -32602,
        "upstreamData": {"field": "a"},
    }


def test_a_server_that_dies_in_a_call_says_how_and_is_started_again(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    first = text_of(call(upstreams, project, "mcp__s__pid"))
    started = time.monotonic()
    with pytest.raises(ToolFailed) as caught:
        call(upstreams, project, "mcp__s__die")
    assert time.monotonic() - started < 5
    assert caught.value.reason == "upstream_lost"
    assert caught.value.data is not None
    assert caught.value.data["exitCode"] == 7
    assert caught.value.data["stderr"] == "last words"
    assert caught.value.data["phase"] == "tools/call"
    assert text_of(call(upstreams, project, "mcp__s__pid")) != first


def test_the_last_answer_of_a_server_that_ends_is_read(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    for _ in range(20):
        assert len(text_of(call(upstreams, project, "mcp__s__bye"))) == 100_000
        # Asked while it is ending, it may or may not have seen the question; that is another case.
        until(lambda: not upstreams._pool.find_running())


def test_progress_comes_in_order_and_before_the_result(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    seen: list[dict] = []
    result = call(upstreams, project, "mcp__s__progress", on_progress=seen.append)
    assert seen == [{"progress": n, "total": 3, "message": f"s{n}"} for n in range(3)]
    assert text_of(result) == "done"


def test_a_progress_token_is_sent_only_when_somebody_listens(world: World, tmp_path: Path):
    log = tmp_path / "log"
    upstreams, project = world.serve({"s": program("plain", str(log))})
    call(upstreams, project, "mcp__s__echo")
    call(upstreams, project, "mcp__s__echo", on_progress=lambda _: None)
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    calls = [m for m in sent if m["method"] == "tools/call"]
    assert "_meta" not in calls[0]["params"]
    assert calls[1]["params"]["_meta"] == {"progressToken": calls[1]["id"]}


def test_a_progress_listener_that_fails_harms_nobody(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    result = call(upstreams, project, "mcp__s__progress", on_progress=lambda _: 1 / 0)
    assert text_of(result) == "done"


def test_a_cancelled_call_is_withdrawn_under_its_own_id(world: World, tmp_path: Path):
    log = tmp_path / "log"
    upstreams, project = world.serve({"s": program("plain", str(log))})
    cancellation = Cancellation()
    started = threading.Event()
    timer = threading.Thread(target=lambda: (started.wait(10), cancellation.cancel()))
    timer.start()
    with pytest.raises(Cancelled):
        call(upstreams, project, "mcp__s__slow", cancellation=cancellation, on_progress=lambda _: started.set())
    timer.join()
    until((project.root / "withdrawn").exists)
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    called = next(m for m in sent if m["method"] == "tools/call")
    until(lambda: (project.root / "withdrawn").read_text() == str(called["id"]))
    assert text_of(call(upstreams, project, "mcp__s__where")) == str(project.root)


def test_a_call_taken_back_before_it_begins_reaches_nobody(world: World, tmp_path: Path):
    log = tmp_path / "log"
    upstreams, project = world.serve({"s": program("plain", str(log))})
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        call(upstreams, project, "mcp__s__echo", cancellation=cancellation)
    assert "tools/call" not in log.read_text()


def test_a_call_without_answer_ends_in_time_and_is_withdrawn(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    with pytest.raises(ToolTimeout) as caught:
        call(upstreams, project, "mcp__s__slow", seconds=0.2)
    assert caught.value.reason == "upstream_timeout"
    until((project.root / "withdrawn").exists)


def test_three_workspaces_at_once_get_three_right_answers(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    folders = [project.root, world.folder / "w1", world.folder / "w2"]
    for folder in folders[1:]:
        folder.mkdir()
    answers: dict[Path, list[str]] = {folder: [] for folder in folders}

    def ask(folder: Path) -> None:
        for _ in range(5):
            answers[folder].append(text_of(call(upstreams, project, "mcp__s__where", directory=folder)))

    threads = [threading.Thread(target=ask, args=(folder,)) for folder in folders for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {folder: [str(folder)] * 10 for folder in folders}


def test_one_instance_serves_all_calls_of_a_directory(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    pids: list[str] = []
    other = world.folder / "w"
    other.mkdir()
    threads = [
        threading.Thread(target=lambda: pids.append(text_of(call(upstreams, project, "mcp__s__pid", directory=other))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 8
    assert len(set(pids)) == 1
    assert pids[0] != text_of(call(upstreams, project, "mcp__s__pid"))


def test_a_folder_that_is_gone_is_named_and_main_is_not_used(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    with pytest.raises(ToolFailed) as caught:
        call(upstreams, project, "mcp__s__where", directory=world.folder / "gone")
    assert caught.value.reason == "upstream_failed"
    assert "folder is gone" in caught.value.message


def test_a_folder_made_anew_gets_a_server_of_its_own(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    folder = world.folder / "w"
    folder.mkdir()
    old = text_of(call(upstreams, project, "mcp__s__pid", directory=folder))
    keep = folder.rename(world.folder / "elsewhere")
    folder.mkdir()
    assert text_of(call(upstreams, project, "mcp__s__pid", directory=folder)) != old
    assert text_of(call(upstreams, project, "mcp__s__where", directory=folder)) == str(folder)
    until(lambda: not is_running(int(old)))
    assert keep.exists()


def test_a_tool_that_stopped_being_read_only_does_not_run_as_one(world: World):
    upstreams, project = world.serve({"s": program("changes")})
    before = upstreams.find(project.id, "mcp__s__change")
    assert before is not None
    assert before.read_only
    call(upstreams, project, "mcp__s__flip")
    with pytest.raises(Forbidden) as caught:
        upstreams.call(project.id, UpstreamCall(before, project.root, {}))
    assert caught.value.reason == "tool_changed"
    until(lambda: not upstreams.find(project.id, "mcp__s__change").read_only)
    now = upstreams.find(project.id, "mcp__s__change")
    asked: list[bool] = []
    upstreams.call(project.id, UpstreamCall(now, project.root, {}, admit=asked.append))
    assert asked == [False]


def test_the_callers_gate_is_asked_last_and_can_refuse(world: World, tmp_path: Path):
    log = tmp_path / "log"
    upstreams, project = world.serve({"s": program("plain", str(log))})

    def refuse(read_only: bool) -> None:
        assert read_only
        raise Forbidden("no")

    with pytest.raises(Forbidden, match="no"):
        call(upstreams, project, "mcp__s__where", admit=refuse)
    assert "tools/call" not in log.read_text()


def test_a_tool_that_is_not_published_any_more_is_unknown(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    tool = upstreams.find(project.id, "mcp__s__echo")
    world.write({})
    until(lambda: not upstreams.tools(project.id))
    with pytest.raises(UnknownTool):
        upstreams.call(project.id, UpstreamCall(tool, project.root, {}))


def test_a_workspaces_own_file_can_switch_a_server_off_and_not_on(world: World):
    upstreams, project = world.serve({"s": program("plain"), "off": program("plain", enabled=False)})
    folder = world.folder / "w"
    folder.mkdir()
    (folder / "exeora.toml").write_text("[mcp.servers.s]\nenabled = false\n[mcp.servers.off]\nenabled = true\n")
    with pytest.raises(Forbidden) as caught:
        call(upstreams, project, "mcp__s__where", directory=folder)
    assert caught.value.reason == "server_disabled"
    assert text_of(call(upstreams, project, "mcp__s__where")) == str(project.root)
    (folder / "exeora.toml").write_text("[mcp.servers.s\n")
    with pytest.raises(Forbidden):
        call(upstreams, project, "mcp__s__where", directory=folder)
    assert upstreams.find(project.id, "mcp__off__where") is None


def test_a_server_that_reads_nothing_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("exeora_ws.upstream.transport_stdio.STUCK_SECONDS", 0.5)
    upstreams, project = world.serve({"s": program("deaf")})
    with pytest.raises(ToolFailed) as caught:
        call(upstreams, project, "mcp__s__x", {"fill": "x" * 1_000_000})
    assert "left its input unread" in caught.value.message


@pytest.mark.parametrize("size", [70_000, 5_000_000])
def test_large_arguments_and_results_go_through(world: World, size: int):
    upstreams, project = world.serve({"s": program("plain")})
    assert json.loads(text_of(call(upstreams, project, "mcp__s__echo", {"x": "é" * size}))) == {"x": "é" * size}


def test_git_routing_variables_do_not_reach_a_server(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("PLAIN", "kept")
    upstreams, project = world.serve({"s": program("leaky")})
    shown = text_of(call(upstreams, project, "mcp__s__show"))
    assert "GIT_DIR" not in shown
    assert "PLAIN=kept" in shown
    assert os.environ["GIT_DIR"] == "/elsewhere"
