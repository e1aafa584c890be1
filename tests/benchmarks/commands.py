"""Goal 7: commands over a warm server, beside what the kernel takes to start the same shell."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Bound, Subject
from benchmarks.client import list_children
from benchmarks.searching import drop

SPAWN, RUN = "`posix_spawn` of `/bin/sh -c true`, its output read", "`run_command`, `true`"
KILL = "`kill_command`, a tree of 16"
_TREE = "for i in 1 2 3 4 5; do (sleep 100 & sleep 100 & wait) & done; wait"
_MEMBERS = 16
_GROWN_SECONDS = 10.0


@contextmanager
def _open_run(bench: Bench) -> Iterator[Sequence[Subject]]:
    with bench.world() as world, bench.checkout(world, 1_000) as top, world.server(top) as server:
        yield [
            Subject(SPAWN, world.program("/bin/sh", "-c", "true", folder=top).run),
            Subject(RUN, lambda: drop(server.call("run_command", command="true"))),
        ]


@contextmanager
def _open_kill(bench: Bench) -> Iterator[Sequence[Subject]]:
    with bench.world() as world, bench.checkout(world, 1_000) as top, world.server(top) as server:
        running: list[str] = []

        def grow() -> None:
            started = server.call("start_command", command=_TREE)["structuredContent"]
            running.append(started["processId"])
            end = time.monotonic() + _GROWN_SECONDS
            while len(list_children(started["pid"])) < _MEMBERS - 1 and time.monotonic() < end:
                time.sleep(0.01)

        yield [Subject(KILL, lambda: drop(server.call("kill_command", processId=running.pop())), prepare=grow)]


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        name="run",
        goal=7,
        title="Run `true`",
        open=_open_run,
        bounds=(Bound(RUN, SPAWN, plus=0.004),),
        tried="The shell is started by `posix_spawn`, with the tree's marks in its environment; no login shell.",
        rounds=25,
    ),
    Benchmark(
        name="kill",
        goal=7,
        title="Kill a tree of 16 processes",
        open=_open_kill,
        bounds=(Bound(KILL, plus=0.010),),
        tried=(
            "Members are found by a look through `/proc`, asked to end, and looked at again until none is left, after "
            "half a millisecond at first. `killpg` alone leaves those that have a session of their own."
        ),
        rounds=15,
    ),
)
