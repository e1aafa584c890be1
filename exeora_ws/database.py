"""The one SQLite file: registry, audit and live processes (contract, section 12). WAL, one connection a thread.

A room brings its own tables as migrations and asks for them by its name; nothing here knows what they hold.
"""

import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

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

    def read(self) -> "_Reading":
        """Give a connection on which several reads see one state."""
        return _Reading(self._connection())

    def write(self) -> "_Writing":
        """Hold the write lock for one transaction: committed at the end, rolled back whole by any exception.

        Raises:
            ToolFailed: reason `database_busy` after 30 s of somebody else's transaction, `disk_full`.
        """
        return _Writing(self._connection())

    def find_row(self, query: str, values: Sequence[object] = ()) -> sqlite3.Row | None:
        """Give the first row of a query; a single one sees one state without a transaction around it."""
        try:
            # All are fetched, so that the statement is over: one that is not would hold an old state.
            rows = self._connection().execute(query, values).fetchall()
        except sqlite3.Error as error:
            _tell(error)
        return rows[0] if rows else None

    def execute(self, statement: str, values: Sequence[object] = ()) -> int:
        """Write with one statement, which is a transaction of its own; gives the id of the row that it inserted.

        Raises:
            ToolFailed: as `write`.
        """
        try:
            return self._connection().execute(statement, values).lastrowid or 0
        except sqlite3.Error as error:
            _tell(error)

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
            with _Translating():
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
    with _Translating():
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


class _Translating:
    """Around statements: SQLite's own errors become ours here."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            _tell(error)


class _Reading:
    """A transaction that only reads. A class, since every call passes here several times."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN")
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            _tell(error)


class _Writing:
    """A transaction that holds the write lock."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        with _Translating():
            self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error as failure:
                error = failure
        if error is None:
            return
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            _tell(error)


def _tell(error: sqlite3.Error) -> NoReturn:
    """Raise the error that is told; a broken constraint is its table's business, and stays as it is."""
    if isinstance(error, sqlite3.IntegrityError) or not isinstance(error, sqlite3.DatabaseError):
        raise error
    raise _translate(error) from error


def _translate(error: sqlite3.DatabaseError) -> ToolFailed:
    text = str(error)
    if not isinstance(error, sqlite3.OperationalError):
        return ToolFailed(f"exeora.db cannot be used: {text}", reason="database_unusable", hint="exeora doctor")
    if "locked" in text or "busy" in text:
        return ToolFailed("the registry is in use by another exeora", reason="database_busy", hint="try again")
    if "full" in text:
        return ToolFailed("the disk that holds the registry is full", reason="disk_full")
    return ToolFailed(
        f"exeora.db cannot be used: {text}",
        reason="database_unusable",
        hint="see that the disk of the data folder (EXEORA_DATA_DIR) has room and can be written",
    )
