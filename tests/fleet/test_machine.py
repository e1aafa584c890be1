"""Calls of the fleet on a machine: once, in time, in one project, by every policy, and nothing left of them."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.fleet import wire
from exeora_ws.fleet.credentials import Credential
from exeora_ws.settings import find_places

from support.fleet import Hand, MachineHere, connected, find_record, make_credential
from support.processes import all_gone, eventually


@pytest.fixture
def app(tmp_path: Path, sealed) -> App:
    places = {
        "EXEORA_DATA_DIR": str(tmp_path / "machine"),
        "EXEORA_CONFIG_PATH": str(tmp_path / "conf" / "config.json"),
    }
    return open_app(find_places(places))


@pytest.fixture
def project(app: App, make_repository):
    return app.inventory.register_project(make_repository("app"), exact=False)[0]


@pytest.fixture
def credential(hand: Hand) -> Credential:
    return make_credential(hand)


@pytest.fixture
def machine(app: App, credential: Credential) -> Iterator[MachineHere]:
    with connected(app, credential) as machine:
        yield machine


class Caller:
    """Calls the one project of the one machine."""

    def __init__(self, hand: Hand, machine: MachineHere, project) -> None:
        self.hand, self.machine, self.project = hand, machine, project

    def __call__(self, tool: str, arguments=None, **facts):
        return self.hand.call(self.machine.id, self.project.id, tool, arguments, **facts)

    def run(self, command: str, **facts):
        return self("run_command", {"command": command}, **facts)


@pytest.fixture
def call(hand: Hand, machine: MachineHere, project) -> Caller:
    hand.live()
    return Caller(hand, machine, project)


# --- a call and its answer ---


def test_a_call_takes_the_way_of_every_call(call: Caller, app: App):
    assert call("write_file", {"path": "a.txt", "content": "hi\n"}).done()["structured"]["bytesWritten"] == 3
    done = call("read_file", {"path": "a.txt"}).done()
    assert done["structured"] == {"path": "a.txt", "content": "hi\n", "truncated": False, "totalLines": 1}
    assert (call.project.root / "a.txt").read_text() == "hi\n"
    with app.services.database.read() as connection:
        rows = connection.execute("SELECT client, face, project, tool, outcome FROM audit ORDER BY id").fetchall()
    assert [tuple(row) for row in rows] == [
        ("hand", "gateway", "app", "write_file", "OK"),
        ("hand", "gateway", "app", "read_file", "OK"),
    ]


def test_it_says_that_it_has_it_and_that_it_goes_on(call: Caller):
    heard = call.run("echo first; sleep 2.7")
    assert heard.done()["structured"]["exitCode"] == 0
    assert heard.kinds()[0] == "taken"
    assert "working" in heard.kinds()
    assert {"kind": "progress", "line": "first"} in heard.said


def test_large_ones_travel_in_pieces_both_ways(call: Caller):
    text = "".join(f"line {number} ünï {'x' * 80}\n" for number in range(9_000))
    done = call("write_file", {"path": "big.txt", "content": text}).done()
    assert done["structured"]["bytesWritten"] == len(text.encode()) > 500_000
    assert call.hand.line.max_payload < len(str(text.encode("unicode_escape"))) + 1_000_000
    many = {"path": "many.txt", "content": "€" * 400_000}  # three times as long as JSON
    assert call("write_file", many).done()["structured"]["bytesWritten"] == 1_200_000
    lines = call("read_file", {"path": "many.txt"}).done()["structured"]
    assert lines["truncated"] is True
    assert lines["content"].startswith("€" * 1_000)


def test_errors_arrive_with_all_they_say(call: Caller):
    assert call("nope").error()["code"] == "UNKNOWN_TOOL"
    wrong = call("read_file", {"path": "a.txt", "lines": 3}).error()
    assert (wrong["code"], wrong["reason"]) == ("INVALID_ARGUMENTS", "unknown_field")
    assert call("read_file", {"path": "../x"}).error()["code"] == "PATH_ESCAPE"
    lost = call("read_file", {"path": "a.txt", "workspace": "gone"}).error()
    assert lost["code"] == "UNKNOWN_WORKSPACE"


def test_a_bug_leaves_its_id_and_nothing_else(call: Caller, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("secret text")

    monkeypatch.setattr("exeora_ws.fleet.running.describe_done", fail)
    error = call("list_files").error()
    assert error["code"] == "INTERNAL_ERROR"
    assert error["data"]["id"] in error["message"]
    assert "secret" not in str(error)


def test_other_toolsets_by_name(call: Caller):
    done = call("project_exec", {"command": "echo hi"}, toolset="sandbox").done()
    assert "hi" in str(done["structured"])
    assert call("run_command", {"command": "x"}, toolset="sandbox").error()["code"] == "UNKNOWN_TOOL"
    assert call("run_command", {"command": "x"}, toolset="nope").error()["reason"] == "unknown_toolset"


def test_an_upstreams_tools_are_published_and_called(app: App, hand: Hand, credential: Credential, project):
    import json
    import sys

    from support.upstream_world import FIXTURES

    app.places.mcp_file.parent.mkdir(parents=True, exist_ok=True)
    server = {"command": sys.executable, "args": [str(FIXTURES / "plain.py")]}
    app.places.mcp_file.write_text(json.dumps({"mcpServers": {"plain": server}}))
    with connected(app, credential) as machine:
        hand.live()

        def published():
            record = find_record(hand, machine.id, project.id)
            return record is not None and record.tools

        assert eventually(published, 10)
        tool = next(t for t in published() if t.tool == "echo")
        assert tool.name == "mcp__plain__echo"
        heard = hand.call(machine.id, project.id, tool.name, {"text": "through"})
        assert "through" in str(heard.done()["verbatim"])


# --- once, and in time ---


def test_a_call_that_comes_late_does_not_run(call: Caller):
    now = call.hand.now()
    error = call.run("touch late", start_by=now - 50).error()
    assert (error["code"], error["reason"]) == ("TOOL_TIMEOUT", "past_deadline")
    assert call.run("touch later", deadline=now - 50).error()["reason"] == "past_deadline"
    assert call.run("true").done()["structured"]["exitCode"] == 0
    assert not list(call.project.root.glob("late*"))


def test_lateness_is_looked_at_right_before_it_runs(call: Caller, monkeypatch):
    """What held it up on its way through the stations is no excuse."""
    from exeora_ws.tools.gate import CallGate

    approve = CallGate.approve

    def dawdle(self, parsed, caller):
        approved = approve(self, parsed, caller)
        time.sleep(0.4)
        return approved

    monkeypatch.setattr(CallGate, "approve", dawdle)
    error = call.run("touch late", deadline=call.hand.now() + 200).error()
    assert error["code"] in ("TOOL_TIMEOUT", "CANCELLED")
    assert not (call.project.root / "late").exists()


def test_a_machine_that_was_away_runs_nothing_of_before(call: Caller, monkeypatch):
    """As after a suspension: the clock has jumped, and whoever waited was told long ago."""
    from exeora_ws.fleet import clock, running, watching
    from exeora_ws.tools.gate import CallGate

    approve, uptime, jump = CallGate.approve, clock.read_uptime, [0.0]
    for module in (running, watching):
        monkeypatch.setattr(module, "read_uptime", lambda: uptime() + jump[0])

    def sleep_a_minute(self, parsed, caller):
        approved = approve(self, parsed, caller)
        jump[0] = 60.0
        return approved

    monkeypatch.setattr(CallGate, "approve", sleep_a_minute)
    error = call.run("touch late").error()
    assert error["code"] in ("TOOL_TIMEOUT", "CANCELLED")
    assert not (call.project.root / "late").exists()


def test_a_copy_does_not_run(call: Caller):
    hand, machine = call.hand, call.machine
    envelope = hand.envelope(call.project.id, "run_command", {"command": "echo x >> ran"})
    hand.send(machine.id, envelope).done()
    again = hand.send(machine.id, envelope)
    call.run("true").done()
    assert again.said == []
    assert (call.project.root / "ran").read_text() == "x\n"


def test_a_copy_of_one_that_still_runs_does_not_run(call: Caller):
    hand = call.hand
    envelope = hand.envelope(call.project.id, "run_command", {"command": "echo x >> ran; sleep 0.5"})
    heard = hand.send(call.machine.id, envelope)
    heard.wait("taken")
    reply = wire.name_reply(hand.gateway, call.machine.id, envelope.call)
    hand.line.publish(hand.name_call(call.machine.id), wire.encode(envelope), reply=reply)
    heard.done()
    call.run("true").done()
    assert (call.project.root / "ran").read_text() == "x\n"
    assert heard.kinds().count("done") == 1


def test_what_runs_beyond_its_deadline_is_taken_back(call: Caller):
    heard = call.run("sleep 30", deadline=call.hand.now() + 500)
    assert heard.error(8)["code"] == "CANCELLED"


def test_what_never_comes_whole_does_not_run(call: Caller):
    from exeora_ws.fleet.frames import split

    hand = call.hand
    envelope = hand.envelope(call.project.id, "run_command", {"command": "touch half", "x": "y" * 5_000})
    frames = split(wire.encode(envelope), 3_000)
    reply = wire.name_reply(hand.gateway, call.machine.id, envelope.call)
    hand.line.publish(hand.name_call(call.machine.id), frames[0], reply=reply)
    for frame in frames[2:]:
        hand.line.publish(wire.name_part(call.machine.id, envelope.call), frame)
    call.run("true").done()
    assert not (call.project.root / "half").exists()


@pytest.mark.parametrize("data", [b"", b"junk", b"{}", b'{"stream":"KV_x","seq":1}', b"\0short"])
def test_what_is_no_envelope_is_answered_as_such_and_harms_nothing(call: Caller, data: bytes):
    hand = call.hand
    reply = wire.name_reply(hand.gateway, call.machine.id, "c1")
    for given in (reply, "", "exeora.r.g.mac_other.c1", "x"):
        hand.line.publish(hand.name_call(call.machine.id), data, reply=given)
    for subject in ("cancel", "answer", "part"):
        hand.line.publish(f"exeora.m.{call.machine.id}.{subject}.c1", data)
    for subject in (f"exeora.m.{call.machine.id}.close", wire.GATEWAY_ALIVE, wire.name_ping(call.machine.id)):
        hand.line.publish(subject, data)
    assert call("list_files").done()["structured"]["entries"]


def test_an_envelope_of_another_call_or_gateway_is_refused(call: Caller):
    hand = call.hand
    other = hand.envelope(call.project.id, "run_command", {"command": "touch x"}, gateway="gtw_other")
    assert hand.send(call.machine.id, other).error()["reason"] == "bad_message"
    newer = hand.envelope(call.project.id, "run_command", {"command": "touch x"}, version=2)
    assert hand.send(call.machine.id, newer).error()["reason"] == "machine_outdated"
    assert not (call.project.root / "x").exists()


def test_beyond_the_bound_calls_are_refused_by_name(app: App, hand: Hand, credential: Credential, project):
    with connected(app, credential, at_once=2) as machine:
        hand.live()
        busy = [hand.call(machine.id, project.id, "run_command", {"command": "sleep 20"}) for _ in range(2)]
        for heard in busy:
            heard.wait("taken")
        error = hand.call(machine.id, project.id, "run_command", {"command": "touch x"}).error()
        assert (error["code"], error["reason"]) == ("TOOL_FAILED", "machine_busy")
    assert not (project.root / "x").exists()
    for heard in busy:
        assert heard.error()["code"] == "CANCELLED"


# --- who may what ---


def test_it_reaches_the_named_project_and_no_other(call: Caller, app: App, make_repository):
    other = app.inventory.register_project(make_repository("other"), exact=False)[0]
    for selector in ("other", "app", "prj_unknown", ""):
        error = call.hand.call(call.machine.id, selector, "list_files").error()
        assert error["code"] in ("UNKNOWN_PROJECT", "INVALID_ARGUMENTS")
    wrong = call("list_files", {"project": str(other.id)}).error()
    assert wrong["reason"] == "unknown_field"
    listed = call("list_projects").done()["structured"]["projects"]
    assert [each["slug"] for each in listed] == ["app"]


def test_the_accounts_policy_narrows_and_never_widens(call: Caller):
    run = call.run
    assert run("echo hi", policy='mode = "read_only"').error()["reason"] == "read_only"
    assert run("touch x", policy='deny = ["touch"]').error()["reason"] == "denied"
    assert call("list_files", policy='tools = ["grep"]').error()["reason"] == "tool_not_permitted"
    broken = run("touch x", policy="mode = ").error()
    assert (broken["code"], broken["reason"]) == ("FORBIDDEN", "policy_invalid")
    assert "the account's policy at the gateway, line 1" in broken["message"]
    (call.project.root / "exeora.toml").write_text('mode = "allow_list"\nallow = ["echo"]\n')
    assert run("touch x", policy='mode = "allow_all"').error()["reason"] == "not_allowed"
    assert run("echo hi", policy='allow = ["echo", "touch"]').done()["structured"]["stdout"] == "hi\n"
    assert run("touch x", policy='allow = ["echo", "touch"]').error()["reason"] == "not_allowed"
    assert not (call.project.root / "x").exists()


def test_a_caller_that_may_only_read_does_only_that(call: Caller):
    assert call.run("touch x", read_only=True).error()["reason"] == "token_read_only"
    assert call("list_files", read_only=True).done()["structured"]
    assert not (call.project.root / "x").exists()


# --- a person is asked ---

ASKS = "approve = true"


@pytest.mark.parametrize(("answer", "code"), [("allow", None), ("decline", "APPROVAL_DECLINED"), ("none", "FORBIDDEN")])
def test_the_person_behind_the_gateway_is_asked(call: Caller, answer: str, code: str | None):
    envelope = call.hand.envelope(
        call.project.id, "run_command", {"command": "touch x"}, policy=ASKS, asks="while_waiting"
    )
    heard = call.hand.send(call.machine.id, envelope)
    question = heard.wait("question")
    assert question["tool"] == "run_command"
    assert "touch x" in question["preview"]
    assert not (call.project.root / "x").exists()
    call.hand.line.post(wire.name_answer(call.machine.id, envelope.call), wire.encode({"answer": answer}))
    if code is None:
        assert heard.done()["structured"]["exitCode"] == 0
    else:
        assert heard.error()["code"] == code
    assert (call.project.root / "x").exists() is (code is None)


def test_a_question_by_return(call: Caller):
    facts = {"policy": ASKS, "asks": "by_return"}
    done = call.run("touch x", **facts).done()
    assert done["question"]["tool"] == "run_command"
    assert not (call.project.root / "x").exists()
    yes = {"state": done["state"], "answer": "allow"}
    other = call.run("touch y", answer=yes, **facts).error()
    assert other["reason"] == "approval_mismatch"
    assert call.run("touch x", answer=yes, **facts).done()["structured"]["exitCode"] == 0
    assert call.run("touch x", answer=yes, **facts).error()["reason"] == "approval_used"
    assert not (call.project.root / "y").exists()


def test_nobody_to_ask_is_an_answer(call: Caller):
    assert call.run("touch x", policy=ASKS).error()["reason"] == "nobody_to_ask"


# --- what ends ---


def test_a_caller_that_leaves_takes_its_call_along(call: Caller):
    envelope = call.hand.envelope(call.project.id, "run_command", {"command": "echo $$; exec sleep 60"})
    heard = call.hand.send(call.machine.id, envelope)
    pid = int(heard.wait("progress")["line"])
    call.hand.line.post(wire.name_cancel(call.machine.id, envelope.call), b"{}")
    assert heard.error()["code"] == "CANCELLED"
    assert not os.path.exists(f"/proc/{pid}")


def start(call: Caller, session: str = "session-1") -> int:
    return int(call("start_command", {"command": "sleep 300"}, session=session).done()["structured"]["pid"])


def is_running(pid: int) -> bool:
    return not all_gone([pid])


def test_what_a_session_started_ends_with_it_and_only_that(call: Caller):
    mine, other = start(call), start(call, "session-2")
    over = wire.SessionEnd(gateway=call.hand.gateway, session="session-1")
    call.hand.line.post(wire.name_close(call.machine.id), wire.encode(over))
    assert eventually(lambda: not is_running(mine), 5)
    assert is_running(other)
    # The gateway may hold it open still, as after a cut: it begins anew.
    again = start(call)
    assert is_running(again)
    call.machine.close()
    assert not is_running(other)
    assert not is_running(again)
    assert call.machine.ended


def test_what_a_gateway_started_ends_when_it_is_heard_no_more(call: Caller, monkeypatch):
    monkeypatch.setattr("exeora_ws.fleet.tenancy.FLEET_SILENT_GATEWAY_SECONDS", 2.0)
    pid = start(call)
    heard = call.run("sleep 60")
    time.sleep(2.5)
    assert is_running(pid)
    call.hand.die()
    assert eventually(lambda: not is_running(pid), 8)
    assert heard.error()["code"] == "CANCELLED"


def test_the_end_leaves_nothing_and_answers_everybody(call: Caller, app: App):
    pid = start(call)
    heard = call.run("echo $$; exec sleep 60")
    running = int(heard.wait("progress")["line"])
    threads = threading.active_count()
    call.machine.close()
    assert heard.error()["code"] == "CANCELLED"
    assert not is_running(pid)
    assert not is_running(running)
    assert call.machine.kinds()[-2:] == ["stopping", "stopped"]
    assert threading.active_count() < threads
    with app.services.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM live_processes").fetchone()[0] == 0


def test_a_machine_that_has_gone_is_known_at_once(call: Caller):
    call.machine.close()
    heard = call("list_files")
    assert eventually(lambda: heard.nobody, 1)
    assert heard.said == []


def test_of_two_processes_with_one_credential_each_gets_its_own_calls(
    app: App, hand: Hand, credential: Credential, project, tmp_path: Path, make_repository
):
    """As after a data folder was copied to a second host."""
    where = {"EXEORA_DATA_DIR": str(tmp_path / "copy"), "EXEORA_CONFIG_PATH": str(tmp_path / "copy" / "config.json")}
    other = open_app(find_places(where))
    theirs = other.inventory.register_project(make_repository("other"), exact=False)[0]
    with connected(app, credential) as machine, connected(other, credential):
        hand.live()
        instances = {}
        for each in (project, theirs):
            record = find_record(hand, machine.id, each.id)
            assert record is not None
            instances[each.id] = record.instance
        assert len(set(instances.values())) == 2
        for each in (project, theirs):
            envelope = hand.envelope(each.id, "run_command", {"command": "echo x >> ran"})
            reply = wire.name_reply(hand.gateway, machine.id, envelope.call)
            heard = hand.listen(envelope.call)
            hand.line.publish(wire.name_call(machine.id, instances[each.id]), wire.encode(envelope), reply=reply)
            assert heard.done()["structured"]["exitCode"] == 0
            assert (each.root / "ran").read_text() == "x\n"
            assert heard.kinds().count("done") == 1


def test_a_call_for_an_earlier_process_reaches_nobody(call: Caller, app: App):
    old = call.hand.name_call(call.machine.id)
    call.machine.close()
    with connected(app, call.machine.credential):
        envelope = call.hand.envelope(call.project.id, "run_command", {"command": "touch x"})
        heard = call.hand.listen(envelope.call)
        reply = wire.name_reply(call.hand.gateway, call.machine.id, envelope.call)
        call.hand.line.publish(old, wire.encode(envelope), reply=reply)
        assert eventually(lambda: heard.nobody, 2)
        assert call("list_files").done()["structured"]
    assert not (call.project.root / "x").exists()
