"""Goal 9: what does not concern the other projects and workspaces does not cost more because of them.

The registry is filled with as many projects, and as many workspaces in the one project worked in, as a point of the
plot says. Listing shows another project, which has a few workspaces whatever else there is.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.bench import Bench, World
from benchmarks.benchmark import Benchmark, Bound, Subject
from benchmarks.client import Client

SIZES = (10, 100, 1_000)
QUICK_SIZES = (10, 50)
FLAT = 1.25
_KEPT = 5
LIST, PATH, READ, CREATE, GIT = (
    "`exeora list --json`",
    "`exeora path` of the last",
    "`read_file` in the last",
    "`create_workspace`",
    "`git worktree add`",
)
_FILL = """
import sys
from pathlib import Path
from exeora_ws.app import open_app
from exeora_ws.cancellation import Cancellation
from exeora_ws.workspaces.connect import Candidate

top, projects, worktrees = sys.argv[1:]
inventory = open_app().inventory
for folder in sorted(Path(projects).iterdir()):
    inventory.register_project(folder, exact=True)
project, _ = inventory.register_project(Path(top), exact=True)
for folder in sorted(Path(worktrees).iterdir()):
    inventory.attach(project, Candidate(path=str(folder), branch=None, name=None, slug=folder.name), Cancellation())
"""


def fill(world: World, top: Path, size: int) -> None:
    """Make projects and worktrees, and have them registered, all by one process."""
    projects, worktrees = world.home / "projects", world.home / "worktrees"
    projects.mkdir()
    worktrees.mkdir()
    first = projects / "p0000"
    world.git("init", "--quiet", str(first), folder=projects).check()
    for number in range(1, size - 1):
        copy_repository(first, projects / f"p{number:04}")
    for number in range(size):
        words = ("worktree", "add", "--quiet", "--no-checkout", "--detach", str(worktrees / f"w{number:04}"))
        world.git(*words, folder=top).check()
    world.program(sys.executable, "-c", _FILL, str(top), str(projects), str(worktrees)).check()


def copy_repository(source: Path, target: Path) -> None:
    """Copy the little that makes an empty repository."""
    for folder in ("objects", "refs"):
        (target / ".git" / folder).mkdir(parents=True)
    for name in ("HEAD", "config"):
        (target / ".git" / name).write_bytes((source / ".git" / name).read_bytes())


@contextmanager
def _open(bench: Bench) -> Iterator[Sequence[Subject]]:
    with ExitStack() as stack:
        subjects: list[Subject] = []
        for size in bench.size(SIZES, QUICK_SIZES):
            subjects += stack.enter_context(_open_size(bench, size))
        yield subjects


@contextmanager
def _open_size(bench: Bench, size: int) -> Iterator[list[Subject]]:
    with bench.world() as world, bench.checkout(world, 1_000) as small, bench.clone(world, 1_000, "large") as large:
        with world.server(small) as server:
            for number in range(_KEPT):
                server.call("create_workspace", branch=f"kept/{number}")
        fill(world, large, size)
        last = f"w{size - 1:04}"
        (world.home / "worktrees" / last / "one.txt").write_text("one\n")
        with world.server(large) as server:
            making = Making(world, server, large)
            yield [
                _place(LIST, size, world.exeora("list", "--json", folder=small).run),
                _place(PATH, size, world.exeora("path", last, folder=large).run),
                _place(READ, size, lambda: read_often(server, last)),
                Subject(at(CREATE, size), making.create, finish=making.remove, series=CREATE, at=size),
                Subject(at(GIT, size), making.add, finish=making.drop, series=GIT, at=size),
            ]


def at(label: str, size: int) -> str:
    """Name a point of a series."""
    return f"{label}, {size:,}"


def _place(label: str, size: int, run) -> Subject:
    return Subject(at(label, size), run, series=label, at=size)


def read_often(server: Client, workspace: str, times: int = 20) -> None:
    """Read a small file in a workspace, some times: resolving it is most of that."""
    for _ in range(times):
        server.call("read_file", path="one.txt", workspace=workspace)


class Making:
    """Makes one workspace and takes it away again."""

    def __init__(self, world: World, server: Client, top: Path) -> None:
        self._world = world
        self._server = server
        self._top = top
        self._folder = str(world.home / "by-git")
        self._number = 0

    def create(self) -> None:
        self._number += 1
        self._server.call("create_workspace", branch=f"made/{self._number}", slug="made")

    def remove(self) -> None:
        self._server.call("remove_workspace", workspace="made")

    def add(self) -> None:
        self._number += 1
        self._world.git("worktree", "add", "-b", f"made/{self._number}", self._folder, folder=self._top).run()

    def drop(self) -> None:
        self._world.git("worktree", "remove", "--force", self._folder, folder=self._top).check()


BENCHMARKS = (
    Benchmark(
        name="scale",
        goal=9,
        title="As projects and workspaces grow",
        open=_open,
        bounds=(
            *(Bound(at(each, SIZES[-1]), at(each, SIZES[0]), FLAT) for each in (LIST, PATH, READ, CREATE)),
            Bound(at(CREATE, SIZES[-1]), at(GIT, SIZES[-1])),
        ),
        across="projects, and workspaces of one project",
        rounds=9,
    ),
)
