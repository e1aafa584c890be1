"""Goal 4: the state of every workspace, beside what asking Git alone costs."""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Bound, Subject
from benchmarks.command import Command

OURS = "`exeora list --status --json`"
THEIRS = "`git status --porcelain` in each, as many at once as there are cores"
WORKSPACES = 20


def run_together(commands: Sequence[Command]) -> None:
    """Run commands side by side, each core busy."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(Command.run, commands))


@contextmanager
def _open(bench: Bench, files: int) -> Iterator[Sequence[Subject]]:
    with bench.world() as world, bench.checkout(world, files) as top:
        with world.server(top) as server:
            for number in range(WORKSPACES - 1):
                server.call("create_workspace", branch=f"topic/{number}")
        listed = json.loads(world.exeora("list", "--json", folder=top).check())["workspaces"]
        for number, workspace in enumerate(listed):  # a little of what people leave
            with open(f"{workspace['path']}/note-{number}.txt", "w", encoding="ascii") as stream:
                stream.write("untracked\n")
        # Where it runs is told by -C: the threads share this process's own folder.
        status = [world.git("-C", each["path"], "status", "--porcelain", folder=top) for each in listed]
        world.exeora("list", "--status", "--json", folder=top).check()
        yield [
            Subject(THEIRS, lambda: run_together(status)),
            Subject(OURS, world.exeora("list", "--status", "--json", folder=top).run),
        ]


_TRIED = """\
git is asked once a workspace, before anything else, and the rest (distances, upstreams, the time of the last commit) is
read by libgit2, which is loaded meanwhile; before, it was seven processes each. The command line is answered without
the library of commands. libgit2's own status takes several times as long as git's. Git's untracked cache would take
half of it, but is the user's to switch on.
"""

BENCHMARKS = (
    Benchmark(
        name="status",
        goal=4,
        title=f"{WORKSPACES} workspaces of 20,000 files",
        open=lambda bench: _open(bench, bench.size(20_000, 1_000)),
        bounds=(Bound(OURS, THEIRS, 1.2),),
        tried=_TRIED,
        rounds=9,
    ),
)
