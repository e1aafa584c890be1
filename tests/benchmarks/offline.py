"""Goal 3: what is answered out of the inventory, as whole processes."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench, World
from benchmarks.benchmark import Benchmark, Bound, Subject, Unavailable

PYTHON = "`python -I -c pass`"
TYPER = "a hello world in typer"
GIT_LIST = "`git worktree list --porcelain`"
LIST, PATH, SWITCH, COMPLETION = "`exeora list --json`", "`exeora path`", "`exeora switch`", "completion of a workspace"
_HELLO = "import typer\n\ndef main(name: str = 'you') -> None:\n    print('hello', name)\n\ntyper.run(main)\n"
_HOT = (LIST, PATH, SWITCH, COMPLETION)


def add_worktrees(world: World, top: Path, count: int) -> None:
    """Make worktrees with Git, without their files, and connect them: only the registry and the links matter."""
    for number in range(count):
        folder = world.home / "worktrees" / f"w{number}"
        world.git(
            "worktree", "add", "--quiet", "--no-checkout", "-b", f"topic/{number}", str(folder), folder=top
        ).check()
    with world.server(top) as server:
        for number in range(count):
            server.call("attach_workspace", path=str(world.home / "worktrees" / f"w{number}"), slug=f"w{number}")


@contextmanager
def _open(bench: Bench, workspaces: int) -> Iterator[Sequence[Subject]]:
    with bench.world() as world, bench.checkout(world, 1_000) as top:
        add_worktrees(world, top, workspaces)
        hello = world.home / "hello.py"
        hello.write_text(_HELLO)
        last = f"w{workspaces - 1}"
        directive = world.home / "directive"
        directive.touch()
        words = f"exeora path {last}"
        completing = {"_EXEORA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
        switch = world.exeora("switch", last, folder=top).with_variables(EXEORA_DIRECTIVE_FILE=str(directive))
        yield [
            Subject(PYTHON, world.program(sys.executable, "-I", "-c", "pass", folder=top).run),
            Subject(LIST, world.exeora("list", "--json", folder=top).run),
            Subject(PATH, world.exeora("path", last, folder=top).run),
            Subject(SWITCH, switch.run),
            Subject(COMPLETION, world.exeora(folder=top).with_variables(**completing).run),
            Subject(GIT_LIST, world.git("worktree", "list", "--porcelain", folder=top).run),
            Subject(TYPER, world.program(sys.executable, str(hello), folder=top).run),
        ]
        if directive.read_text() != f"cd {world.home}/worktrees/{last}":
            raise Unavailable("`exeora switch` did not switch")


_TRIED = """\
What is left over starting Python is the import of twelve small modules, and three small reads for each worktree: its
`.git`, the link back, and its HEAD. `git worktree list` reads the last two, and does not say whether the folder still
is what it was. Leaving Python by `os._exit`, one look at the links in place of two, and lines taken apart when they are
asked for were worth most; threads, descriptors of folders in place of paths, and a collector switched off nothing.
"""

BENCHMARKS = (
    Benchmark(
        name="list",
        goal=3,
        title="A few workspaces",
        open=lambda bench: _open(bench, 3),
        bounds=(
            *(Bound(each, PYTHON, 1.7) for each in _HOT),
            *(Bound(each, TYPER, 0.15) for each in _HOT),
        ),
        rounds=25,
    ),
    Benchmark(
        name="list-200",
        goal=3,
        title="200 workspaces",
        open=lambda bench: _open(bench, bench.size(200, 20)),
        bounds=tuple(Bound(each, GIT_LIST, 1.5) for each in _HOT),
        tried=_TRIED,
        rounds=25,
    ),
)
