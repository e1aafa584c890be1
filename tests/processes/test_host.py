import os
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.database import Database
from exeora_ws.errors import InvalidArguments, PathNotFound, ToolFailed
from exeora_ws.processes import wire
from exeora_ws.processes.client import HostClient
from exeora_ws.processes.command import Owner, make_shell_command
from exeora_ws.processes.host import SOCKET, Host, open_runtime_folder, serve
from exeora_ws.processes.output import Stream, Tail
from exeora_ws.processes.records import list_live
from exeora_ws.processes.run import run
from exeora_ws.processes.schema import PROCESS_MIGRATIONS
from exeora_ws.processes.supervisor import Supervisor
from exeora_ws.settings import find_places

from support.hosts import end_host, find_host
from support.processes import OWNER, PROGRAMS, all_gone, eventually

TOP = Path(__file__).parents[2]


@pytest.fixture
def places(sealed, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    return find_places()


@pytest.fixture
def database(places):
    return Database(places.database, {"processes": PROCESS_MIGRATIONS})


@pytest.fixture
def client(places, database):
    client = HostClient(places)
    yield client
    end_host(places)


def shell_command(line, **environ):
    return make_shell_command(line, cwd="/tmp", environ={**os.environ, "PROGRAMS": str(PROGRAMS), **environ})


def read_all(client, process_id):
    outputs = list(client.follow(process_id))
    return "".join(output.chunk.text for output in outputs), outputs[-1].code


def test_without_a_host_there_is_nothing_and_none_is_started(client, places):
    assert client.list_started() == []
    for ask in (lambda: client.read("prc_x"), lambda: client.send("prc_x", b""), lambda: client.kill("prc_x")):
        with pytest.raises(ToolFailed) as refused:
            ask()
        assert refused.value.reason == "unknown_process"
    assert find_host(places) is None


def test_a_started_command_is_read_answered_and_ended(client, places, database):
    started = client.start(shell_command("exec $PROGRAMS/asks.sh"), OWNER)
    assert client.read(started.id, wait=10).chunk.text == "name? "
    (listed,) = client.list_started("prj_a")
    assert (listed.id, listed.line, listed.pid, listed.running) == (started.id, started.line, started.pid, True)
    assert client.list_started("prj_other") == []
    (live,) = list_live(database)
    assert (live.id, live.server_pid, live.workspace) == (started.id, find_host(places), "wsp_a")
    assert client.send(started.id, "Zoë\n".encode()) == 5
    assert read_all(client, started.id) == ("name? hello Zoë\n", 0)
    assert client.kill(started.id).killed is False


def test_end_of_input_and_kill(client):
    started = client.start(shell_command("cat; echo end; exec $PROGRAMS/ignores_term.sh"), OWNER)
    client.send(started.id, b"x\n", end=True)
    assert eventually(lambda: client.read(started.id).chunk.text == "x\nend\nready\n")
    assert client.kill(started.id).killed is True
    assert all_gone([started.pid])
    assert client.read(started.id).signal == "SIGKILL"


def test_it_runs_with_the_environment_the_folder_and_the_mask_of_whoever_started_it(client, tmp_path):
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    old = os.umask(0o027)
    try:
        environ = {**os.environ, "MINE": os.fsdecode(b"\xff"), "EXEORA_TAG": "outer"}
        command = make_shell_command("pwd; printenv MINE EXEORA_TAG; umask", cwd=str(odd), environ=environ)
        started = client.start(command, OWNER)
    finally:
        os.umask(old)
    text, _ = read_all(client, started.id)
    folder, mine, tag, mask = text.splitlines()
    assert folder.endswith("caf\ufffd")
    assert (mine, mask) == ("\ufffd", "0027")
    assert "outer" not in tag


def test_errors_travel_with_code_reason_and_data(client, tmp_path):
    gone = make_shell_command("true", cwd=str(tmp_path / "gone"), environ={})
    with pytest.raises(PathNotFound) as refused:
        client.start(gone, OWNER)
    assert refused.value.reason == "cwd_gone"
    started = client.start(shell_command("exec sleep 300"), OWNER)
    with pytest.raises(InvalidArguments) as refused:
        client.read(started.id, 10)
    assert refused.value.reason == "cursor_out_of_range"
    for _ in range(7):
        client.start(shell_command("exec sleep 300"), OWNER)
    with pytest.raises(ToolFailed) as refused:
        client.start(shell_command("exec sleep 300"), OWNER)
    assert len(refused.value.data["processIds"]) == 8
    client.start(shell_command("exec sleep 300"), Owner("prj_b", "wsp_b", "s"))


def test_ten_at_once_start_one_host(client, places):
    pids, started = [], []
    gate = threading.Barrier(10)

    def one(number):
        gate.wait()
        mine = HostClient(places)
        started.append(mine.start(shell_command("exec sleep 300"), Owner(f"prj_{number}", "wsp", "s")).id)
        pids.append(find_host(places))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(pids)) == 1
    assert sorted(each.id for each in client.list_started()) == sorted(started)


def test_it_outlives_the_command_that_started_it_and_is_no_part_of_it(supervisor, client, places, tmp_path):
    """Started inside a command of an agent: the end of that command ends neither the host nor what it keeps."""
    script = tmp_path / "start.py"
    script.write_text(
        "import os, sys\nfrom exeora_ws.processes.client import HostClient\n"
        "from exeora_ws.processes.command import Owner, make_shell_command\n"
        "from exeora_ws.settings import find_places\n"
        "line = make_shell_command('exec sleep 300', cwd='/', environ=dict(os.environ))\n"
        "print(HostClient(find_places()).start(line, Owner('prj_a', 'wsp_a', 's')).pid)\n"
    )
    tail = Tail(10_000)
    command = make_shell_command(f"{os.sys.executable} {script}", cwd="/", environ=dict(os.environ))
    finish = run(supervisor, command, OWNER, capture=tail, timeout=20, cancellation=Cancellation())
    assert finish.code == 0, tail.text(Stream.STDERR)
    assert finish.leftovers == ()
    pid = int(tail.text(Stream.STDOUT))
    time.sleep(0.1)
    assert not all_gone([pid])
    assert [each.pid for each in client.list_started()] == [pid]
    host = find_host(places)
    end_host(places)
    assert all_gone([pid, host])


def test_its_end_by_term_ends_what_it_keeps(client, places, database):
    started = client.start(shell_command("exec $PROGRAMS/ignores_term.sh"), OWNER)
    end_host(places)
    assert all_gone([started.pid])
    assert list_live(database) == []


def test_after_its_kill_the_next_one_ends_what_it_left(client, places):
    started = client.start(shell_command("setsid sleep 300 & exec sleep 300"), OWNER)
    os.kill(find_host(places), signal.SIGKILL)
    assert eventually(lambda: find_host(places) is None)
    assert not all_gone([started.pid])
    assert client.list_started() == []
    client.start(shell_command("exec sleep 300"), OWNER)
    assert all_gone([started.pid])


def test_it_leaves_when_nothing_runs_and_nothing_is_left_to_read(places, database, monkeypatch):
    """In this process, with ten minutes made short; a client that comes as it leaves finds the next one."""
    monkeypatch.setattr("exeora_ws.processes.supervisor.FINISHED_PROCESS_SECONDS", 0.5)
    monkeypatch.setattr("exeora_ws.processes.host._IDLE_SECONDS", 0.1)
    ready = threading.Event()
    thread = threading.Thread(target=serve, args=(places, ready.set))
    thread.start()
    assert ready.wait(5)
    client = HostClient(places)
    started = client.start(shell_command("sleep 0.5; echo x"), OWNER)
    assert read_all(client, started.id) == ("x\n", 0)
    assert thread.is_alive()
    thread.join(5)
    assert not thread.is_alive()
    assert not (places.runtime / SOCKET).exists()
    assert client.list_started() == []


def test_a_socket_that_a_dead_host_left_is_no_hindrance(client, places):
    client.start(shell_command("true"), OWNER)
    os.kill(find_host(places), signal.SIGKILL)
    assert (places.runtime / SOCKET).exists()
    assert eventually(lambda: find_host(places) is None)
    assert client.start(shell_command("true"), OWNER)


@pytest.mark.parametrize(
    "frame",
    [
        msgspec.json.encode({"protocol": 1, "version": "9.9.9", "body": {"type": "teleport", "id": "x"}}),
        msgspec.json.encode({"protocol": 2, "version": "9.9.9", "body": {"type": "list"}}),
    ],
)
def test_a_client_of_another_version_is_told_in_a_sentence(database, frame):
    supervisor = Supervisor()
    error = Host(supervisor, database)._answer(frame).error
    assert error["reason"] == "version_mismatch"
    assert "9.9.9" in error["message"]
    supervisor.close()


def test_fields_of_a_later_version_are_ignored(database):
    frame = msgspec.json.encode(
        {"protocol": 1, "version": "1.5", "colour": "blue", "body": {"type": "list", "order": "age"}}
    )
    supervisor = Supervisor()
    reply = Host(supervisor, database)._answer(frame)
    assert (reply.error, bytes(reply.result)) == (None, b"[]")
    supervisor.close()


def test_garbage_ends_the_connection_and_nothing_else(client, places):
    started = client.start(shell_command("exec sleep 300"), OWNER)
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 8, b"\0\0\0\x04nope", b"\0\0"):
        with socket.socket(socket.AF_UNIX) as connection, open_runtime_folder(places) as folder:
            connection.connect(wire.make_address(folder, SOCKET, places.runtime))
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(5)
            with suppress(ConnectionResetError):
                connection.recv(100)
    assert [each.id for each in client.list_started()] == [started.id]


def test_a_runtime_folder_that_others_can_enter_is_refused(places):
    places.runtime.mkdir(parents=True)
    places.runtime.chmod(0o755)
    with pytest.raises(ToolFailed) as refused:
        HostClient(places).start(shell_command("true"), OWNER)
    assert refused.value.reason == "runtime_folder_unsafe"


def test_the_folder_and_the_files_are_private(client, places):
    client.start(shell_command("true"), OWNER)
    assert places.runtime.stat().st_mode & 0o777 == 0o700
    assert places.database.stat().st_mode & 0o777 == 0o600


def test_another_user_is_not_served(monkeypatch):
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ToolFailed) as refused:
        wire.require_same_user(ours)
    assert refused.value.reason == "foreign_host"
    ours.close()
    theirs.close()
