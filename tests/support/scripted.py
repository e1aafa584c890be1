"""A machine whose every word a test has written, and what else a gateway has to do with."""

from contextlib import contextmanager

from exeora_ws.fleet import wire
from exeora_ws.fleet.frames import Assembler
from exeora_ws.fleet.gateway import open_gateway
from exeora_ws.fleet.remote import Sending
from exeora_ws.policy.gate import Answer
from exeora_ws.tools.call import Caller, Face, Scope

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


def make_call(machines, *, seconds=20.0, arguments=None, **caller):
    sending = Sending(MACHINE, "i1", "prj_1", "read_file", arguments or {}, None, seconds)
    return machines.call(sending, Caller(Face.HTTP, "test", "session-1", Scope(bound="prj_1"), **caller))


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


@contextmanager
def open_core(fleet):
    credential = fleet.keys.make_gateway("core", fleet.urls)
    core = open_gateway(fleet.hub.places, credential, tell=lambda _kind, _facts: None)
    try:
        yield core
    finally:
        core.close()
