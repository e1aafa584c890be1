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
from pathlib import Path, PurePosixPath
from exeora_ws.app import open_app
from exeora_ws.names import Slug, new_project_id, new_workspace_id
from exeora_ws.workspaces.place import Project, Workspace
from exeora_ws.workspaces.registry import insert_project, insert_workspace

top, projects, worktrees = map(Path, sys.argv[1:])
inventory = open_app().inventory
mine, _ = inventory.register_project(top, exact=True)
with inventory.registry.change() as connection:
    for folder in sorted(projects.iterdir()):
        project = Project(new_project_id(), Slug(folder.name), folder, folder / ".git", PurePosixPath(), False)
        insert_project(connection, project)
        main = Workspace(new_workspace_id(), project.id, Slug("main"), "main", "main", folder, folder, False)
        insert_workspace(connection, main, None, "registered")
    for folder in sorted(worktrees.iterdir()):
        slug = Slug(folder.name)
        made = Workspace(new_workspace_id(), mine.id, slug, folder.name, None, folder, folder, False)
        insert_workspace(connection, made, None, "attached")
"""


def fill(world: World, top: Path, size: int) -> None:
    """Make projects and worktrees, the few files that make them up, and have them registered in one go."""
    projects, worktrees = world.home / "projects", world.home / "worktrees"
    for folder in (projects, worktrees):
        folder.mkdir()
    for number in range(size - 1):
        make_project(projects / f"p{number:04}")
    head = world.git("rev-parse", "HEAD", folder=top).check()
    for number in range(size):
        make_worktree(top / ".git", worktrees / f"w{number:04}", head)
    world.program(sys.executable, "-c", _FILL, str(top), str(projects), str(worktrees)).check()


def make_project(folder: Path) -> None:
    """Make an empty repository, as `git init` does."""
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")


def make_worktree(git_dir: Path, folder: Path, head: str) -> None:
    """Make a worktree without files, as `git worktree add --no-checkout --detach` does."""
    admin = git_dir / "worktrees" / folder.name
    admin.mkdir(parents=True)
    folder.mkdir()
    (admin / "HEAD").write_text(head)
    (admin / "commondir").write_text("../..\n")
    (admin / "gitdir").write_text(f"{folder}/.git\n")
    (folder / ".git").write_text(f"gitdir: {admin}\n")


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


_TRIED = """\
Listing and `path` search the registry's copy as text and take apart the lines that answer; a call asks the registry for
one row; the workspace around a folder is found by the folders above it. Creating writes the copy anew
and looks closely only at the worktrees that may hold its branch. Git reads all of them in
`git worktree add`, which nobody can spare it: that part grows with the worktrees of the one repository, not with other
projects. Not found yet: what else makes creating grow faster than Git's part does.
"""

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
        tried=_TRIED,
        across="projects, and workspaces of one project",
        rounds=9,
    ),
)
