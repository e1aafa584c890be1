"""The gate: who is asked, whose answer counts, and that what was shown is what runs."""

import ast
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import exeora_ws
import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ApprovalDeclined, ApprovalTimeout, Cancelled, Forbidden, InvalidArguments, ToolFailed
from exeora_ws.policy.approval import Approval
from exeora_ws.policy.approvals import Approvals, Pending, Status
from exeora_ws.policy.attendance import SEEN_SECONDS, Attendance
from exeora_ws.policy.gate import Answer, Gate, InputRequired, SignedAnswer
from exeora_ws.policy.layer import parse_layer
from exeora_ws.policy.request import Request
from exeora_ws.policy.rules import OPEN, Origin, Policy

TOP = Path(exeora_ws.__file__).parents[1]


def policy(**keys) -> Policy:
    return parse_layer(keys, Origin.PROJECT, str).policy


ASKS = policy(approve=True)


def asks() -> Policy:
    return ASKS


def request(**changes) -> Request:
    facts = {
        "project_id": "prj_1",
        "project": "app",
        "workspace_id": "wsp_1",
        "workspace": "feature",
        "tool": "run_command",
        "read_only": False,
        "arguments": {"command": "make"},
        "command": "make",
    }
    return Request(**(facts | changes))


class Person:
    """A face whose person answers as told, or never."""

    def __init__(self, answer: Answer | None, way: str = "elicitation") -> None:
        self.answer = answer
        self.way = way
        self.asked = threading.Event()
        self.withdrawn = threading.Event()
        self.question = None

    def ask(self, question, seconds: float, withdrawn: Cancellation) -> Answer:
        self.question = question
        self.asked.set()
        if self.answer is not None:
            return self.answer
        if withdrawn.wait(30):
            self.withdrawn.set()
        return Answer.NONE


@contextmanager
def waiting(gate: Gate, asker: Person | None, cancellation: Cancellation | None = None) -> Iterator:
    """Have a call wait at the gate in a thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(gate.approve, asks, request(), asker, cancellation or Cancellation())


def wait_for_question(approvals: Approvals) -> Pending:
    return next(approvals.watch(Cancellation()))


def test_what_needs_no_question_is_approved_at_once(gate: Gate, approvals: Approvals):
    approval = gate.approve(lambda: OPEN, request(), None, Cancellation())
    approval.require_for(request())
    assert (approval.way, approval.tool, approval.workspace_id) == ("policy", "run_command", "wsp_1")
    assert gate.approve(asks, request(tool="grep", read_only=True), None, Cancellation()).way == "policy"
    assert approvals.list_pending() == []


def test_what_policy_refuses_is_never_asked_about(gate: Gate):
    person = Person(Answer.ALLOW)
    strict = policy(approve=True, deny=["make"])
    with pytest.raises(Forbidden) as caught:
        gate.approve(lambda: strict, request(), person, Cancellation())
    assert caught.value.reason == "denied"
    with pytest.raises(Forbidden):
        gate.approve_by_return(lambda: strict, request(), None)
    assert not person.asked.is_set()


def test_a_client_that_cannot_be_asked_with_nobody_else_is_refused_at_once(gate: Gate, approvals: Approvals):
    started = time.monotonic()
    with pytest.raises(Forbidden) as caught:
        gate.approve(asks, request(), None, Cancellation())
    assert time.monotonic() - started < 1
    assert caught.value.reason == "nobody_to_ask"
    assert "exeora approvals" in caught.value.hint
    assert approvals.list_pending() == []


@pytest.mark.parametrize("way", ["elicitation", "terminal"])
def test_the_face_asks_and_its_answer_counts(gate: Gate, way: str):
    person = Person(Answer.ALLOW, way)
    approval = gate.approve(asks, request(), person, Cancellation())
    assert approval.way == way
    assert person.question.fingerprint == request().fingerprint == approval.fingerprint
    with pytest.raises(ApprovalDeclined):
        gate.approve(asks, request(), Person(Answer.DECLINE, way), Cancellation())


def test_a_person_at_exeora_approvals_answers_for_a_client_that_cannot_ask(
    gate: Gate, approvals: Approvals, attendance: Attendance
):
    with attendance.hold():
        with waiting(gate, None) as call:
            pending = wait_for_question(approvals)
            assert (pending.project, pending.workspace, pending.tool) == ("app", "feature", "run_command")
            assert '{"command": "make"}' in pending.text
            approvals.allow(pending.id, "approvals")
            assert call.result(5).way == "approvals"
        with waiting(gate, None) as call:
            approvals.decline(wait_for_question(approvals).id, "approvals")
            with pytest.raises(ApprovalDeclined):
                call.result(5)


def test_another_process_answers(gate: Gate, approvals: Approvals, attendance: Attendance, data: Path):
    script = (
        "import sys; from pathlib import Path; from exeora_ws.database import Database\n"
        "from exeora_ws.policy.audit import AUDIT_MIGRATIONS\n"
        "from exeora_ws.policy.approvals import *\nfrom exeora_ws.cancellation import Cancellation\n"
        "from exeora_ws.policy.attendance import Attendance\n"
        "path = Path(sys.argv[1])\n"
        "database = Database(path / 'exeora.db', {'audit': AUDIT_MIGRATIONS, 'approvals': APPROVAL_MIGRATIONS})\n"
        "with Attendance(path / 'locks').hold():\n"
        "    print('there', flush=True)\n"
        "    for pending in Approvals(database).watch(Cancellation()):\n"
        "        Approvals(database).allow(pending.id, 'approvals')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, data], cwd=TOP, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "there\n"
        assert attendance.find_somebody()
        assert gate.approve(asks, request(), None, Cancellation()).way == "approvals"
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
    assert not attendance.find_somebody()


def test_the_first_answer_wins_and_the_other_way_is_withdrawn(gate: Gate, approvals: Approvals):
    person = Person(None)
    with waiting(gate, person) as call:
        pending = wait_for_question(approvals)
        approvals.decline(pending.id, "approvals")
        with pytest.raises(ApprovalDeclined):
            call.result(5)
    assert person.withdrawn.wait(5)
    with pytest.raises(ToolFailed) as caught:
        approvals.allow(pending.id, "terminal")
    assert caught.value.reason == "already_answered"


def test_nobody_answers(hasty_gate: Gate, approvals: Approvals):
    person = Person(None)
    with pytest.raises(ApprovalTimeout):
        hasty_gate.approve(asks, request(), person, Cancellation())
    assert person.withdrawn.wait(5)
    assert approvals.list_pending() == []


def test_an_answer_that_comes_too_late_does_not_count(approvals: Approvals, hasty_gate: Gate, gate: Gate):
    clock = [1_000.0]
    late = Approvals(approvals._database, clock=lambda: clock[0])
    pending = late.open(_question(), 90)
    clock[0] += 91
    assert late.list_pending() == []
    with pytest.raises(ToolFailed) as caught:
        late.allow(pending.id, "approvals")
    assert caught.value.reason == "already_answered"
    assert late.find_status(pending.id) == (Status.PENDING, "")


def test_the_arguments_of_a_question_nobody_came_back_for_are_kept_nowhere(approvals: Approvals):
    clock = [1_000.0]
    timed = Approvals(approvals._database, clock=lambda: clock[0])
    question = dataclasses.replace(_question(), preview="echo secret")
    forgotten = timed.open(question, 90)
    clock[0] += 90
    waiting = timed.open(question, 90)
    with approvals._database.read() as connection:
        rows = dict(connection.execute("SELECT id, preview FROM approvals").fetchall())
    assert rows[forgotten.id] == ""
    assert "secret" in rows[waiting.id]
    assert timed.find_status(forgotten.id) == (Status.EXPIRED, "")


def test_a_face_that_turns_out_unable_to_ask_is_as_one_that_cannot(gate: Gate, attendance: Attendance, approvals):
    class Broken(Person):
        def ask(self, question, seconds, withdrawn):
            raise RuntimeError("the client has gone")

    for person in (Person(Answer.NONE), Broken(None)):
        with pytest.raises(Forbidden) as caught:
            gate.approve(asks, request(), person, Cancellation())
        assert caught.value.reason == "nobody_to_ask"
    with attendance.hold(), waiting(gate, Person(Answer.NONE)) as call:
        approvals.allow(wait_for_question(approvals).id, "approvals")
        assert call.result(5).way == "approvals"


def test_a_call_that_is_taken_back_takes_its_question_back(gate: Gate, approvals: Approvals):
    person, cancellation = Person(None), Cancellation()
    with waiting(gate, person, cancellation) as call:
        pending = wait_for_question(approvals)
        cancellation.cancel()
        with pytest.raises(Cancelled):
            call.result(5)
    assert person.withdrawn.wait(5)
    assert approvals.find_status(pending.id)[0] is Status.WITHDRAWN


def test_the_policy_is_looked_at_again_after_a_yes(gate: Gate, approvals: Approvals):
    now = [ASKS]
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(gate.approve, lambda: now[0], request(), Person(None), Cancellation())
        pending = wait_for_question(approvals)
        now[0] = policy(mode="read_only")
        approvals.allow(pending.id, "approvals")
        with pytest.raises(Forbidden) as caught:
            call.result(5)
    assert caught.value.reason == "read_only"


def test_progress_says_what_is_waited_for(gate: Gate):
    lines: list[str] = []
    gate.approve(asks, request(), Person(Answer.ALLOW), Cancellation(), progress=lines.append)
    assert "exeora approvals allow" in lines[0]


def test_a_preview_is_kept_only_while_the_question_waits(gate: Gate, approvals: Approvals, database):
    for answer in (Answer.ALLOW, Answer.DECLINE):
        with suppress(ApprovalDeclined):
            gate.approve(asks, request(arguments={"content": "s3cret"}), Person(answer), Cancellation())
    with database.read() as connection:
        assert [row["preview"] for row in connection.execute("SELECT preview FROM approvals")] == ["", ""]


# -- the protocol in which the client calls again ----


def ask_by_return(gate: Gate, **changes) -> InputRequired:
    required = gate.approve_by_return(asks, request(**changes), None)
    assert isinstance(required, InputRequired)
    return required


def answer(gate: Gate, required: InputRequired, what: Answer = Answer.ALLOW, **changes):
    return gate.approve_by_return(asks, request(**changes), SignedAnswer(required.state, what))


def test_a_client_that_asks_itself_calls_again_with_the_answer(gate: Gate):
    required = ask_by_return(gate)
    assert "run_command" in required.question.text
    approval = answer(gate, required)
    assert (approval.way, approval.fingerprint) == ("elicitation", request().fingerprint)
    with pytest.raises(ApprovalDeclined):
        answer(gate, ask_by_return(gate), Answer.DECLINE)


def test_an_answer_counts_once(gate: Gate):
    required = ask_by_return(gate)
    answer(gate, required)
    with pytest.raises(Forbidden) as caught:
        answer(gate, required)
    assert caught.value.reason == "approval_used"


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments": {"command": "rm"}},
        {"command": "rm"},
        {"workspace_id": "wsp_2"},
        {"project_id": "p"},
        {"tool": "x"},
    ],
)
def test_an_answer_is_bound_to_the_exact_call(gate: Gate, changes):
    required = ask_by_return(gate)
    with pytest.raises(Forbidden) as caught:
        answer(gate, required, **changes)
    assert caught.value.reason == "approval_mismatch"
    assert answer(gate, required).way == "elicitation"


def test_state_that_was_not_made_here_is_refused(gate: Gate, signer, data: Path, tmp_path: Path):
    state = ask_by_return(gate).state
    payload, mac = state.split(".")
    other = Gate(gate._approvals, gate._attendance, type(signer)(tmp_path / "other.key"))
    forged = [other.approve_by_return(asks, request(), None).state]
    forged += [
        "",
        ".",
        state[:-2],
        payload,
        f"{payload}.",
        f"{payload[:-1]}.{mac}",
        "x" * 10_000,
        f"é.{mac}",
        state + "x",
    ]
    for text in forged:
        with pytest.raises(Forbidden) as caught:
            gate.approve_by_return(asks, request(), SignedAnswer(text, Answer.ALLOW))
        assert caught.value.reason == "approval_mismatch", text


def test_an_answer_after_the_time_is_over_is_a_timeout(approvals: Approvals, attendance: Attendance, signer):
    clock = [1_000.0]
    timed = Gate(Approvals(approvals._database, lambda: clock[0]), attendance, signer, clock=lambda: clock[0])
    required = ask_by_return(timed)
    clock[0] += 89
    assert isinstance(answer(timed, required, Answer.NONE), InputRequired)
    clock[0] += 2
    for _ in range(2):
        with pytest.raises(ApprovalTimeout):
            answer(timed, required)


def test_somebody_at_exeora_approvals_may_be_faster_than_the_client(gate: Gate, approvals: Approvals):
    for what in Answer:
        required = ask_by_return(gate)
        approvals.decline(approvals.list_pending()[0].id, "approvals")
        with pytest.raises(ApprovalDeclined):
            answer(gate, required, what)
    required = ask_by_return(gate)
    approvals.allow(approvals.list_pending()[0].id, "approvals")
    assert answer(gate, required, Answer.DECLINE).way == "approvals"


def test_an_unanswered_return_is_asked_again_under_the_same_state(gate: Gate, approvals: Approvals):
    required = ask_by_return(gate)
    again = answer(gate, required, Answer.NONE)
    assert again.state == required.state
    assert len(approvals.list_pending()) == 1
    assert answer(gate, again).way == "elicitation"


def test_what_needs_no_question_is_not_asked_by_return_either(gate: Gate):
    assert gate.approve_by_return(lambda: OPEN, request(), None).way == "policy"


def test_the_key_is_private_and_made_once(signer, data: Path):
    with ThreadPoolExecutor(8) as pool:
        states = list(pool.map(lambda n: signer.sign(_state(n)), range(32)))
    assert [signer.read(text).question for text in states] == [str(n) for n in range(32)]
    key = data / "approval.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert data.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in data.iterdir() if "approval.key" in path.name] == ["approval.key"]
    key.write_bytes(b"short")
    with pytest.raises(ToolFailed) as caught:
        signer.sign(_state(1))
    assert caught.value.reason == "key_unusable"


# -- approvals themselves ----


def test_only_the_gate_makes_an_approval(gate: Gate):
    with pytest.raises(AssertionError):
        Approval("p", "w", "t", "f", "policy", seal=object())
    approval = gate.approve(lambda: OPEN, request(), None, Cancellation())
    with pytest.raises((ValueError, TypeError)):
        dataclasses.replace(approval, tool="other")
    with pytest.raises(dataclasses.FrozenInstanceError):
        approval.tool = "other"
    importers = [
        str(path.relative_to(TOP))
        for path in (TOP / "exeora_ws").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and any(alias.name == "seal_approval" for alias in node.names)
    ]
    assert importers == ["exeora_ws/policy/gate.py"]


def test_an_approval_is_for_one_call(gate: Gate):
    approval = gate.approve(lambda: OPEN, request(), None, Cancellation())
    approval.require_for(request())
    with pytest.raises(Forbidden) as caught:
        approval.require_for(request(arguments={"command": "rm"}))
    assert caught.value.reason == "approval_mismatch"


def test_an_unknown_question_is_told_apart(approvals: Approvals):
    for verb in (approvals.allow, approvals.decline):
        with pytest.raises(InvalidArguments) as caught:
            verb("nothing", "approvals")
        assert caught.value.reason == "unknown_approval"


def test_of_many_answers_at_once_one_stands(approvals: Approvals):
    for _ in range(5):
        pending = approvals.open(_question(), 90)
        verbs = [approvals.allow, approvals.decline] * 4

        def give(verb, pending=pending) -> bool:
            try:
                verb(pending.id, "approvals")
            except ToolFailed:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(give, verbs)) == 1
        status, _ = approvals.find_status(pending.id)
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(lambda _, p=pending: approvals.take(p.id), range(8))) == (status is Status.ALLOWED)


def test_watching_gives_each_question_once(approvals: Approvals):
    cancellation = Cancellation()
    first, second = approvals.open(_question(), 90), approvals.open(_question(), 90)
    seen = []
    for pending in approvals.watch(cancellation):
        seen.append(pending.id)
        if len(seen) == 2:
            third = approvals.open(_question(), 90)
        if len(seen) == 3:
            cancellation.cancel()
    assert seen[:2] == sorted([first.id, second.id], key=seen.index)
    assert seen[2:] == [third.id]
    assert approvals.list_pending("other") == []
    assert len(approvals.list_pending("app")) == 3


def test_attendance(attendance: Attendance, data: Path):
    assert not attendance.find_somebody()
    with attendance.hold(), attendance.hold():
        assert attendance.find_somebody()
    assert not attendance.find_somebody()
    attendance.mark_seen()
    assert attendance.find_somebody()
    past = time.time() - SEEN_SECONDS - 1
    os.utime(data / "locks" / "approvals.seen", (past, past))
    assert not attendance.find_somebody()


def _question():
    from exeora_ws.policy.question import make_question

    return make_question(request())


def _state(number: int):
    from exeora_ws.policy.signing import State

    return State(str(number), "f" * 64, 1)
