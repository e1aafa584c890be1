"""The record: intent before, outcome after, nothing of what was said, and no call that cannot be recorded."""

import sqlite3
import threading

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.database import Database
from exeora_ws.errors import Forbidden
from exeora_ws.limits import AUDIT_DAYS
from exeora_ws.policy import audit as audit_module
from exeora_ws.policy.audit import OK, Audit, CallFacts, follow_log, read_log

FACTS = CallFacts("claude", "stdio", "app", "feature", "run_command")


def test_the_intent_is_there_before_the_outcome(database: Database):
    audit = Audit(database, clock=lambda: 1_700_000_000.5)
    entry = audit.begin(FACTS)
    (row,) = read_log(database)
    assert (row.id, row.outcome, row.duration_ms, row.time_ms) == (entry, None, None, 1_700_000_000_500)
    assert (row.client, row.face, row.project, row.workspace, row.tool) == tuple(
        getattr(FACTS, name) for name in CallFacts.__slots__
    )
    audit.finish(entry, OK, 12)
    (row,) = read_log(database)
    assert (row.outcome, row.duration_ms) == (OK, 12)
    audit.finish(entry, "TOOL_FAILED", 99)
    assert read_log(database)[0].outcome == OK


def test_a_refused_call_has_its_row_too(database: Database):
    Audit(database).note(FACTS, "FORBIDDEN")
    assert [row.outcome for row in read_log(database)] == ["FORBIDDEN"]


def test_there_is_no_column_for_anything_said(database: Database):
    with database.read() as connection:
        columns = {row["name"] for row in connection.execute("PRAGMA table_info(audit)")}
    assert columns == {"id", "time_ms", "client", "face", "project", "workspace", "tool", "outcome", "duration_ms"}


@pytest.mark.parametrize("breakage", ["DROP TABLE audit", "ALTER TABLE audit RENAME COLUMN tool TO instrument"])
def test_what_cannot_be_recorded_is_refused(database: Database, breakage: str):
    audit = Audit(database)
    with database.write() as connection:
        connection.execute(breakage)
    for record in (audit.begin, lambda facts: audit.note(facts, OK)):
        with pytest.raises(Forbidden) as caught:
            record(FACTS)
        assert caught.value.reason == "audit_unwritable"


def test_a_name_that_is_no_text_is_refused_and_a_long_one_cut(database: Database):
    audit = Audit(database)
    with pytest.raises(Forbidden) as caught:
        audit.begin(CallFacts("\ud800", "stdio", "a", "b", "c"))
    assert caught.value.reason == "audit_unwritable"
    audit.begin(CallFacts("x" * 5_000, "stdio", "a", "b", "c"))
    assert len(read_log(database)[0].client) == 200


def test_an_outcome_that_cannot_be_written_leaves_the_intent(database: Database, monkeypatch: pytest.MonkeyPatch):
    audit = Audit(database)
    entry = audit.begin(FACTS)
    holder = sqlite3.connect(database._path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    database._connection().execute("PRAGMA busy_timeout=10")
    audit.finish(entry, OK, 1)
    holder.execute("ROLLBACK")
    holder.close()
    assert read_log(database)[0].outcome is None


def test_old_rows_and_too_many_rows_go(database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(audit_module, "AUDIT_ROWS", 50)
    monkeypatch.setattr(audit_module, "_PRUNE_EVERY", 10)
    now = [1_000_000_000.0]
    audit = Audit(database, clock=lambda: now[0])
    for _ in range(9):
        audit.note(FACTS, OK)
    now[0] += AUDIT_DAYS * 86_400 + 1
    audit.note(FACTS, OK)
    assert [row.id for row in read_log(database)] == [10]
    for _ in range(110):
        audit.note(FACTS, OK)
    kept = [row.id for row in read_log(database, limit=1_000)]
    assert kept == list(range(71, 121))


def test_the_log_is_read_newest_last_and_filtered(database: Database):
    audit = Audit(database)
    for number in range(5):
        audit.note(CallFacts("c", "cli", f"p{number % 2}", "main", f"t{number}"), OK)
    assert [row.tool for row in read_log(database, limit=3)] == ["t2", "t3", "t4"]
    assert [row.tool for row in read_log(database, project="p1")] == ["t1", "t3"]
    assert [row.tool for row in read_log(database, tool="t4")] == ["t4"]
    assert [row.id for row in read_log(database, after=3)] == [4, 5]


def test_following_gives_each_call_when_its_outcome_is_known(database: Database):
    audit, cancellation = Audit(database), Cancellation()
    audit.note(FACTS, OK)
    slow = audit.begin(FACTS)
    audit.note(FACTS, "FORBIDDEN")
    seen: list[tuple[int, str]] = []
    arrived = threading.Semaphore(0)

    def follow() -> None:
        for row in follow_log(database, cancellation, after=1):
            seen.append((row.id, row.outcome))
            arrived.release()
        database.close()

    thread = threading.Thread(target=follow)
    thread.start()
    assert arrived.acquire(timeout=5)
    assert seen == [(3, "FORBIDDEN")]
    audit.finish(slow, OK, 5)
    assert arrived.acquire(timeout=5)
    audit.note(CallFacts("c", "cli", "other", "main", "t"), OK)
    assert arrived.acquire(timeout=5)
    cancellation.cancel()
    thread.join(5)
    assert seen == [(3, "FORBIDDEN"), (2, OK), (4, OK)]


def test_following_starts_with_what_comes(database: Database):
    audit, cancellation = Audit(database), Cancellation()
    audit.note(FACTS, OK)
    rows = follow_log(database, cancellation)
    cancellation.cancel()
    assert list(rows) == []


def test_many_threads_record_at_once(database: Database):
    audit = Audit(database)

    def call() -> None:
        for _ in range(20):
            audit.finish(audit.begin(FACTS), OK, 1)
        database.close()

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = read_log(database, limit=1_000)
    assert len(rows) == 160
    assert {row.outcome for row in rows} == {OK}
