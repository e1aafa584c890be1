"""Goal 5: searching and listing over a warm server, beside ripgrep as a process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Bound, Subject

RARE, COMMON, ABSENT = "number_777$", "kermen", "there_is_no_such_word"
LISTING = "`rg --files --hidden`"
GIT_LISTING = "`git ls-files -co --exclude-standard`"


@contextmanager
def _search(bench: Bench, pattern: str) -> Iterator[Sequence[Subject]]:
    with bench.world() as world, bench.checkout(world, bench.size(20_000, 1_000)) as top, world.server(top) as server:
        rg = world.program("rg", "--no-config", "--hidden", "--glob=!.git", "-n", pattern, folder=top)
        rg = type(rg)(rg.argv, rg.folder, rg.environment, good_codes=(0, 1))
        yield [
            Subject("`rg`", rg.run),
            Subject("`grep`", lambda: drop(server.call("grep", pattern=pattern))),
        ]


@contextmanager
def _list(bench: Bench) -> Iterator[Sequence[Subject]]:
    with bench.world() as world, bench.checkout(world, bench.size(20_000, 1_000)) as top, world.server(top) as server:
        calls = {
            "`list_files`, `**`": partial(server.call, "list_files", recursive=True, glob="**"),
            "`list_files`, `*.go`": partial(server.call, "list_files", recursive=True, glob="*.go"),
            "`list_files`, no match": partial(server.call, "list_files", recursive=True, glob="*.nothing"),
        }
        git = ("ls-files", "-co", "--exclude-standard", "-z")
        yield [
            Subject(LISTING, world.program("rg", "--no-config", "--files", "--hidden", folder=top).run),
            Subject(GIT_LISTING, world.git(*git, folder=top).run),
            *(Subject(label, lambda ask=ask: drop(ask())) for label, ask in calls.items()),
        ]


def drop(_answer: object) -> None:
    """Have an answer, and no more: a subject that gives nothing is timed."""


_TRIED_LISTING = """\
Git lists (`git ls-files`), in half the time of ripgrep's walk, and tracked files that a rule ignores as well. What a
glob cannot choose is dropped by a text that it must hold, before Python takes a record apart. Git's own pathspecs,
`pathspec` and libgit2's `path_is_ignored` take several times as long.
"""
_TRIED_SEARCH = """\
ripgrep says where, unsorted; only when there are more matches than are shown it is asked again in order, and stops
after the first. Beside it git names the tracked files that ripgrep would pass over (`git ls-files --ignored`), which
takes a core for a part of the time; remembering its answer would need every folder looked at again. ripgrep without
memory maps is faster on a tree of small files.
"""
_SEARCHES = (
    ("rare", "a word that is there once", RARE),
    ("common", "a common word", COMMON),
    ("absent", "no match", ABSENT),
)

BENCHMARKS = (
    *(
        Benchmark(
            name=f"grep-{name}",
            goal=5,
            title=f"Search 20,000 files: {title}",
            open=partial(_search, pattern=pattern),
            bounds=(Bound("`grep`", "`rg`", plus=0.015),),
            tried=_TRIED_SEARCH if name == "absent" else "",
        )
        for name, title, pattern in _SEARCHES
    ),
    Benchmark(
        name="files",
        goal=5,
        title="List 20,000 files",
        tried=_TRIED_LISTING,
        open=_list,
        bounds=(
            Bound("`list_files`, `**`", LISTING, 1.3),
            Bound("`list_files`, `*.go`", LISTING, 1.3),
            Bound("`list_files`, no match", LISTING, 1.3),
        ),
    ),
)
