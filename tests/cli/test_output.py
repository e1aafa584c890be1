"""What is printed arrives whole, or the exit code says that it did not."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.commandline import child_environment

COMMAND = (sys.executable, "-c", "import sys; from exeora_cli.main import start; sys.exit(start())")
HOT, WHOLE = ("list", "--json"), ("tools", "--json")


@pytest.fixture
def start(tmp_path: Path, sealed):
    def start(words: tuple[str, ...], **streams: object) -> subprocess.Popen:
        environment = child_environment(sealed) | {"PYTHONUNBUFFERED": "1"}
        return subprocess.Popen((*COMMAND, *words), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, **streams)

    return start


@pytest.mark.parametrize("words", [HOT, WHOLE])
def test_a_full_disk_is_told(start, words):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        process = start(words, stdout=full)
    assert process.communicate()[1] == b"exeora: the answer cannot be written: No space left on device\n"
    assert process.returncode == 1


@pytest.mark.parametrize("words", [HOT, WHOLE])
def test_a_stdout_that_is_closed_is_told(start, words):
    process = start(words, preexec_fn=lambda: os.close(1))
    assert process.communicate()[1] == b"exeora: the answer cannot be written: Bad file descriptor\n"
    assert process.returncode == 1


def test_a_pipe_that_does_not_wait_gets_everything(start):
    reader, writer = os.pipe()
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    process = start(WHOLE, stdout=writer)
    os.close(writer)
    with open(reader, "rb") as stream:
        printed = stream.read()
    assert process.communicate()[1] == b""
    assert process.returncode == 0
    assert len(printed) > 4096
    assert printed.endswith(b"}\n")
