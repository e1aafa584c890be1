import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from exeora_ws.database import Database
from exeora_ws.errors import UnknownWorkspace
from exeora_ws.processes.command import make_shell_command
from exeora_ws.processes.records import list_live, reap_leftovers
from exeora_ws.processes.schema import PROCESS_MIGRATIONS
from exeora_ws.processes.terminal import run_at_terminal

from support.processes import OWNER, PROGRAMS, all_gone, eventually, find_tagged
from support.terminal import Terminal

TOP = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("at_terminal.py")


@pytest.fixture
def environ(tmp_path):
    return {**os.environ, "PYTHONPATH": str(TOP), "PROGRAMS": str(PROGRAMS), "TERM": "xterm", "MARK": str(tmp_path)}


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "exeora.db", {"processes": PROCESS_MIGRATIONS})


@pytest.fixture
def at_terminal(environ, tmp_path, database):
    def start(line):
        return Terminal([sys.executable, str(PROGRAM), str(tmp_path / "exeora.db"), line], environ)

    return start


@pytest.fixture
def piped(environ, tmp_path, database):
    """The same with pipes, as in a script."""
    children = []

    def start(line, **more):
        words = [sys.executable, str(PROGRAM), str(tmp_path / "exeora.db"), line]
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        children.append(subprocess.Popen(words, env=environ, start_new_session=True, **options))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()
    reap_leftovers(database)


def test_the_command_has_the_real_terminal(at_terminal):
    terminal = at_terminal("test -t 0 && test -t 1 && test -t 2 && echo real; stty size; echo own >/dev/tty; exit 5")
    assert terminal.finish() == 5
    assert terminal.text.startswith("real\n33 99\nown\nleft=[] status=5")


def test_it_can_be_talked_to(at_terminal):
    terminal = at_terminal("$PROGRAMS/asks.sh")
    terminal.wait_for("name? ")
    terminal.type("Zoë\n".encode())
    assert terminal.finish() == 0
    assert "hello Zoë" in terminal.text


def test_ctrl_c_reaches_the_command_once_and_its_code_comes_back(at_terminal):
    terminal = at_terminal(
        "trap 'n=$((n+1)); echo got $n' INT; echo ready; "
        "i=0; while [ $i -lt 8 ]; do sleep 0.1; i=$((i+1)); done; exit 7"
    )
    terminal.wait_for("ready")
    terminal.type(b"\x03")
    assert terminal.finish() == 7
    assert "got 1" in terminal.text
    assert "got 2" not in terminal.text


def test_ctrl_c_ends_what_does_not_mind_with_130(at_terminal):
    terminal = at_terminal("echo ready; exec sleep 300")
    terminal.wait_for("ready")
    terminal.type(b"\x03")
    assert terminal.finish() == 130


def test_a_terminal_left_in_another_mode_is_put_back(at_terminal):
    terminal = at_terminal("stty -echo raw; printf ready; kill -9 $$")
    terminal.wait_for("status=137")
    local = termios.tcgetattr(terminal.master)[3]
    assert local & termios.ECHO
    assert local & termios.ICANON
    assert terminal.finish() == 137


def test_ctrl_z_stops_and_fg_goes_on(environ, tmp_path, database):
    """As a job of an interactive shell."""
    shell = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], {**environ, "PS1": "$ "})
    shell.wait_for("$ ")
    line = "echo ready; sleep 0.5; read -r x; echo got $x"
    shell.type(f"{sys.executable} {PROGRAM} {tmp_path / 'exeora.db'} '{line}'\n".encode())
    shell.wait_for("\nready\n")
    shell.type(b"\x1a")
    shell.wait_for("Stopped")
    shell.type(b"fg\n")
    time.sleep(0.8)
    shell.type(b"back\n")
    shell.wait_for("got back")
    shell.wait_for("status=0")
    shell.type(b"exit\n")
    assert shell.finish() == 0


def test_outputs_go_where_ours_go(piped):
    child = piped("echo out; echo err >&2; exit 3")
    out, err = child.communicate(timeout=10)
    assert (out, err, child.returncode) == (b"out\n", b"err\nleft=[] status=3\n", 3)


def test_input_comes_from_ours(piped):
    child = piped("cat", stdin=subprocess.PIPE)
    assert child.communicate(b"through", timeout=10)[0] == b"through"


def test_what_it_leaves_running_is_said_and_ended(piped, tmp_path):
    begun = 'for p in $a $b $c; do until read -r name < /proc/$p/comm && [ "$name" = sleep ]; do :; done; done'
    child = piped(f"setsid sleep 300 & a=$!; sleep 301 & b=$!; env -i sleep 302 & c=$!; {begun}; echo hi")
    out, err = child.communicate(timeout=10)
    assert out == b"hi\n"
    assert err == b"left=['sleep', 'sleep', 'sleep'] status=0\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_passed_on(piped, number):
    child = piped(f"trap 'echo got; exit 9' {number.name[3:]}; echo ready; while :; do sleep 0.02; done")
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(number)
    out, _ = child.communicate(timeout=10)
    assert (out, child.returncode) == (b"got\n", 9)


def test_what_ignores_term_is_forced_after_two_seconds(piped):
    child = piped("exec $PROGRAMS/ignores_term.sh")
    assert child.stdout.readline() == b"ready\n"
    began = time.monotonic()
    child.terminate()
    child.communicate(timeout=10)
    assert 2 <= time.monotonic() - began < 5
    assert child.returncode == 137


def test_it_is_on_record_and_reaped_after_our_kill(piped, database):
    child = piped("echo ready; exec sleep 300")
    assert child.stdout.readline() == b"ready\n"
    assert eventually(lambda: list_live(database))
    (live,) = list_live(database)
    assert (live.kind, live.command, live.server_pid) == ("run", "echo ready; exec sleep 300", child.pid)
    child.kill()
    child.wait()
    assert not all_gone([live.pid])
    assert [each.pid for each in reap_leftovers(database)] == [live.pid]
    assert all_gone([live.pid])


def test_reaping_a_shared_terminal_s_command_ends_nobody_else_there(environ, tmp_path, database):
    """The command was in the session of the person's shell; the shell and its other jobs live on."""
    shell = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], {**environ, "PS1": "$ "})
    shell.wait_for("$ ")
    shell.type(b"sleep 299 &\necho job $!.\n")
    shell.wait_for("\njob ")
    shell.type(f"{sys.executable} {PROGRAM} {tmp_path / 'exeora.db'} 'echo ready; sleep 300'\n".encode())
    shell.wait_for("\nready\n")
    assert eventually(lambda: list_live(database))
    (live,) = list_live(database)
    os.kill(live.server_pid, signal.SIGKILL)
    shell.wait_for("Killed")
    reap_leftovers(database)
    assert all_gone([live.pid])
    job = int(shell.text.split("\njob ")[1].split(".")[0])
    assert not all_gone([job, shell.pid])
    shell.type(b"kill %1; exit\n")
    shell.finish()
    assert find_tagged() == []


def test_a_command_whose_workspace_went_meanwhile_is_ended(tmp_path):
    command = make_shell_command("echo $$ >pid; exec sleep 300", cwd=tmp_path, environ=dict(os.environ))
    with pytest.raises(UnknownWorkspace):
        run_at_terminal(command, OWNER, is_there=lambda _: eventually((tmp_path / "pid").exists) and False)
    assert all_gone([int((tmp_path / "pid").read_text())])
