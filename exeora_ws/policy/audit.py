"""One row a call in the registry database: the intent before it runs, the outcome after (contract, section 8).

Never arguments, output or names of files: there is no column for them.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from exeora_ws.cancellation import Cancellation
from exeora_ws.database import Database
from exeora_ws.errors import ExeoraError, Forbidden
from exeora_ws.limits import AUDIT_DAYS, AUDIT_ROWS

AUDIT_MIGRATIONS = (
    """
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time_ms INTEGER NOT NULL,
        client TEXT NOT NULL,
        face TEXT NOT NULL,
        project TEXT NOT NULL,
        workspace TEXT NOT NULL,
        tool TEXT NOT NULL,
        outcome TEXT,
        duration_ms INTEGER
    );
    CREATE INDEX audit_by_time ON audit (time_ms);
    CREATE INDEX audit_by_project ON audit (project, id);
    """,
)

OK = "OK"
"""The outcome of a call that succeeded; a failed one has its error code."""

_PRUNE_EVERY = 200
_FIELD_CHARACTERS = 200
_FOLLOW_SECONDS = 0.2
_FOLLOW_OPEN_MS = 600_000


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Who called what, where. Slugs and names only; empty where there is none."""

    client: str
    face: str
    project: str
    workspace: str
    tool: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One call. `outcome` None: it was about to run, and nobody wrote what became of it (yet)."""

    id: int
    time_ms: int
    client: str
    face: str
    project: str
    workspace: str
    tool: str
    outcome: str | None
    duration_ms: int | None


class Audit:
    """Writes the record. Thread-safe.

    Args:
        database: opened with `AUDIT_MIGRATIONS`.
        clock: seconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def begin(self, facts: CallFacts) -> int:
        """Record that a call is about to run; gives the row's id.

        Raises:
            Forbidden: reason `audit_unwritable`: what cannot be recorded is not done.
        """
        return self._insert(facts, None, None)

    def finish(self, entry: int, outcome: str, duration_ms: int) -> None:
        """Record what became of it. If that fails the intent stands, and the result is not lost over it."""
        with suppress(ExeoraError, sqlite3.Error):
            self._database.execute(
                "UPDATE audit SET outcome = ?, duration_ms = ? WHERE id = ? AND outcome IS NULL",
                (outcome, duration_ms, entry),
            )

    def note(self, facts: CallFacts, outcome: str, duration_ms: int = 0) -> None:
        """Record a call that never got to run: refused, declined, or not understood.

        Raises:
            Forbidden: reason `audit_unwritable`.
        """
        self._insert(facts, outcome, duration_ms)

    def _insert(self, facts: CallFacts, outcome: str | None, duration_ms: int | None) -> int:
        now = int(self._clock() * 1000)
        names = (facts.client, facts.face, facts.project, facts.workspace, facts.tool)
        try:
            entry = self._database.execute(
                "INSERT INTO audit (time_ms, client, face, project, workspace, tool, outcome, duration_ms) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (now, *(name[:_FIELD_CHARACTERS] for name in names), outcome, duration_ms),
            )
            if entry % _PRUNE_EVERY == 0:
                _prune(self._database, entry, now)
        except (ExeoraError, sqlite3.Error, UnicodeEncodeError) as error:
            raise Forbidden(
                "the call was not made because it could not be recorded",
                reason="audit_unwritable",
                hint="exeora doctor",
            ) from error
        return entry


def _prune(database: Database, newest: int, now_ms: int) -> None:
    """Ids only grow, so both bounds are ranges of an index."""
    oldest_ms = now_ms - AUDIT_DAYS * 86_400_000
    database.execute("DELETE FROM audit WHERE id <= ? OR time_ms < ?", (newest - AUDIT_ROWS, oldest_ms))


def read_log(
    database: Database, *, limit: int = 100, after: int = 0, project: str | None = None, tool: str | None = None
) -> list[AuditEntry]:
    """Read the newest entries, oldest of these first.

    Args:
        database: opened with `AUDIT_MIGRATIONS`.
        limit: how many at most.
        after: only entries with a greater id.
        project: only this project's, by slug.
        tool: only this tool's.
    """
    with database.read() as connection:
        rows = connection.execute(
            "SELECT * FROM audit WHERE id > ? AND (? IS NULL OR project = ?) AND (? IS NULL OR tool = ?) "
            "ORDER BY id DESC LIMIT ?",
            (after, project, project, tool, tool, limit),
        ).fetchall()
    return [AuditEntry(**dict(row)) for row in reversed(rows)]


def follow_log(
    database: Database, cancellation: Cancellation, *, after: int | None = None, project: str | None = None
) -> Iterator[AuditEntry]:
    """Give each call once its outcome is known, until cancelled. Looks for news about five times a second.

    Args:
        database: opened with `AUDIT_MIGRATIONS`.
        cancellation: ends it.
        after: only entries with a greater id; None starts with what comes from now on.
        project: only this project's, by slug.
    """
    last = _newest_id(database) if after is None else after
    waiting: dict[int, AuditEntry] = {}
    while True:
        fresh = read_log(database, limit=AUDIT_ROWS, after=last, project=project)
        last = fresh[-1].id if fresh else last
        yield from (entry for entry in fresh if entry.outcome is not None)
        waiting |= {entry.id: entry for entry in fresh if entry.outcome is None}
        for entry in _reread(database, waiting):
            if entry.outcome is not None:
                yield entry
            if entry.outcome is not None or time.time() * 1000 - entry.time_ms > _FOLLOW_OPEN_MS:
                del waiting[entry.id]
        if cancellation.wait(_FOLLOW_SECONDS):
            return


def _reread(database: Database, waiting: dict[int, AuditEntry]) -> list[AuditEntry]:
    if not waiting:
        return []
    marks = ",".join("?" * len(waiting))
    with database.read() as connection:
        rows = connection.execute(
            f"SELECT * FROM audit WHERE id IN ({marks}) ORDER BY id",  # noqa: S608 - only question marks are put in
            tuple(waiting),
        ).fetchall()
    return [AuditEntry(**dict(row)) for row in rows]


def _newest_id(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM audit").fetchone()[0])
