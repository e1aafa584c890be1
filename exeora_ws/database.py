"""The one SQLite file: registry, audit and live processes (contract, section 12). WAL, one connection a thread.

A room brings its own tables as migrations and asks for them by its name; nothing here knows what they hold.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from exeora_ws.errors import ToolFailed
from exeora_ws.locks import hold_lock
from exeora_ws.storage import make_private_folder

_BUSY_SECONDS = 30.0


class Database:
    """`exeora.db`. Any number of processes and threads may have it open.

    Args:
        path: the file; made 0600 in a folder 0700 when missing.
        migrations: for each room, the SQL scripts that bring its tables from nothing to now, in order. A script that
            has shipped is never edited; a change is one more script.

    Raises:
        ToolFailed: reason `database_unusable` when it cannot be opened or belongs to a newer version.
    """

    def __init__(self, path: Path, migrations: dict[str, Sequence[str]]) -> None:
        self._path = path
        self._local = threading.local()
        self._migrate(migrations)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Give a connection on which several reads see one state."""
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            with _translated():
                yield connection
        finally:
            connection.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock for one transaction: committed at the end, rolled back whole by any exception.

        Raises:
            ToolFailed: reason `database_busy` after 30 s of somebody else's transaction, `disk_full`.
        """
        connection = self._connection()
        with _translated():
            connection.execute("BEGIN IMMEDIATE")
        try:
            with _translated():
                yield connection
                connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            del self._local.connection

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None or self._local.pid != os.getpid():
            connection = _connect(self._path)
            self._local.connection = connection
            self._local.pid = os.getpid()
        return connection

    def _migrate(self, migrations: dict[str, Sequence[str]]) -> None:
        versions = self._versions()
        # Other rooms' tables are not our business: whoever opens the file with fewer rooms must not take the long way.
        if versions is not None and all(versions.get(room) == len(scripts) for room, scripts in migrations.items()):
            return
        make_private_folder(self._path.parent)
        # Two processes that switch a new file to WAL at once get SQLITE_BUSY in spite of the busy timeout.
        with hold_lock(self._path.with_name("database.lock"), seconds=_BUSY_SECONDS, what="the database"):
            if not self._path.exists():
                # Never one that is there: closing it would let go of the locks that this process's other connections
                # hold on it, and another process would then take itself for the last one and delete their log.
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with _translated():
                connection = self._connection()
                connection.execute("PRAGMA journal_mode=WAL")
                for room, scripts in migrations.items():
                    _bring_up(connection, room, scripts)

    def _versions(self) -> dict[str, int] | None:
        """Say which scripts have run; None when there is no database yet."""
        if not self._path.exists():
            return None
        try:
            rows = self._connection().execute("SELECT room, version FROM schema_versions").fetchall()
        except sqlite3.OperationalError:
            return None
        return {str(room): int(version) for room, version in rows}


def _connect(path: Path) -> sqlite3.Connection:
    with _translated():
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def _bring_up(connection: sqlite3.Connection, room: str, scripts: Sequence[str]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_versions (room TEXT PRIMARY KEY, version INTEGER NOT NULL)"
        )
        row = connection.execute("SELECT version FROM schema_versions WHERE room = ?", (room,)).fetchone()
        have = int(row[0]) if row else 0
        if have > len(scripts):
            raise ToolFailed(
                "exeora.db was written by a newer exeora", reason="database_unusable", hint="upgrade this exeora"
            )
        for script in scripts[have:]:
            for statement in script.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
        connection.execute("INSERT OR REPLACE INTO schema_versions VALUES (?, ?)", (room, len(scripts)))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _translated() -> Iterator[None]:
    """SQLite's own errors become ours here; a broken constraint is its table's business."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.OperationalError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise ToolFailed(
                "the registry is in use by another exeora", reason="database_busy", hint="try again"
            ) from error
        if "full" in text:
            raise ToolFailed("the disk that holds the registry is full", reason="disk_full") from error
        raise ToolFailed(
            f"exeora.db cannot be used: {text}",
            reason="database_unusable",
            hint="see that the disk of the data folder (EXEORA_DATA_DIR) has room and can be written",
        ) from error
    except sqlite3.DatabaseError as error:
        raise ToolFailed(
            f"exeora.db cannot be used: {error}", reason="database_unusable", hint="exeora doctor"
        ) from error
