"""One call that a machine has in hand: from its first frame to its answer."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exeora_ws.cancellation import Cancellation, Step
from exeora_ws.errors import ExeoraError, InternalError, ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.fleet.frames import Assembler, split
from exeora_ws.fleet.line import Line
from exeora_ws.policy.gate import Answer, InputRequired
from exeora_ws.policy.question import Question
from exeora_ws.tools.call import Outcome

_PROGRESS_SECONDS = 0.1


@dataclass(slots=True)
class CallInHand:
    """A call, and what is said of it to its gateway. `say` never blocks and is for any thread."""

    id: str
    gateway: str
    reply: str
    line: Line
    came: float
    """Seconds of a clock that only grows."""
    frames: Assembler = field(default_factory=Assembler)
    envelope: wire.Envelope | None = None
    """None until it has been read."""
    cancellation: Cancellation = field(default_factory=Cancellation)
    answered: threading.Event = field(default_factory=threading.Event)
    answer: Answer = Answer.NONE
    whole: bool = False
    """Whether its frames are all there."""
    _said_at: float = 0.0
    unsent: list[bytes] = field(default_factory=list)
    """The frames of an answer for which there was no connection."""

    def say(self, kind: wire.Kind, facts: Mapping[str, Any] | None = None) -> None:
        """Tell the gateway something."""
        self.line.post(self.reply, wire.encode({"kind": kind, **(facts or {})}))

    def progress(self, line: str) -> None:
        """Pass a line of progress on; of lines that come faster than anybody reads some are dropped, of steps none."""
        facts: dict[str, Any] = {"line": str(line)}
        now = time.monotonic()
        if isinstance(line, Step):
            facts |= {"progress": line.progress, "total": line.total, "message": line.message}
        elif now - self._said_at < _PROGRESS_SECONDS:
            return
        self._said_at = now
        self.say(wire.Kind.PROGRESS, facts)

    def finish(self, done: Mapping[str, Any]) -> bool:
        """Send the answer; False when there is no connection: `resend` has it then."""
        self.unsent = self._cut(done)
        return self.resend()

    def resend(self) -> bool:
        """Send an answer that could not be sent."""
        if not self.line.connected:
            return False
        for frame in self.unsent:
            self.line.post(self.reply, frame)
        return True

    def _cut(self, done: Mapping[str, Any]) -> list[bytes]:
        try:
            return split(wire.encode(done), self.line.max_payload)
        except ToolFailed as error:
            told = ToolFailed(
                error.message, reason="result_too_large", hint="The call was made; only its answer is missing."
            )
            return [wire.encode(describe_error(told))]

    def take_answer(self, said: Mapping[str, Any]) -> None:
        """Take what a person said."""
        try:
            self.answer = Answer(said.get("answer"))
        except ValueError:
            self.answer = Answer.NONE
        self.answered.set()


class GatewayAsker:
    """Asks the person behind a gateway's caller while the call waits."""

    way = "gateway"

    def __init__(self, call: CallInHand) -> None:
        self._call = call

    def ask(self, question: Question, seconds: float, withdrawn: Cancellation) -> Answer:
        """Put the question; `NONE` when nobody answers in time."""
        call = self._call
        call.answered.clear()
        forget = withdrawn.on_cancel(call.answered.set)
        call.say(wire.Kind.QUESTION, {**describe_question(question), "seconds": seconds})
        try:
            return call.answer if call.answered.wait(seconds) and not withdrawn.cancelled else Answer.NONE
        finally:
            forget()


def describe_question(question: Question) -> dict[str, Any]:
    """Write a question down."""
    return {
        "project": question.project,
        "workspace": question.workspace,
        "tool": question.tool,
        "client": question.client,
        "preview": question.preview,
        "omitted": question.omitted,
        "fingerprint": question.fingerprint,
    }


def describe_done(outcome: Outcome) -> dict[str, Any]:
    """Write down what a call came to."""
    said: dict[str, Any] = {"kind": wire.Kind.DONE}
    if outcome.text is not None:
        said["text"] = outcome.text
    if outcome.error is not None:
        return {**said, "error": outcome.error.to_dict()}
    if outcome.question is not None:
        return {**said, **_describe_return(outcome.question)}
    if outcome.verbatim is not None:
        return {**said, "verbatim": outcome.verbatim}
    return {**said, "structured": outcome.to_dict()}


def _describe_return(required: InputRequired) -> dict[str, Any]:
    asked = describe_question(required.question)
    return {"question": asked, "state": required.state, "expires_ms": required.expires_ms}


def describe_error(error: ExeoraError | InternalError) -> dict[str, Any]:
    """Write down that a call failed before it came to its tool."""
    return {"kind": wire.Kind.DONE, "error": error.to_dict()}
