"""Five hundred commands of every kind leave no process, no descriptor, no thread and no memory behind."""

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.database import Database
from exeora_ws.errors import Cancelled
from exeora_ws.processes.command import Owner, make_shell_command
from exeora_ws.processes.output import Tail
from exeora_ws.processes.records import Records
from exeora_ws.processes.run import run
from exeora_ws.processes.schema import PROCESS_MIGRATIONS
from exeora_ws.processes.supervisor import Supervisor

from support.processes import eventually, find_our_children, find_tagged

KINDS = {
    "plain": "echo x; exit 3",
    "floods": "yes | head -c 300000",
    "leaves a child": "sleep 300 & echo hi",
    "leaves a session": "setsid sleep 300 >/dev/null 2>&1 & echo hi",
    "its child ends first": "setsid true & (setsid true &) ; sleep 0.02; echo hi",
}


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def list_descriptors():
    names = [Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    return [str(name.readlink()) for name in names if name.is_symlink()]


def test_500_commands_leave_nothing_behind(tmp_path, monkeypatch):
    # Nobody else in this process starts session leaders, so none needs the benefit of the doubt.
    monkeypatch.setattr("exeora_ws.processes.orphans.PATIENCE_SECONDS", 0.0)
    gc.collect()  # what other tests of this process have left to the collector is not ours to count
    before = (find_our_children(), descriptors(), threading.active_count())
    database = Database(tmp_path / "exeora.db", {"processes": PROCESS_MIGRATIONS})
    supervisor = Supervisor(records=Records(database), live_limit=64)

    def one(number):
        kind = list(KINDS)[number % len(KINDS)]
        line = make_shell_command(KINDS[kind], cwd=str(tmp_path), environ=dict(os.environ))
        owner = Owner("prj_a", "wsp_a", f"session-{number % 7}")
        if number % 11 == 0:
            started = supervisor.start(line, owner)
            supervisor.require(started.id, owner).wait_end(10)
        elif number % 13 == 0:
            cancellation = Cancellation()
            stuck = make_shell_command("echo x; sleep 300", cwd=str(tmp_path), environ=dict(os.environ))
            more = {"capture": Tail(1000), "timeout": 20, "on_output": lambda _s, _d: cancellation.cancel()}
            with suppress(Cancelled):
                run(supervisor, stuck, owner, cancellation=cancellation, **more)
        else:
            tail = Tail(200_000)
            finish = run(supervisor, line, owner, capture=tail, timeout=20, cancellation=Cancellation())
            assert finish.code == (3 if kind == "plain" else 0), kind
            assert len(finish.leftovers) == (1 if kind.startswith("leaves") else 0), (kind, finish)

    def several(numbers):
        try:
            for number in numbers:
                one(number)
        finally:
            database.close()

    def in_four_threads(numbers):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(several, [numbers[n::4] for n in range(4)]))

    in_four_threads(range(100))
    warm = resident()
    in_four_threads(range(100, 500))
    grown = resident() - warm
    supervisor.close()
    assert find_tagged() == []
    assert find_our_children() <= before[0]
    database.close()
    assert eventually(lambda: descriptors() <= before[1]), list_descriptors()
    assert threading.active_count() <= before[2]
    assert grown < 8_000_000, f"{grown / 1e6:.1f} MB more"
