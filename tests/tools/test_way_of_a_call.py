"""The way of a call: policy, then a person where one is asked, a row before and after, bugs told to nobody."""

import json
import logging
import sqlite3
import threading
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.errors import Code
from exeora_ws.policy.gate import Answer
from exeora_ws.tools.call import Asking, Caller, Face, Outcome, RawCall, Scope
from exeora_ws.tools.catalog import CATALOG
from exeora_ws.workspaces.place import Project


def caller(project: Project, **facts: object) -> Caller:
    return Caller(Face.STDIO, "test/1", "session", Scope(bound=project.id), **facts)


def create(app: App, project: Project, branch: str = "x", **facts: object) -> Outcome:
    return app.calls.make(RawCall("create_workspace", {"branch": branch}), caller(project, **facts))


def reason(outcome: Outcome) -> tuple[str, str | None]:
    assert outcome.error is not None, outcome
    return str(outcome.error.code), outcome.error.reason


def branches(repository: Path) -> list[str]:
    return sorted(p.name for p in (repository / ".git/refs/heads").iterdir())


def audit(app: App) -> list[tuple]:
    with sqlite3.connect(app.places.database) as connection:
        return connection.execute("SELECT face, project, workspace, tool, outcome FROM audit ORDER BY id").fetchall()


class Person:
    """A face that can ask, with a person who always says the same."""

    way = "terminal"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def ask(self, question, seconds, withdrawn) -> Answer:
        self.asked.append(question.text)
        return self.answer


def test_what_a_policy_refuses_does_not_run(app: App, project: Project, repository: Path):
    (repository / "exeora.toml").write_text('mode = "read_only"\n')
    assert reason(create(app, project)) == ("FORBIDDEN", "read_only")
    (repository / "exeora.toml").write_text('tools = ["list_git_workspaces"]\n')
    refused = create(app, project)
    assert reason(refused) == ("FORBIDDEN", "tool_not_permitted")
    assert refused.error is not None
    assert refused.error.data == {"permitted": ["list_git_workspaces"]}
    assert branches(repository) == ["main"]


def test_a_policy_that_cannot_be_read_closes_to_read_only_and_names_the_line(app, project, repository: Path):
    (repository / "exeora.toml").write_text('mode = "allow_all"\nallow = [oops\n')
    refused = create(app, project)
    assert reason(refused) == ("FORBIDDEN", "policy_invalid")
    assert refused.error is not None
    assert "line 2" in refused.error.message


def test_a_hidden_tool_is_not_offered(app: App, project: Project, repository: Path):
    scope = Scope(bound=project.id)
    assert {t.name for t in app.calls.offered(scope)} == {n for n, t in CATALOG.items() if not t.account_only}
    (repository / "exeora.toml").write_text('mode = "read_only"\n')
    assert all(t.hints.read_only for t in app.calls.offered(scope))
    everything = {t.name for t in app.calls.offered(Scope())}
    assert {"list_projects", "list_workspaces"} <= everything


def test_a_read_only_connection_may_only_read(app: App, project: Project, repository: Path):
    reader = Caller(Face.HTTP, "test", "s", Scope(bound=project.id, read_only=True))
    outcome = app.calls.make(RawCall("create_workspace", {"branch": "x"}), reader)
    assert reason(outcome) == ("FORBIDDEN", "token_read_only")
    assert app.calls.make(RawCall("list_git_workspaces", {}), reader).error is None
    assert branches(repository) == ["main"]


@pytest.mark.parametrize(("answer", "code"), [(Answer.DECLINE, "APPROVAL_DECLINED"), (Answer.ALLOW, None)])
def test_a_person_is_asked_and_what_was_shown_is_what_runs(app, project, repository: Path, answer, code):
    (repository / "exeora.toml").write_text("approve = true\n")
    person = Person(answer)
    outcome = create(app, project, "feature/shown", asking=Asking(person))
    assert len(person.asked) == 1
    for fact in ("app", "main", "create_workspace", "feature/shown"):
        assert fact in person.asked[0]
    assert (None if outcome.error is None else str(outcome.error.code)) == code
    assert (repository / ".git/refs/heads/feature").exists() is (code is None)


def test_nobody_to_ask_is_a_refusal(app: App, project: Project, repository: Path):
    (repository / "exeora.toml").write_text("approve = true\n")
    assert reason(create(app, project)) == ("FORBIDDEN", "nobody_to_ask")
    assert app.calls.make(RawCall("list_git_workspaces", {}), caller(project)).error is None
    assert branches(repository) == ["main"]


def test_a_client_that_asks_itself_gets_the_question_and_calls_again(app: App, project: Project, repository: Path):
    from exeora_ws.policy.gate import SignedAnswer

    (repository / "exeora.toml").write_text("approve = true\n")
    first = create(app, project, asking=Asking(by_return=True))
    assert first.question is not None
    assert branches(repository) == ["main"]
    other = create(
        app, project, "y", asking=Asking(by_return=True, answer=SignedAnswer(first.question.state, Answer.ALLOW))
    )
    assert reason(other) == ("FORBIDDEN", "approval_mismatch")
    answered = Asking(by_return=True, answer=SignedAnswer(first.question.state, Answer.ALLOW))
    assert create(app, project, asking=answered).error is None
    assert branches(repository) == ["main", "x"]
    assert reason(create(app, project, asking=answered)) == ("FORBIDDEN", "approval_used")


def test_every_call_leaves_one_row_without_arguments(app: App, project: Project):
    create(app, project, "secret-branch-name")
    create(app, project, "..")
    app.calls.make(RawCall("no_such_tool", {"x": "y"}), caller(project))
    app.calls.make(RawCall("create_workspace", {"branch": "z", "workspace": "nowhere"}), caller(project))
    assert audit(app) == [
        ("stdio", "app", "main", "create_workspace", "OK"),
        ("stdio", "app", "main", "create_workspace", "INVALID_ARGUMENTS"),
        ("stdio", "", "", "no_such_tool", "UNKNOWN_TOOL"),
        ("stdio", "", "", "create_workspace", "UNKNOWN_WORKSPACE"),
    ]
    for name in ("exeora.db", "exeora.db-wal"):
        file = app.places.data / name
        # The branch stands in the registry, as a workspace's; never in the audit's columns.
        assert b"INVALID_ARGUMENTS" in file.read_bytes() or name == "exeora.db"
    with sqlite3.connect(app.places.database) as connection:
        dump = json.dumps([list(row) for row in connection.execute("SELECT * FROM audit")])
    assert "secret" not in dump


def test_the_intent_is_written_before_the_call_runs(app: App, project: Project, monkeypatch: pytest.MonkeyPatch):
    seen: list[list[tuple]] = []
    create_of = app.inventory.create
    monkeypatch.setattr(app.inventory, "create", lambda *a: seen.append(audit(app)) or create_of(*a))
    create(app, project)
    assert seen == [[("stdio", "app", "main", "create_workspace", None)]]


def test_what_cannot_be_recorded_is_not_done(app: App, project: Project, repository: Path):
    with sqlite3.connect(app.places.database) as connection:
        connection.execute("DROP TABLE audit")
    assert reason(create(app, project)) == ("FORBIDDEN", "audit_unwritable")
    assert branches(repository) == ["main"]


def test_a_bug_is_an_id_and_nothing_else(app: App, project: Project, monkeypatch, caplog: pytest.LogCaptureFixture):
    def burst(*_: object) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(app.inventory, "create", burst)
    with caplog.at_level(logging.ERROR, "exeora"):
        outcome = create(app, project)
    assert outcome.error is not None
    assert outcome.error.code is Code.INTERNAL_ERROR
    identity = outcome.error.data["id"]
    assert "hunter2" not in json.dumps(outcome.to_dict())
    assert identity in caplog.text
    assert "hunter2" in caplog.text
    assert audit(app)[-1][-1] == "INTERNAL_ERROR"


def test_a_cancelled_call_does_not_run(app: App, project: Project, repository: Path):
    waiting = caller(project)
    waiting.cancellation.cancel()
    outcome = app.calls.make(RawCall("create_workspace", {"branch": "x"}), waiting)
    assert reason(outcome)[0] == "CANCELLED"
    assert branches(repository) == ["main"]


def test_a_call_that_waits_for_a_person_can_be_taken_back(app: App, project: Project, repository: Path):
    (repository / "exeora.toml").write_text("approve = true\n")
    asked = threading.Event()

    class Slow(Person):
        def ask(self, question, seconds, withdrawn) -> Answer:
            asked.set()
            withdrawn.wait(10)
            return Answer.NONE

    waiting = caller(project, asking=Asking(Slow(Answer.NONE)))
    outcomes: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(app.calls.make(RawCall("create_workspace", {"branch": "x"}), waiting))
    )
    thread.start()
    assert asked.wait(10)
    waiting.cancellation.cancel()
    thread.join(5)
    assert reason(outcomes[0])[0] == "CANCELLED"
    assert branches(repository) == ["main"]


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_every_tool_is_described_whole(name: str):
    tool = CATALOG[name]
    for account in (False, True):
        schema = tool.input_schema(account=account)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert all("description" in field for field in schema["properties"].values()), schema
        assert ("project" in schema["properties"]) is (account and tool.needs.value != "nothing")
    assert tool.output_schema["type"] == "object"
    assert len(tool.description) > 60
    assert set(tool.hints.to_dict()) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
