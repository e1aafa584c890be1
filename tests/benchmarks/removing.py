"""Goal 2: removing a workspace, over a warm server and as a whole process, beside `git worktree remove`."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Bound, Subject
from benchmarks.creating import Workspaces, open_generated

OURS, PROCESS, DISK = "`remove_workspace`", "`exeora remove`", "the disk given back, after `exeora remove --now`"
GIT = "`git worktree remove`"
_TRIED = """\
Two gits look at once: one at the tracked files, one at what else there is. libgit2's status takes two and a half to
four times as long as git's. Git's untracked cache takes half of it, but is the user's to switch on. A removal is a
rename into a trash; the disk is freed by a process of its own (docs/decisions/0014-copied-worktrees.md).
What `exeora remove` takes beyond the warm server is importing and opening the core, three quarters of it.
"""


@contextmanager
def _open(bench: Bench) -> Iterator[Sequence[Subject]]:
    with open_generated(bench, 20_000, 20_000) as ways:

        def make() -> None:
            ways.create()
            ways.age(ways.made)

        def add() -> None:
            ways.add()
            ways.age(ways.folder)

        yield [
            Subject(GIT, ways.remove_by_git, prepare=add, finish=ways.drop),
            Subject(OURS, ways.remove, prepare=make, finish=ways.clear),
            Subject(PROCESS, ways.remove_by_command, prepare=make, finish=ways.clear),
            Subject(DISK, lambda: _measure_disk(ways), prepare=make, finish=ways.clear),
        ]


def _measure_disk(ways: Workspaces) -> float:
    ways.remove_by_command("--now")
    begun = time.perf_counter()
    ways.wait_for_disk()
    return time.perf_counter() - begun


BENCHMARKS = (
    Benchmark(
        name="remove",
        goal=2,
        title="A workspace of 20,000 files",
        open=_open,
        bounds=(Bound(OURS, GIT, 0.20), Bound(PROCESS, GIT, 0.60), Bound(DISK, GIT, 0.70)),
        tried=_TRIED,
        rounds=9,
        quick=False,
    ),
)
