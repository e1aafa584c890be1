"""One call to a machine whose every word a test has written."""

import threading
import time
from contextlib import contextmanager

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ExecutorOffline, Forbidden, PathNotFound, ToolFailed, ToolTimeout
from exeora_ws.fleet import wire
from exeora_ws.fleet.dispatch import Machines
from exeora_ws.fleet.frames import Assembler, split
from exeora_ws.fleet.gateway import open_gateway
from exeora_ws.fleet.remote import Sending
from exeora_ws.policy.gate import Answer
from exeora_ws.tools.call import Asking, Caller, Face, RawCall, Scope

from support.gateway import Fleet, eventually

MACHINE = wire.MachineId("mac_scripted00000000000")


class Script:
    """A machine that answers as it is told to."""

    def __init__(self, line):
        self.envelopes, self.heard = [], []
        self.answer = lambda _say, _envelope: None
        self._line = line
        self._frames = {}
        for name in ("cancel.*", "answer.*", "close"):
            line.subscribe(f"exeora.m.{MACHINE}.{name}", self._note)
        line.subscribe(wire.name_part(MACHINE, "*"), lambda m: self._add(m.subject.rpartition(".")[2], m))
        line.subscribe(wire.name_call(MACHINE, "i1"), self._begin)

    def _begin(self, message):
        call = wire.split_reply(message.reply)[1]
        self._frames[call] = (Assembler(), message.reply)
        self._add(call, message)

    def _add(self, call, message):
        frames, reply = self._frames[call]
        whole = frames.add(message.data)
        if whole is not None:
            envelope = wire.decode_as(wire.Envelope, whole)
            self.envelopes.append(envelope)
            self.answer(lambda data: self._line.post(reply, data), envelope)

    def _note(self, message):
        self.heard.append((message.subject.split(".")[3], wire.decode(message.data)))


def say(kind, **facts):
    return wire.encode({"kind": kind, **facts})


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    fleet = Fleet(tmp_path_factory.mktemp("remote"))
    yield fleet
    fleet.close()


@pytest.fixture
def script(fleet):
    with fleet.connected() as (lines, _):
        yield Script(lines.calls)


@pytest.fixture
def machines(fleet):
    with fleet.connected() as (lines, now_ms):
        made = Machines(lines.calls, fleet.gateway_id, now_ms, lambda: None)
        made.open()
        yield made
        made.close()


def make_call(machines, *, seconds=20.0, arguments=None, **caller):
    sending = Sending(MACHINE, "i1", "prj_1", "read_file", arguments or {}, None, seconds)
    return machines.call(sending, Caller(Face.HTTP, "test", "session-1", Scope(bound="prj_1"), **caller))


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


class Person:
    way = "elicitation"

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def ask(self, question, seconds, withdrawn):
        self.asked.append((question.text, seconds))
        if self.answer is None:
            withdrawn.wait(10)
            assert withdrawn.cancelled
            return Answer.NONE
        return self.answer


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


@contextmanager
def open_core(fleet):
    credential = fleet.keys.make_gateway("core", fleet.urls)
    core = open_gateway(fleet.hub.places, credential, tell=lambda _kind, _facts: None)
    try:
        yield core
    finally:
        core.close()


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
