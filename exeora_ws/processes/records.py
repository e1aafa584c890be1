"""Live processes in the registry database, so that every server on the machine sees and can end them.

A row is a pointer; what runs is what the kernel says. A row whose process has gone counts for nothing, so rows are
deleted when there is an occasion. Every server has a row too, with the word that all it starts carries: what is left
after its SIGKILL is found by that, also when it was killed between starting a command and writing its row.
"""

import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from sqlite3 import Connection, Row

from exeora_ws.database import Database
from exeora_ws.processes.command import Owner
from exeora_ws.processes.ending import end_trees
from exeora_ws.processes.spawn import get_server_tag
from exeora_ws.processes.table import Identity, find_entry, is_running, load_boot_id, load_pid_namespace, require_entry
from exeora_ws.processes.tree import Tree

COMMAND_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class LiveProcess:
    """A command that runs now, whoever started it."""

    id: str
    kind: str
    """`run` for one that somebody waits for, `start` for one that runs on its own."""
    project: str
    workspace: str
    command: str
    """At most 1,000 characters of it."""
    pid: int
    since: float
    """Seconds of the epoch."""
    server_pid: int


class Records:
    """The rows of this process's commands. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._done: set[str] = set()
        self._announced = False

    def announce(self) -> None:
        """Write this server's row, once: before the first command, and before a helper that shall not outlive us.

        Raises:
            ToolFailed: the database cannot be written.
        """
        if not self._announced:
            with self._database.write() as connection:
                self._insert_server(connection)
            self._announced = True

    def add(self, process_id: str, kind: str, owner: Owner, line: str, tree: Tree) -> None:
        """Write a command's row.

        Raises:
            ToolFailed: the database cannot be written.
        """
        row = (process_id, get_server_tag(), kind, tree.root.pid, tree.root.started, tree.tag, tree.leads_session)
        # The words of a shell may be bytes that are no text; SQLite takes none of them.
        shown = line[:COMMAND_CHARACTERS].encode("utf-8", "replace").decode()
        about = (owner.project, owner.workspace, shown, time.time())
        with self._database.write() as connection:
            self._insert_server(connection)
            connection.execute("INSERT INTO live_processes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row + about)
            self._delete(connection)

    def mark_done(self, process_id: str) -> None:
        """Note that a row can go; touches no database, so that the loop may call it."""
        with self._lock:
            self._done.add(process_id)

    def tidy(self) -> None:
        """Delete the rows that can go."""
        if self._done:
            with self._database.write() as connection:
                self._delete(connection)

    def close(self) -> None:
        """Delete what is done, and the server's row when nothing of it is left."""
        self._announced = False
        with self._database.write() as connection:
            self._delete(connection)
            connection.execute(
                "DELETE FROM process_servers WHERE tag = ? AND tag NOT IN (SELECT server FROM live_processes)",
                (get_server_tag(),),
            )

    @staticmethod
    def _insert_server(connection: Connection) -> None:
        us = require_entry(os.getpid()).identity
        row = (get_server_tag(), us.pid, us.started, load_boot_id(), load_pid_namespace())
        connection.execute("INSERT OR IGNORE INTO process_servers VALUES (?, ?, ?, ?, ?)", row)

    def _delete(self, connection: Connection) -> None:
        with self._lock:
            done, self._done = self._done, set()
        connection.executemany("DELETE FROM live_processes WHERE id = ?", [(process_id,) for process_id in done])


def list_live(database: Database) -> list[LiveProcess]:
    """Every command that runs now, of every server on the machine, oldest first."""
    return [_show(row) for row in _load_running(database)]


def stop_workspace_everywhere(database: Database, workspace: str) -> list[LiveProcess]:
    """End whatever runs in a workspace, whichever server started it; gives what was ended. Takes up to 7 s.

    A server whose command is ended this way reports it as ended by a signal.
    """
    return _stop(row for row in _load_running(database) if row["workspace"] == workspace)


def stop_process(database: Database, process_id: str) -> LiveProcess | None:
    """End one command by its id, whichever server started it; None when no such command runs."""
    stopped = _stop(row for row in _load_running(database) if row["id"] == process_id)
    return stopped[0] if stopped else None


def _stop(rows: Iterable[Row]) -> list[LiveProcess]:
    chosen = list(rows)
    end_trees(_tree_of(row) for row in chosen)
    return [_show(row) for row in chosen]


def reap_leftovers(database: Database) -> list[LiveProcess]:
    """End what servers left that were killed before they could; gives the commands on record that still ran.

    With nothing to do it costs one query. Servers of another container are left alone: their pids mean nothing here.
    """
    with database.read() as connection:
        servers = connection.execute("SELECT * FROM process_servers").fetchall()
    gone = [server for server in servers if _is_gone(server)]
    if not gone:
        return []
    tags = {str(server["tag"]) for server in gone}
    rows = [row for row in _load_rows(database) if row["server"] in tags]
    left = [_show(row) for row in rows if is_running(_identity(row))]
    unnamed = [Tree(_identity(s), str(s["tag"]), leads_session=False) for s in gone if s["boot"] == load_boot_id()]
    end_trees([*(_tree_of(row) for row in rows), *unnamed])
    with database.write() as connection:
        connection.executemany("DELETE FROM process_servers WHERE tag = ?", [(tag,) for tag in tags])
    return left


def _load_rows(database: Database) -> list[Row]:
    """Load commands of this boot and this pid namespace; the others cannot be looked at from here."""
    query = (
        "SELECT p.*, s.pid AS server_pid FROM live_processes p JOIN process_servers s ON s.tag = p.server "
        "WHERE boot = ? AND namespace = ? ORDER BY since"
    )
    with database.read() as connection:
        rows: list[Row] = connection.execute(query, (load_boot_id(), load_pid_namespace())).fetchall()
    return rows


def _load_running(database: Database) -> list[Row]:
    return [row for row in _load_rows(database) if is_running(_identity(row))]


def _is_gone(server: Row) -> bool:
    if server["boot"] != load_boot_id():
        return True
    if server["namespace"] != load_pid_namespace():
        return False
    entry = find_entry(server["pid"])
    return entry is None or entry.zombie or entry.identity != _identity(server)


def _identity(row: Row) -> Identity:
    return Identity(int(row["pid"]), int(row["started"]))


def _root_of(row: Row) -> Identity:
    return _identity(row)


def _tree_of(row: Row) -> Tree:
    return Tree(_identity(row), str(row["tag"]), leads_session=bool(row["leads_session"]))


def _show(row: Row) -> LiveProcess:
    return LiveProcess(
        id=row["id"],
        kind=row["kind"],
        project=row["project"],
        workspace=row["workspace"],
        command=row["command"],
        pid=row["pid"],
        since=row["since"],
        server_pid=row["server_pid"],
    )
