import os
import threading
import time

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.processes.command import make_shell_command
from exeora_ws.processes.output import Tail
from exeora_ws.processes.run import run
from exeora_ws.processes.supervisor import Supervisor

from support.processes import OWNER, PROGRAMS, Ran, eventually, find_our_children, find_tagged


@pytest.fixture
def supervisor():
    children = find_our_children()
    supervisor = Supervisor()
    yield supervisor
    supervisor.close()
    assert find_tagged() == []
    assert eventually(lambda: find_our_children() <= children), "a process or a zombie is left"


@pytest.fixture
def shell(tmp_path):
    """Make a command out of a shell line; $PROGRAMS is where the small programs are."""

    def make(line, cwd=tmp_path, **environ):
        return make_shell_command(line, cwd=str(cwd), environ={**os.environ, "PROGRAMS": str(PROGRAMS), **environ})

    return make


@pytest.fixture
def execute(supervisor, shell):
    """Run a shell line to its end."""

    def execute(line, *, timeout=20.0, owner=OWNER, cancellation=None, on_output=None, limit=200_000, **environ):
        tail = Tail(limit)
        started = time.monotonic()
        finish = run(
            supervisor,
            shell(line, **environ),
            owner,
            capture=tail,
            timeout=timeout,
            cancellation=cancellation or Cancellation(),
            on_output=on_output,
        )
        return Ran(finish, tail, time.monotonic() - started)

    return execute


@pytest.fixture
def later():
    """Call something in another thread after a while; joined at the end of the test."""
    threads = []

    def call(seconds, action):
        timer = threading.Timer(seconds, action)
        timer.start()
        threads.append(timer)

    yield call
    for thread in threads:
        thread.join()
