"""What tests of commands share: the small programs, and a search of their own for what is left."""

import os
import time
from pathlib import Path

from exeora_ws.processes.command import Owner
from exeora_ws.processes.output import Stream
from exeora_ws.processes.spawn import get_server_tag
from exeora_ws.processes.table import TAG_VARIABLE, find_variable, is_running, load_table

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "programs"
OWNER = Owner("prj_a", "wsp_a", "session-a")


def find_tagged(tag=None):
    """Every process that carries the tag (this test process's own, by default): nobody else's search is trusted."""
    tag = tag or get_server_tag()
    return [
        entry.pid
        for entry in load_table().values()
        if not entry.zombie and entry.pid != os.getpid() and tag in (find_variable(entry.pid, TAG_VARIABLE) or "")
    ]


def find_our_children():
    return {e.pid for e in load_table().values() if e.parent == os.getpid()}


def eventually(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            return found
        time.sleep(0.01)
    return found


class Ran:
    def __init__(self, finish, tail, seconds):
        self.finish, self.tail, self.seconds = finish, tail, seconds
        self.stdout, self.stderr = tail.text(Stream.STDOUT), tail.text(Stream.STDERR)


def all_gone(pids):
    table = load_table()
    return all(pid not in table or table[pid].zombie or not is_running(table[pid].identity) for pid in pids)
