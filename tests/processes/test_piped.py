import os
import time

import pytest
from exeora_ws.errors import PathNotFound, ToolFailed, ToolTimeout
from exeora_ws.processes.piped import STDERR_TAIL_BYTES, spawn_piped
from exeora_ws.processes.table import find_entry


@pytest.fixture
def environ():
    return dict(os.environ)


def sh(script, tmp_path, environ, **more):
    return spawn_piped(["/bin/sh", "-c", script], cwd=str(tmp_path), environ=environ, **more)


def test_output_error_output_and_code(tmp_path, environ):
    with sh("echo out; echo err >&2; exit 3", tmp_path, environ) as child:
        assert child.stdout.read() == b"out\n"
        assert child.wait(5) == 3
        assert child.stderr_tail() == b"err\n"


def test_large_input_and_large_output_do_not_block_each_other(tmp_path, environ):
    data = os.urandom(3_000_000)
    with sh("cat", tmp_path, environ, stdin=data) as child:
        assert child.stdout.read() == data


def test_without_input_it_reads_an_empty_one(tmp_path, environ):
    with sh("cat; echo done", tmp_path, environ) as child:
        assert child.stdout.read() == b"done\n"


def test_a_conversation(tmp_path, environ):
    with sh('read a; echo "got $a"; read b; echo "and $b"', tmp_path, environ, writable_stdin=True) as child:
        child.stdin.write(b"one\n")
        assert child.stdout.read(100) == b"got one\n"
        child.stdin.write(b"two\n")
        assert child.stdout.read(100) == b"and two\n"


def test_a_flood_of_error_output_neither_blocks_nor_grows(tmp_path, environ):
    with sh("yes e | head -c 5000000 >&2; echo end >&2; echo done", tmp_path, environ) as child:
        assert child.stdout.read() == b"done\n"
        child.wait(5)
        tail = child.stderr_tail()
        assert len(tail) == STDERR_TAIL_BYTES
        assert tail.endswith(b"end\n")


def test_the_block_ends_the_whole_tree(tmp_path, environ):
    with sh("trap '' TERM; setsid sleep 300 & echo $!; sleep 300", tmp_path, environ) as child:
        inner = int(child.stdout.read(20))
        started = time.monotonic()
    assert time.monotonic() - started < 1
    assert find_entry(inner) is None
    assert find_entry(child.pid) is None


def test_waiting_too_long_is_said_and_kills_nothing(tmp_path, environ):
    with sh("sleep 300", tmp_path, environ) as child:
        with pytest.raises(ToolTimeout):
            child.wait(0.05)
        assert child.poll() is None


def test_a_passed_descriptor_is_there(tmp_path, environ):
    reading, writing = os.pipe()
    with sh(f"echo through >/dev/fd/{writing}", tmp_path, environ, pass_fds=[writing]) as child:
        os.close(writing)
        assert os.read(reading, 20) == b"through\n"
        child.wait(5)
    os.close(reading)


def test_no_program_and_no_folder_are_named(tmp_path, environ):
    with pytest.raises(ToolFailed) as no_program:
        spawn_piped(["no-such-program-here"], cwd=str(tmp_path), environ=environ)
    assert no_program.value.reason == "not_started"
    assert "no-such-program-here" in no_program.value.message
    with pytest.raises(PathNotFound) as no_folder:
        spawn_piped(["true"], cwd=str(tmp_path / "gone"), environ=environ)
    assert no_folder.value.reason == "cwd_gone"
    assert str(tmp_path) not in no_folder.value.message


def test_no_descriptor_is_left(tmp_path, environ):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with sh("echo x", tmp_path, environ, stdin=b"y") as child:
            child.stdout.read()
    assert len(os.listdir("/proc/self/fd")) == before
