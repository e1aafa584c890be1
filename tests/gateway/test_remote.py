"""One call to a machine whose every word a test has written."""

import threading
import time

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ExecutorOffline, Forbidden, PathNotFound, ToolFailed, ToolTimeout
from exeora_ws.fleet import wire
from exeora_ws.fleet.frames import split
from exeora_ws.policy.gate import Answer
from exeora_ws.tools.call import Asking, Caller, Face, RawCall, Scope

from support.gateway import Fleet, eventually
from support.scripted import MACHINE, Person, Script, make_call, open_core, say


def test_nobody_there_is_said_at_once(machines):
    started = time.monotonic()
    with pytest.raises(ExecutorOffline) as offline:
        make_call(machines)
    assert offline.value.reason == "machine_offline"
    assert time.monotonic() - started < 1


def test_the_answer_is_what_the_machine_said_in_whatever_order_its_frames_come(machines, script):
    content = "é" * 1_500_000

    def answer(post, _envelope):
        frames = split(say("done", structured={"content": content}, text="short"), 1_000_000)
        assert len(frames) > 5
        for frame in reversed(frames):
            post(frame)

    script.answer = answer
    answered = make_call(machines, arguments={"content": content})
    assert (answered.structured, answered.text) == ({"content": content}, "short")
    assert script.envelopes[0].arguments == {"content": content}
    assert len(script.envelopes) == 1, "it is sent once"


def test_an_error_of_the_machine_is_raised_as_it_was(machines, script):
    error = PathNotFound("nothing there", reason="gone", hint="look")
    script.answer = lambda post, _: post(say("done", error=error.to_dict()))
    with pytest.raises(PathNotFound) as raised:
        make_call(machines)
    assert raised.value.to_dict() == error.to_dict()


@pytest.mark.parametrize("garbage", [b"nonsense", b"[]", b"\0short", b""])
def test_an_answer_that_cannot_be_read_is_said_to_be(machines, script, garbage):
    script.answer = lambda post, _: post(garbage)
    with pytest.raises(ToolFailed) as raised:
        make_call(machines)
    assert raised.value.reason == "bad_message"
    assert "may have run" in raised.value.message


def test_an_answer_that_says_nothing_is_a_failure_not_an_empty_result(machines, script):
    script.answer = lambda post, _: post(say("done"))
    with pytest.raises(ToolFailed) as raised:
        make_call(machines)
    assert raised.value.reason == "bad_message"


def test_a_tool_that_takes_longer_than_it_may_is_taken_back(machines, script):
    over = threading.Event()

    def work(post, _envelope):
        def run():
            while not over.wait(0.2):
                post(say("working"))

        threading.Thread(target=run, daemon=True).start()

    script.answer = work
    with pytest.raises(ToolTimeout) as raised:
        make_call(machines, seconds=1.0)
    over.set()
    assert raised.value.reason == "machine_too_slow"
    eventually(lambda: ("cancel", {}) in script.heard)


def test_a_call_that_is_taken_back_is_answered_by_its_machine_or_given_up(machines, script):
    for answers, message in ((True, "ended"), (False, "has not said")):
        script.heard.clear()

        def work(post, _envelope, answers=answers):
            def run():
                eventually(lambda: script.heard)
                post(say("done", error=Cancelled("ended").to_dict()))

            if answers:
                threading.Thread(target=run, daemon=True).start()
            else:
                post(say("taken"))

        script.answer = work
        cancellation = Cancellation()
        threading.Timer(0.2, cancellation.cancel).start()
        started = time.monotonic()
        with pytest.raises(Cancelled, match=message):
            make_call(machines, cancellation=cancellation)
        assert time.monotonic() - started < (2 if answers else 5)
        assert ("cancel", {}) in script.heard


QUESTION = {
    "project": "app", "workspace": "main", "tool": "run_command", "client": "c", "preview": "{}", "omitted": 0,
    "fingerprint": "f", "seconds": 90,
}  # fmt: skip


@pytest.mark.parametrize("answer", [Answer.ALLOW, Answer.DECLINE])
def test_a_question_is_put_to_the_caller_and_its_answer_sent(machines, script, answer):
    def ask(post, _envelope):
        def run():
            eventually(lambda: script.heard)
            post(say("done", structured={}))

        post(say("question", **QUESTION))
        threading.Thread(target=run, daemon=True).start()

    script.answer, person = ask, Person(answer)
    make_call(machines, asking=Asking(asker=person))
    assert script.envelopes[0].asks is wire.Asks.WHILE_WAITING
    assert script.heard == [("answer", {"answer": answer.value})]
    assert "run_command" in person.asked[0][0]


def test_a_question_that_somebody_else_has_answered_is_withdrawn(machines, script):
    def ask(post, _envelope):
        post(say("question", **QUESTION))
        post(say("done", structured={"done": 1}))

    script.answer, person = ask, Person(None)
    assert make_call(machines, asking=Asking(asker=person)).structured == {"done": 1}


def test_a_call_that_cannot_be_written_down_is_not_sent(tmp_path, sealed):
    """JetStream keeps the stream from being written to: what stands in for a full disk or a lost majority."""
    from exeora_ws.fleet.buckets import INVENTORY_BUCKET, MACHINES_BUCKET, Bucket
    from exeora_ws.fleet.documents import (
        MachineRecord,
        PolicyRecord,
        ProjectRecord,
        WorkspaceRecord,
        name_project_key,
        pack_project,
    )

    fleet = Fleet(tmp_path)
    try:
        with open_core(fleet) as core, fleet.connected() as (lines, _):
            script = Script(lines.calls)
            script.answer = lambda post, _: post(say("done", structured={"content": "x"}))
            main = WorkspaceRecord(
                id="wsp_1", slug="main", name="main", branch="main", managed=False, available=True, path="/x"
            )
            policy = PolicyRecord(mode="allow_all")
            record = ProjectRecord(
                machine=MACHINE, instance="i1", id="prj_1", slug="app", name="app", workspaces=[main], policy=policy
            )
            machine = MachineRecord(name="m", public="x", added=1.0)
            Bucket(lines.state, MACHINES_BUCKET).put(MACHINE, wire.encode(machine))
            Bucket(lines.state, INVENTORY_BUCKET).put(name_project_key(MACHINE, "prj_1"), pack_project(record))
            eventually(core.inventory.list_projects)
            call = RawCall("read_file", {"path": "x", "project": "app"})
            caller = Caller(Face.HTTP, "test", "session-1", Scope())
            assert core.calls.make(call, caller).error is None
            assert script.envelopes[0].arguments == {"path": "x", "workspace": "wsp_1"}

            async def drop(client):
                await client.jetstream().delete_stream("exeora_audit")

            lines.state.run(drop, 5)
            refused = core.calls.make(call, caller).error
            assert isinstance(refused, Forbidden)
            assert refused.reason == "audit_unwritable"
            listed = core.calls.make(RawCall("list_projects", {}), caller)
            assert listed.error.reason == "audit_unwritable"
            assert len(script.envelopes) == 1
    finally:
        fleet.close()
