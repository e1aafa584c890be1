"""Between a call and its running: the policy judges, a person is asked where the policy says so, an approval comes out.

Ways to ask run side by side and the first answer wins (contract, section 8): the face that the call came through, if it
can ask (`Asker`), and every window of the user's that answers the questions in the database (`approvals.py`). A
question only waits when at least one of the two is there; otherwise the call is refused at once.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from exeora_ws.cancellation import Cancellation, Progress, no_progress
from exeora_ws.errors import ApprovalDeclined, ApprovalTimeout, Cancelled, ExeoraError, Forbidden
from exeora_ws.limits import APPROVAL_WAIT_SECONDS
from exeora_ws.policy.approval import Approval, seal_approval
from exeora_ws.policy.approvals import Approvals, Pending, Status
from exeora_ws.policy.attendance import Attendance
from exeora_ws.policy.question import Question
from exeora_ws.policy.request import Request
from exeora_ws.policy.signing import Signer, State
from exeora_ws.policy.sources import PolicySource
from exeora_ws.policy.verdict import MustAsk, Refused, judge

_POLL_SECONDS = 0.1
_ASKER_GRACE_SECONDS = 1.0

Tools = Iterable[tuple[str, bool]]
"""Names of the tools on a face and whether each is read only, for the message of a refusal."""


class Answer(Enum):
    """What a way of asking came back with. `NONE`: nobody could be asked that way after all."""

    ALLOW = "allow"
    DECLINE = "decline"
    NONE = "none"


class Asker(Protocol):
    """A face that can put a question to the person behind it."""

    @property
    def way(self) -> str:
        """How, for the record: `elicitation` or `terminal`."""
        ...

    def ask(self, question: Question, seconds: float, withdrawn: Cancellation) -> Answer:
        """Ask, in a thread of its own; come back at the latest when `withdrawn`: somebody else has answered."""
        ...


@dataclass(frozen=True, slots=True)
class InputRequired:
    """The client has to ask its person and call again with `state` (the protocol of 2026-07-28)."""

    question: Question
    state: str
    expires_ms: int


@dataclass(frozen=True, slots=True)
class SignedAnswer:
    """What a client called again with."""

    state: str
    answer: Answer


class Gate:
    """Makes approvals; the only one that does.

    Args:
        approvals: the questions.
        attendance: who is there to answer them.
        signer: for state that goes through a client.
        seconds: how long a question waits.
        clock: seconds since 1970, the one `approvals` has.
    """

    def __init__(
        self,
        approvals: Approvals,
        attendance: Attendance,
        signer: Signer,
        *,
        seconds: float = APPROVAL_WAIT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._approvals = approvals
        self._attendance = attendance
        self._signer = signer
        self._seconds = seconds
        self._clock = clock

    def approve(
        self,
        policy: PolicySource,
        request: Request,
        asker: Asker | None,
        cancellation: Cancellation,
        *,
        tools: Tools = (),
        progress: Progress = no_progress,
    ) -> Approval:
        """Judge a call, and wait for a person where the policy asks for one.

        Args:
            policy: gives the policy as it is now; looked at again after a yes.
            request: the call.
            asker: how the face can ask, if it can.
            cancellation: takes the question back.
            tools: the tools on this face, for messages.
            progress: is told what is being waited for.

        Raises:
            Forbidden: refused by the policy, or reason `nobody_to_ask`.
            ApprovalDeclined: a person said no.
            ApprovalTimeout: nobody answered in time.
            Cancelled: the caller went away.
        """
        question = self._judge(policy, request, tools)
        if question is None:
            return seal_approval(request, "policy")
        if asker is None and not self._attendance.find_somebody():
            raise _nobody_to_ask(request)
        pending = self._approvals.open(question, self._seconds)
        progress(f"waiting for a person to confirm; exeora approvals allow {pending.id}")
        status, way = _Wait(self._approvals, self._attendance, pending, question, self._seconds).run(
            request, asker, cancellation
        )
        return self._conclude(policy, request, pending.id, status, way)

    def approve_by_return(
        self, policy: PolicySource, request: Request, answer: SignedAnswer | None, *, tools: Tools = ()
    ) -> Approval | InputRequired:
        """Judge a call from a client that asks its person itself and then calls again.

        The question waits in the database meanwhile, so another window may answer it first.

        Raises:
            Forbidden: refused by the policy; `approval_mismatch` for state that is not of this very call,
                `approval_used` for an answer that was used before.
            ApprovalDeclined: a person said no.
            ApprovalTimeout: the answer came too late.
        """
        question = self._judge(policy, request, tools)
        if question is None:
            return seal_approval(request, "policy")
        if answer is None:
            pending = self._approvals.open(question, self._seconds)
            state = State(pending.id, request.fingerprint, pending.expires_ms)
            return InputRequired(question, self._signer.sign(state), pending.expires_ms)
        state = self._signer.read(answer.state)
        if state.fingerprint != request.fingerprint:
            raise Forbidden("the answer belongs to another call", reason="approval_mismatch")
        self._record(state, answer.answer)
        status, way = self._approvals.find_status(state.question) or (Status.EXPIRED, "")
        if status is Status.PENDING:
            return InputRequired(question, answer.state, state.expires_ms)
        return self._conclude(policy, request, state.question, status, way)

    def _judge(self, policy: PolicySource, request: Request, tools: Tools) -> Question | None:
        verdict = judge(policy(), request, tools)
        if isinstance(verdict, Refused):
            raise verdict.error()
        return verdict.question if isinstance(verdict, MustAsk) else None

    def _record(self, state: State, answer: Answer) -> None:
        if self._clock() * 1000 >= state.expires_ms:
            self._approvals.close(state.question, Status.EXPIRED)
        with suppress(ExeoraError):  # somebody else was first: their answer stands
            if answer is Answer.ALLOW:
                self._approvals.allow(state.question, "elicitation")
            elif answer is Answer.DECLINE:
                self._approvals.decline(state.question, "elicitation")

    def _conclude(self, policy: PolicySource, request: Request, identifier: str, status: Status, way: str) -> Approval:
        if status is Status.DECLINED:
            raise ApprovalDeclined(
                f"a person declined {request.tool}", hint="do not try another way; say what you need it for"
            )
        if status is Status.ALLOWED and self._approvals.take(identifier):
            self._judge(policy, request, ())
            return seal_approval(request, way)
        if status in (Status.USED, Status.ALLOWED):
            raise Forbidden("the answer was used already", reason="approval_used")
        raise ApprovalTimeout(f"nobody confirmed {request.tool} within {self._seconds:g} s")


class _Wait:
    """One question, asked in every way there is."""

    def __init__(
        self, approvals: Approvals, attendance: Attendance, pending: Pending, question: Question, seconds: float
    ) -> None:
        self._approvals = approvals
        self._attendance = attendance
        self._pending = pending
        self._question = question
        self._seconds = seconds
        self._woken = threading.Event()
        self._withdrawn = Cancellation()
        self._refused = False

    def run(self, request: Request, asker: Asker | None, cancellation: Cancellation) -> tuple[Status, str]:
        thread = None if asker is None else self._start(asker)
        forget = cancellation.on_cancel(self._woken.set)
        try:
            return self._wait(request, cancellation)
        finally:
            forget()
            self._withdrawn.cancel()
            self._approvals.close(self._pending.id, Status.WITHDRAWN)
            if thread is not None:
                thread.join(_ASKER_GRACE_SECONDS)

    def _start(self, asker: Asker) -> threading.Thread:
        thread = threading.Thread(target=self._ask, args=(asker,), name="exeora-approval", daemon=True)
        thread.start()
        return thread

    def _ask(self, asker: Asker) -> None:
        try:
            answer = asker.ask(self._question, self._seconds, self._withdrawn)
        except Exception:  # noqa: BLE001 - whatever is wrong with one way of asking, the others go on
            answer = Answer.NONE
        with suppress(ExeoraError):  # somebody else was first: their answer stands
            if answer is Answer.ALLOW:
                self._approvals.allow(self._pending.id, asker.way)
            elif answer is Answer.DECLINE:
                self._approvals.decline(self._pending.id, asker.way)
        self._refused = answer is Answer.NONE
        self._woken.set()

    def _wait(self, request: Request, cancellation: Cancellation) -> tuple[Status, str]:
        deadline = time.monotonic() + self._seconds
        while True:
            found = self._approvals.find_status(self._pending.id)
            if found is None or found[0] is not Status.PENDING:
                return found or (Status.EXPIRED, "")
            if cancellation.cancelled:
                raise Cancelled("the call was cancelled while it waited for a person")
            if self._refused and not self._attendance.find_somebody():
                raise _nobody_to_ask(request)
            left = deadline - time.monotonic()
            if left <= 0 and self._approvals.close(self._pending.id, Status.EXPIRED):
                return Status.EXPIRED, ""
            self._woken.wait(max(0.0, min(left, _POLL_SECONDS)))
            self._woken.clear()


def _nobody_to_ask(request: Request) -> Forbidden:
    return Forbidden(
        f"project {request.project!r} asks a person before {request.tool}, and there is nobody to ask",
        reason="nobody_to_ask",
        hint="have a person run exeora approvals --watch, then call again",
    )
