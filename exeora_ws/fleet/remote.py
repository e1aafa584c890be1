"""One call to a machine, as a gateway makes it: sent once, never again, and answered in any case.

Whoever waits is told what is known. Nobody there: not run. Not heard of for six seconds, or beyond its deadline: that
the machine was lost, and that the call may have run.
"""

import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ExecutorOffline, ExeoraError, ToolFailed, ToolTimeout
from exeora_ws.fleet import wire
from exeora_ws.fleet.frames import Assembler, split
from exeora_ws.fleet.line import Line, Message
from exeora_ws.limits import APPROVAL_WAIT_SECONDS, FLEET_SILENT_CALL_SECONDS
from exeora_ws.names import ProjectId
from exeora_ws.policy.gate import Answer, InputRequired
from exeora_ws.policy.question import Question
from exeora_ws.tools.call import Caller
from exeora_ws.tools.proxied import make_step

_CANCELLED_SECONDS = 3.5
"""How long a call that was taken back may still be answered: its process tree gets 2 s before it is killed."""


@dataclass(frozen=True, slots=True)
class Sending:
    """A call, and whose it is to run."""

    machine: wire.MachineId
    instance: str
    """The process there that takes calls."""
    project: ProjectId
    tool: str
    arguments: Mapping[str, Any]
    toolset: str | None
    seconds: float
    """After that it has failed, whatever is heard of it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a machine said a call came to: one of these, as it worded it."""

    call: str
    structured: dict[str, Any] | None = None
    text: str | None = None
    verbatim: dict[str, Any] | None = None
    question: InputRequired | None = None


class RemoteCall:
    """One call, from its sending to its answer.

    Args:
        sending: the call.
        caller: who waits.
        call: its id.
        line: the connection.
    """

    def __init__(self, sending: Sending, caller: Caller, call: str, line: Line) -> None:
        self.sending = sending
        self.caller = caller
        self.call = call
        self.heard: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        """What the machine says; None when the caller takes the call back."""
        self._line = line
        self._frames = Assembler()
        self._over = Cancellation()
        now = time.monotonic()
        self._deadline = now + sending.seconds
        self._silent_at = now + FLEET_SILENT_CALL_SECONDS
        self._given_up_at: float | None = None
        """When a call that was taken back is not waited for any longer."""

    def run(self, envelope: wire.Envelope) -> Answered:
        """Send it and wait."""
        self._send(envelope)
        forget = self.caller.cancellation.on_cancel(lambda: self.heard.put(None))
        try:
            while True:
                answered = self._next()
                if answered is not None:
                    return answered
        finally:
            forget()
            self._over.cancel()

    def _send(self, envelope: wire.Envelope) -> None:
        machine = self.sending.machine
        first, *others = split(wire.encode(envelope), self._line.max_payload)
        try:
            self._line.publish(
                wire.name_call(machine, self.sending.instance),
                first,
                reply=wire.name_reply(envelope.gateway, machine, self.call),
            )
        except ExecutorOffline as error:
            if error.reason != "not_connected":
                raise self._lost(
                    "the gateway's connection was lost as it was sent, and its machine is not heard"
                ) from error
            raise ExecutorOffline(
                "the gateway has no connection to the fleet; the call has not run",
                reason="fleet_unreachable",
                hint="it connects again by itself: call it again in a moment",
            ) from error
        except ToolTimeout:
            raise self._lost("the gateway's connection does not take it") from None
        for frame in others:
            self._line.post(wire.name_part(machine, self.call), frame)

    def _next(self) -> Answered | None:
        """Wait for the next thing that is heard, and take it; gives the answer when that is it."""
        until = min(self._deadline, self._silent_at, self._given_up_at or self._deadline)
        try:
            message = self.heard.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            raise self._explain_silence() from None
        if message is None:
            self._take_back()
            return None
        if message.nobody:
            raise _offline()
        self._silent_at = time.monotonic() + FLEET_SILENT_CALL_SECONDS
        return self._take(self._read(message))

    def _read(self, message: Message) -> dict[str, Any]:
        """Give what is said; nothing yet where more frames are to come."""
        try:
            whole = self._frames.add(message.data)
            return {} if whole is None else wire.decode(whole)
        except ExeoraError as error:
            raise _unreadable() from error

    def _take(self, said: Mapping[str, Any]) -> Answered | None:
        match said.get("kind"):
            case wire.Kind.DONE:
                return self._read_done(said)
            case wire.Kind.PROGRESS:
                self.caller.progress(_read_progress(said))
            case wire.Kind.QUESTION:
                self._ask(said)
        return None

    def _read_done(self, said: Mapping[str, Any]) -> Answered:
        error, asked = said.get("error"), said.get("question")
        if isinstance(error, dict):
            raise wire.read_error(error)
        if isinstance(asked, dict):
            expires = said.get("expires_ms")
            question = InputRequired(
                _read_question(asked), str(said.get("state")), expires if isinstance(expires, int) else 0
            )
            return Answered(self.call, question=question)
        text, structured, verbatim = said.get("text"), said.get("structured"), said.get("verbatim")
        if not isinstance(structured, dict) and not isinstance(verbatim, dict):
            raise _unreadable()
        return Answered(
            self.call, structured=structured, text=text if isinstance(text, str) else None, verbatim=verbatim
        )

    def _ask(self, said: Mapping[str, Any]) -> None:
        """Have the person behind the caller asked, in a thread: what else the machine says is heard meanwhile."""
        asker = self.caller.asking.asker
        if asker is None:
            self._answer(Answer.NONE)
            return
        given = said.get("seconds")
        seconds = min(float(given) if isinstance(given, int | float) else 0.0, float(APPROVAL_WAIT_SECONDS))
        question = _read_question(said)

        def ask() -> None:
            try:
                answer = asker.ask(question, seconds, self._over)
            except Exception:  # noqa: BLE001 - whatever is wrong with one way of asking, the machine has others
                answer = Answer.NONE
            self._answer(answer)

        threading.Thread(target=ask, name="fleet-question", daemon=True).start()

    def _answer(self, answer: Answer) -> None:
        subject = wire.name_answer(self.sending.machine, self.call)
        self._line.post(subject, wire.encode({"answer": answer.value}))

    def _take_back(self) -> None:
        """Tell the machine that nobody wants the answer any more; it is given a moment to say that it has ended."""
        self._line.post(wire.name_cancel(self.sending.machine, self.call), b"{}")
        self._given_up_at = time.monotonic() + _CANCELLED_SECONDS

    def _explain_silence(self) -> ExeoraError:
        now = time.monotonic()
        if self._given_up_at is not None and now >= self._given_up_at:
            return Cancelled("the call was cancelled; its machine has not said that it has ended")
        if now < self._deadline:
            return self._lost("nothing has been heard of its machine")
        self._take_back()
        return ToolTimeout(
            f"{self.sending.tool} has not ended within {self.sending.seconds:g} s; it was taken back",
            reason="machine_too_slow",
            hint="it may have done its work all the same: look before you call it again",
        )

    def _lost(self, why: str) -> ExecutorOffline:
        return ExecutorOffline(
            f"{why} for {FLEET_SILENT_CALL_SECONDS:g} s; the call may have run",
            reason="connection_lost",
            hint="look at what it did before you call it again",
        )


def _unreadable() -> ToolFailed:
    return ToolFailed(
        "the machine's answer cannot be read; the call may have run",
        reason="bad_message",
        hint="are gateway and machine of the same version?",
    )


def _offline() -> ExecutorOffline:
    return ExecutorOffline(
        "the machine that holds this project is not connected; the call has not run",
        reason="machine_offline",
        hint="exeora connect on that machine brings it back; list_projects shows what is online",
    )


def _read_progress(said: Mapping[str, Any]) -> str:
    return str(said.get("line", "")) if said.get("progress") is None else make_step(said)


def _read_question(asked: Mapping[str, Any]) -> Question:
    omitted = asked.get("omitted")
    return Question(
        **{name: str(asked.get(name, "")) for name in ("project", "workspace", "tool", "client", "preview")},
        omitted=omitted if isinstance(omitted, int) else 0,
        fingerprint=str(asked.get("fingerprint", "")),
    )
