"""Questions that wait for a person, in the database, so that any window of the user's can answer them."""

import base64
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from exeora_ws.cancellation import Cancellation
from exeora_ws.database import Database
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.policy.question import Question

APPROVAL_MIGRATIONS = (
    """
    CREATE TABLE approvals (
        id TEXT PRIMARY KEY,
        fingerprint TEXT NOT NULL,
        project TEXT NOT NULL,
        workspace TEXT NOT NULL,
        tool TEXT NOT NULL,
        client TEXT NOT NULL,
        preview TEXT NOT NULL,
        omitted INTEGER NOT NULL,
        created_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        status TEXT NOT NULL,
        way TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX approvals_by_status ON approvals (status, created_ms);
    """,
)

_KEPT_MS = 3_600_000
"""How long an answered question is remembered, without its preview, so that its answer cannot be used twice."""
_WATCH_SECONDS = 0.2


class Status(StrEnum):
    """What has become of a question."""

    PENDING = "pending"
    ALLOWED = "allowed"
    DECLINED = "declined"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    USED = "used"


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that waits. Times are milliseconds since 1970."""

    id: str
    project: str
    workspace: str
    tool: str
    client: str
    preview: str
    omitted: int
    created_ms: int
    expires_ms: int

    @property
    def text(self) -> str:
        """Everything a person is shown."""
        return Question(
            self.project, self.workspace, self.tool, self.client, self.preview, self.omitted, fingerprint=""
        ).text


class Approvals:
    """The questions of this user. Any number of processes may ask and answer; the first answer stands.

    Args:
        database: opened with `APPROVAL_MIGRATIONS`.
        clock: seconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def open(self, question: Question, seconds: float) -> Pending:
        """Put a question where it can be answered for so many seconds."""
        now = self._now_ms()
        pending = Pending(
            id=base64.b32encode(secrets.token_bytes(5)).decode().lower(),
            project=question.project,
            workspace=question.workspace,
            tool=question.tool,
            client=question.client,
            preview=question.preview,
            omitted=question.omitted,
            created_ms=now,
            expires_ms=now + int(seconds * 1000),
        )
        with self._database.write() as connection:
            connection.execute("DELETE FROM approvals WHERE expires_ms < ?", (now - _KEPT_MS,))
            # Nobody came back for these: a client that was to call again, a server that was killed.
            connection.execute(
                "UPDATE approvals SET status = 'expired', preview = '' WHERE status = 'pending' AND expires_ms <= ?",
                (now,),
            )
            connection.execute(
                "INSERT INTO approvals (id, fingerprint, project, workspace, tool, client, preview, omitted, "
                "created_ms, expires_ms, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')",
                (
                    pending.id, question.fingerprint, pending.project, pending.workspace, pending.tool, pending.client,
                    pending.preview, pending.omitted, pending.created_ms, pending.expires_ms,
                ),
            )  # fmt: skip
        return pending

    def list_pending(self, project: str | None = None) -> list[Pending]:
        """List what waits for an answer now, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM approvals WHERE status = 'pending' AND expires_ms > ? AND (? IS NULL OR project = ?) "
                "ORDER BY created_ms, id",
                (self._now_ms(), project, project),
            ).fetchall()
        return [_make_pending(row) for row in rows]

    def allow(self, identifier: str, way: str) -> None:
        """Say yes. `way` is how: `approvals`, `terminal`, `elicitation`.

        Raises:
            InvalidArguments: reason `unknown_approval`: no such question.
            ToolFailed: reason `already_answered`, also when its time is over.
        """
        self._answer(identifier, Status.ALLOWED, way)

    def decline(self, identifier: str, way: str) -> None:
        """Say no; raises as `allow` does."""
        self._answer(identifier, Status.DECLINED, way)

    def find_status(self, identifier: str) -> tuple[Status, str] | None:
        """Say what has become of a question, and how; None when nobody remembers it."""
        with self._database.read() as connection:
            row = connection.execute("SELECT status, way FROM approvals WHERE id = ?", (identifier,)).fetchone()
        return None if row is None else (Status(row["status"]), str(row["way"]))

    def close(self, identifier: str, status: Status) -> bool:
        """End a question that nobody has answered; False when somebody just did."""
        return self._change(identifier, Status.PENDING, status, "")

    def take(self, identifier: str) -> bool:
        """Use a yes up; False when it was used before."""
        return self._change(identifier, Status.ALLOWED, Status.USED, None)

    def watch(self, cancellation: Cancellation) -> Iterator[Pending]:
        """Give each question as it comes, until cancelled. Looks about five times a second."""
        shown: set[str] = set()
        while not cancellation.cancelled:
            pending = self.list_pending()
            yield from (each for each in pending if each.id not in shown)
            shown = {each.id for each in pending}
            cancellation.wait(_WATCH_SECONDS)

    def _answer(self, identifier: str, status: Status, way: str) -> None:
        if self._change(identifier, Status.PENDING, status, way, before_ms=self._now_ms()):
            return
        known = self.find_status(identifier)
        if known is None:
            raise InvalidArguments(
                f"there is no question {identifier!r}", reason="unknown_approval", hint="exeora approvals list"
            )
        became = Status.EXPIRED if known[0] is Status.PENDING else known[0]
        raise ToolFailed(f"question {identifier!r} is closed already: {became}", reason="already_answered")

    def _change(self, identifier: str, old: Status, new: Status, way: str | None, *, before_ms: int = 0) -> bool:
        """The preview goes as soon as nobody needs it any more: arguments are kept nowhere."""
        with self._database.write() as connection:
            changed = connection.execute(
                "UPDATE approvals SET status = ?, way = COALESCE(?, way), preview = '' "
                "WHERE id = ? AND status = ? AND expires_ms > ?",
                (new, way, identifier, old, before_ms),
            )
            return changed.rowcount == 1

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _make_pending(row: sqlite3.Row) -> Pending:
    return Pending(**{name: row[name] for name in Pending.__slots__})
