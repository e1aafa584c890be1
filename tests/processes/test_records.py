import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.database import Database
from exeora_ws.errors import PathNotFound
from exeora_ws.processes.output import Tail
from exeora_ws.processes.records import (
    Records,
    list_live,
    reap_leftovers,
    stop_process,
    stop_workspace_everywhere,
)
from exeora_ws.processes.run import run
from exeora_ws.processes.schema import PROCESS_MIGRATIONS
from exeora_ws.processes.supervisor import Supervisor

from support.processes import OWNER, PROGRAMS, eventually, find_tagged

SERVER = Path(__file__).with_name("server.py")


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "exeora.db", {"processes": PROCESS_MIGRATIONS})


@pytest.fixture
def recorded(database):
    supervisor = Supervisor(records=Records(database))
    yield supervisor
    supervisor.close()


@pytest.fixture
def serve(tmp_path, database):
    """Start another server on the same database; gives it and the word that all it started carries."""
    servers = []

    def serve(*lines, kind="start", workspace="wsp_a"):
        top = Path(__file__).parents[2]
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(tmp_path / "exeora.db"), kind, workspace, *lines],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(top), "PROGRAMS": str(PROGRAMS)},
        )
        servers.append(server)
        return server, server.stdout.readline().decode().strip()

    yield serve
    for server in servers:
        server.kill()
        server.wait()
        server.stdout.close()
    reap_leftovers(database)


def rows(database, table="live_processes"):
    with database.read() as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def test_a_started_command_stands_in_the_list_until_it_ends(recorded, database, shell):
    started = recorded.start(shell("exec sleep 300"), OWNER)
    (live,) = list_live(database)
    assert (live.id, live.kind, live.project, live.workspace) == (started.id, "start", OWNER.project, OWNER.workspace)
    assert (live.command, live.pid, live.server_pid) == ("exec sleep 300", started.pid, os.getpid())
    assert abs(live.since - time.time()) < 10
    recorded.kill(started.id, OWNER)
    assert list_live(database) == []


def test_a_command_that_is_waited_for_stands_there_too_and_its_row_goes(recorded, database, shell):
    seen = []

    def look(_stream, _data):
        seen.extend(list_live(database))

    for _ in range(3):
        more = {"capture": Tail(100), "timeout": 5, "cancellation": Cancellation(), "on_output": look}
        run(recorded, shell("echo x; sleep 0.2"), OWNER, **more)
    assert [live.kind for live in seen] == ["run"] * 3
    assert len(rows(database)) <= 1
    recorded.close()
    assert rows(database) == []
    assert rows(database, "process_servers") == []


@pytest.mark.parametrize("kind", ["start", "run"])
def test_case_36_what_a_killed_server_started_is_gone_after_the_next_start(serve, database, kind):
    lines = ["exec sleep 300", "exec $PROGRAMS/ignores_term.sh", "setsid sleep 300 & exec sleep 300"]
    server, tag = serve(*lines, "$PROGRAMS/forks_twice.py --stay", kind=kind)
    assert eventually(lambda: len(find_tagged(tag)) >= 8)
    assert eventually(lambda: len(list_live(database)) == 4)
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    assert eventually(lambda: len(find_tagged(tag)) >= 8)
    left = reap_leftovers(database)
    assert sorted(each.command for each in left) == sorted([*lines, "$PROGRAMS/forks_twice.py --stay"])
    assert find_tagged(tag) == []
    assert rows(database) == []
    assert rows(database, "process_servers") == []


def test_case_36_also_what_has_no_row(serve, database):
    """Killed between starting a command and writing it down: the server's word is enough."""
    server, tag = serve("exec sleep 300")
    with database.write() as connection:
        connection.execute("DELETE FROM live_processes")
    server.kill()
    server.wait()
    assert eventually(lambda: len(find_tagged(tag)) == 1)
    reap_leftovers(database)
    assert find_tagged(tag) == []


def test_the_server_is_on_record_before_its_first_command_can_start(recorded, database, shell, tmp_path):
    with pytest.raises(PathNotFound):
        recorded.start(shell("true", cwd=tmp_path / "gone"), OWNER)
    assert len(rows(database, "process_servers")) == 1
    recorded.close()
    assert rows(database, "process_servers") == []


def test_a_server_that_lives_is_left_alone(serve, database):
    _, tag = serve("exec sleep 300")
    assert reap_leftovers(database) == []
    assert eventually(lambda: len(find_tagged(tag)) == 1)
    assert len(list_live(database)) == 1


def test_rows_of_an_earlier_boot_count_for_nothing_and_end_nobody(serve, database):
    _, tag = serve("exec sleep 300")
    with database.write() as connection:
        connection.execute("UPDATE process_servers SET boot = 'an earlier one'")
    assert list_live(database) == []
    assert reap_leftovers(database) == []
    assert eventually(lambda: len(find_tagged(tag)) == 1)
    assert rows(database) == []
    for pid in find_tagged(tag):
        os.kill(pid, signal.SIGKILL)


def test_rows_of_another_container_are_left_alone(serve, database):
    _, tag = serve("exec sleep 300")
    with database.write() as connection:
        connection.execute("UPDATE process_servers SET namespace = 'pid:[1]', pid = 2147483647")
    assert list_live(database) == []
    assert reap_leftovers(database) == []
    assert eventually(lambda: len(find_tagged(tag)) == 1)
    assert len(rows(database)) == 1
    with database.write() as connection:
        connection.execute("DELETE FROM process_servers")
    for pid in find_tagged(tag):
        os.kill(pid, signal.SIGKILL)


def test_a_number_that_another_process_has_now_is_not_the_server(serve, database):
    server, tag = serve("exec sleep 300")
    server.kill()
    server.wait()
    with database.write() as connection:
        connection.execute("UPDATE process_servers SET pid = ?", (os.getpid(),))
    assert len(reap_leftovers(database)) == 1
    assert find_tagged(tag) == []


def test_a_workspace_is_stopped_whichever_server_runs_in_it(serve, recorded, database, shell):
    _, there = serve("exec $PROGRAMS/ignores_term.sh", workspace="wsp_a")
    _, elsewhere = serve("exec sleep 300", workspace="wsp_b")
    recorded.start(shell("exec sleep 300"), OWNER)
    stopped = stop_workspace_everywhere(database, "wsp_a")
    assert {each.command for each in stopped} == {"exec $PROGRAMS/ignores_term.sh", "exec sleep 300"}
    assert find_tagged(there) == []
    assert find_tagged() == []
    assert eventually(lambda: len(find_tagged(elsewhere)) == 1)
    assert [each.workspace for each in list_live(database)] == ["wsp_b"]


def test_one_command_is_stopped_by_its_id(serve, database):
    _, tag = serve("exec sleep 300", "exec sleep 301")
    first = list_live(database)[0]
    assert stop_process(database, first.id) == first
    assert [each.id for each in list_live(database)] != [first.id]
    assert eventually(lambda: len(find_tagged(tag)) == 1)
    assert stop_process(database, "prc_nothing") is None


def test_a_command_that_cannot_be_written_down_does_not_run(database, shell):
    supervisor = Supervisor(records=Records(database))
    with database.write() as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON live_processes BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
    with pytest.raises(sqlite3.Error):
        supervisor.start(shell("exec sleep 300"), OWNER)
    assert eventually(lambda: find_tagged() == [])
    supervisor.close()
