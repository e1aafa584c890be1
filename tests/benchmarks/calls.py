"""Goal 6: one call over stdio, by the same raw client, beside the public servers."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks import servers
from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Bound, Subject
from benchmarks.client import Client
from benchmarks.searching import drop

_ALL = (
    servers.OURS,
    servers.PLAIN,
    servers.FILESYSTEM,
    servers.COMMANDER,
    servers.FAST,
    servers.SDK,
    servers.LOOP,
)
_WARM = 10
"""Calls before any is timed: what a server loads or compiles late is not what a call takes."""


@contextmanager
def _start(bench: Bench) -> Iterator[Sequence[Subject]]:
    with bench.world() as world, bench.checkout(world, 1_000) as top:
        environment = servers.find_environment(world)

        def start(argv: Sequence[str]) -> float:
            began = time.perf_counter()
            client = Client(argv, top, environment)
            try:
                client.start()
                client.ask("tools/list")
                return time.perf_counter() - began
            finally:
                client.close()

        labels = (*_ALL[:4], servers.COMMANDS, *_ALL[4:])
        yield [Subject(label, partial(start, servers.find_command(bench, label, top))) for label in labels]


@contextmanager
def _call(bench: Bench, row: str) -> Iterator[Sequence[Subject]]:
    files_there = bench.size(20_000, 1_000)
    with bench.world() as world, bench.checkout(world, files_there) as top:
        files = servers.Files(top)
        files.write(_ALL)
        with servers.started(bench, world, top, _ALL) as clients:
            asks = {label: servers.find_ask(label, row, client, files) for label, client in clients.items()}
            for ask in filter(None, asks.values()):
                for _ in range(_WARM):
                    ask()
            yield [Subject(label, lambda ask=ask: drop(ask())) for label, ask in asks.items() if ask is not None]


_TRIED_START = """\
What needs no core is answered before it is imported: the handshake, and the listing of a project that nobody has set
any policy for, kept as text. The protocol library is imported only for what is unusual. The first call of a tool waits
for the core, a few times this long.
"""
_TRIED_LARGE = """\
One read of ours holds at most 500,000 bytes, so the whole file takes eleven calls, each with its permission and its
line in the record; the others send it in one answer. Lines are counted once. A wider pipe saves turns.
"""
_TRIED_LIST = """\
The project's top folder. Ours says of each entry what it is and how large; `list_directory` gives names. Most of the
call is finding the place, judging by the policy, and two lines in the record.
"""
_ROWS = (
    ("small", "Read 1 KB", "", (servers.FILESYSTEM, servers.COMMANDER, servers.FAST, servers.SDK)),
    ("large", "Read 5 MB", _TRIED_LARGE, (servers.FILESYSTEM, servers.FAST, servers.SDK)),
    ("list", "List a folder", _TRIED_LIST, (servers.FILESYSTEM, servers.COMMANDER, servers.FAST, servers.SDK)),
    (
        "search",
        "Search 20,000 files (server-filesystem: their names)",
        "",
        (servers.FILESYSTEM, servers.FAST, servers.SDK),
    ),
    ("edit", "Edit a file", "", (servers.FILESYSTEM, servers.COMMANDER, servers.FAST, servers.SDK)),
    ("run", "Run `true`", "", (servers.COMMANDER, servers.FAST, servers.SDK)),
)

BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        name="call-start",
        goal=6,
        title="Start to `tools/list`",
        open=_start,
        bounds=tuple(Bound(servers.OURS, each) for each in servers.PUBLIC),
        tried=_TRIED_START,
        rounds=9,
        quick=False,
    ),
    *(
        Benchmark(
            name=f"call-{row}",
            goal=6,
            title=title,
            open=partial(_call, row=row),
            bounds=tuple(Bound(servers.OURS, each) for each in than),
            tried=tried,
            rounds=25,
            quick=False,
        )
        for row, title, tried, than in _ROWS
    ),
)
