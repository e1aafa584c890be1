"""The tables of this room, and whether there is anything in them: what every start asks, without the room itself."""

from collections.abc import Sequence

from exeora_ws.database import Database

PROCESS_MIGRATIONS: Sequence[str] = (
    """
CREATE TABLE process_servers (
    tag TEXT PRIMARY KEY, pid INTEGER NOT NULL, started INTEGER NOT NULL, boot TEXT NOT NULL, namespace TEXT NOT NULL
);
CREATE TABLE live_processes (
    id TEXT PRIMARY KEY, server TEXT NOT NULL REFERENCES process_servers (tag) ON DELETE CASCADE,
    kind TEXT NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL, tag TEXT NOT NULL,
    leads_session INTEGER NOT NULL, project TEXT NOT NULL, workspace TEXT NOT NULL, command TEXT NOT NULL,
    since REAL NOT NULL
)
""",
)
"""The tables of this room, for `Database`."""


def has_servers(database: Database) -> bool:
    """Whether any server is on record, alive or not: without one nothing can have been left running."""
    with database.read() as connection:
        return connection.execute("SELECT 1 FROM process_servers LIMIT 1").fetchone() is not None
