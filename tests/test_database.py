"""One file, many connections, in one process and in several."""

import subprocess
import sys

from exeora_ws.database import Database

from support.commandline import child_environment

NOTES = ("CREATE TABLE notes (text TEXT NOT NULL);",)
OTHERS = ("CREATE TABLE others (text TEXT NOT NULL);",)

WRITE = """
import sys
from pathlib import Path
from exeora_ws.database import Database
with Database(Path(sys.argv[1]), {"notes": ("CREATE TABLE notes (text TEXT NOT NULL);",)}).write() as connection:
    connection.execute("INSERT INTO notes VALUES ('from another process')")
"""


def list_notes(database):
    with database.read() as connection:
        return [row[0] for row in connection.execute("SELECT text FROM notes")]


def test_a_room_that_comes_later_cuts_no_connection_off(sealed, tmp_path):
    """A second set of tables is added while a connection is open: what other processes write is still seen, and what
    is written here is still there for them."""
    path = tmp_path / "exeora.db"
    first = Database(path, {"notes": NOTES})
    assert list_notes(first) == []
    Database(path, {"others": OTHERS})
    for _ in range(2):
        subprocess.run([sys.executable, "-c", WRITE, str(path)], env=child_environment(sealed), check=True)
    assert list_notes(first) == ["from another process"] * 2
    with first.write() as connection:
        connection.execute("INSERT INTO notes VALUES ('from here')")
    first.close()
    assert len(list_notes(Database(path, {"notes": NOTES}))) == 3
