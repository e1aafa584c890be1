"""Goal 1: making a workspace over a warm server, beside `git worktree add`."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench, World
from benchmarks.benchmark import Benchmark, Bound, Subject
from benchmarks.client import Client

OURS, GIT, WORKERS = "`create_workspace`", "`git worktree add`", "`git -c checkout.workers=8 worktree add`"
_WORKERS = ("-c", "checkout.workers=8", "-c", "checkout.thresholdForParallelism=1")
_SETTLE_SECONDS = 60
_SECOND = 1.1
_TRIED = """\
Files are copied from the source checkout, two processes at once, each proven by the hash of the object it must be; what
is not equal, or would be converted, is left to git. Reflinks, `copy_file_range` and `sendfile` are no faster for files
of this size; threads wait for each other; a stat comparison instead of the hash is some percent faster and wrong where
line endings were normalised (docs/decisions/0014-copied-worktrees.md).
"""


class Workspaces:
    """Makes the same worktree in each way, and takes it away so that nothing of that is left to be done."""

    def __init__(self, world: World, server: Client, top: Path) -> None:
        self._world = world
        self._server = server
        self.top = top
        self.folder = world.home / "by-git"
        managed = world.data / "workspaces"
        self.made = managed / top.name / "made"
        self.trash = managed / ".trash"

    def create(self) -> None:
        self._server.call("create_workspace", branch="made")

    def remove(self) -> None:
        self._server.call("remove_workspace", workspace="made")

    def remove_by_command(self, *options: str) -> None:
        self._world.exeora("remove", "made", *options, folder=self.top).run()

    def remove_by_git(self) -> None:
        self._world.git("worktree", "remove", str(self.folder), folder=self.top).run()

    def age(self, folder: Path) -> None:
        """Have a worktree as it is after somebody has asked for its status, a second after it was made."""
        time.sleep(_SECOND)
        self._world.git("status", "--porcelain", folder=folder).check()

    def add(self, *options: str) -> None:
        self._world.git(*options, "worktree", "add", "-b", "by-git", str(self.folder), folder=self.top).run()

    def clear(self) -> None:
        """Take our workspace away, if it is still there, wait until its disk is given back, and drop its branch."""
        listed = self._server.call("list_git_workspaces")["structuredContent"]["workspaces"]
        if any(each["branch"] == "made" for each in listed):
            self._world.exeora("remove", "made", "--now", folder=self.top).check()
        else:
            self._world.exeora("restore", "--empty", folder=self.top).check()
        self.wait_for_disk()
        self._world.git("branch", "-D", "made", folder=self.top).check()

    def wait_for_disk(self) -> None:
        """Wait until nothing is left in the trash."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while self.trash.exists() and any(self.trash.iterdir()):
            if time.monotonic() > deadline:
                raise TimeoutError("the trash is not emptied")
            time.sleep(0.002)

    def drop(self) -> None:
        """Take git's worktree away, if it is still there, and its branch."""
        if self.folder.exists():
            self._world.git("worktree", "remove", "--force", str(self.folder), folder=self.top).check()
        self._world.git("branch", "-D", "by-git", folder=self.top).check()


@contextmanager
def open_generated(bench: Bench, files: int, quick: int) -> Iterator[Workspaces]:
    """Give the ways in a generated repository."""
    with bench.world() as world, bench.checkout(world, bench.size(files, quick)) as top, world.server(top) as server:
        yield Workspaces(world, server, top)


@contextmanager
def open_package(bench: Bench) -> Iterator[Workspaces]:
    """Give the ways in the repository that holds the source package."""
    with bench.world() as world:
        top = bench.inputs.clone_package(world.home / "package", world.environment)
        world.exeora("project", "add", ".", folder=top).check()
        with world.server(top) as server:
            yield Workspaces(world, server, top)


Opening = Callable[[Bench], AbstractContextManager[Workspaces]]


@contextmanager
def _open(bench: Bench, opening: Opening) -> Iterator[Sequence[Subject]]:
    with opening(bench) as ways:
        yield [
            Subject(GIT, ways.add, finish=ways.drop),
            Subject(OURS, ways.create, finish=ways.clear),
            Subject(WORKERS, partial(ways.add, *_WORKERS), finish=ways.drop),
        ]


def _compare(name: str, title: str, opening: Opening, ratio: float, *, rounds: int, quick: bool = True) -> Benchmark:
    return Benchmark(
        name=name,
        goal=1,
        title=title,
        open=partial(_open, opening=opening),
        bounds=(Bound(OURS, GIT, ratio), Bound(OURS, WORKERS), Bound(OURS, GIT, 0.5, stretch=True)),
        tried=_TRIED if name == "create-20k" else "",
        rounds=rounds,
        quick=quick,
    )


BENCHMARKS = (
    _compare(
        "create-20k",
        "A workspace of 20,000 files",
        partial(open_generated, files=20_000, quick=6_000),
        0.55,
        rounds=15,
    ),
    _compare("create-package", "A workspace of the source package", open_package, 0.40, rounds=15),
    _compare(
        "create-78k",
        "A workspace of 78,000 files",
        partial(open_generated, files=78_000, quick=78_000),
        0.65,
        rounds=7,
        quick=False,
    ),
)
