"""Goal 8: what a server holds of memory (the kernel's proportional share, its children included)."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Bound, Subject, Unit
from benchmarks.client import Client, read_resident_bytes

IDLE = "idle after the handshake and one call"
READ, FLOOD, LIST = "a range of a file of 2 GB", "`yes` for two seconds", "a listing of 100,000 files, the server"
LIST_ALL = "the same listing, with what git holds meanwhile"
MORE = 20_000_000
_LOOK_SECONDS = 0.02


class Peak:
    """Looks at a server's memory every few milliseconds, and keeps the most it saw."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read
        self._over = threading.Event()
        self.most = 0

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            self.most = max(self.most, self._read())
            if self._over.wait(_LOOK_SECONDS):
                return


def measure_growth(server: Client, work: Callable[[], Any], *, children: bool = True) -> float:
    """Give by how many bytes a server grew while it did something, at the most, with or without its children."""

    def read() -> int:
        return read_resident_bytes(server.process.pid, children=children)

    before = read()
    with Peak(read) as peak:
        work()
    return float(max(0, peak.most - before))


@contextmanager
def _open_idle(bench: Bench) -> Iterator[Sequence[Subject]]:
    with bench.world() as world, bench.checkout(world, 1_000) as top:

        def hold() -> float:
            with world.server(top) as server:
                server.ask("tools/list")
                server.call("read_file", path="README.md")
                return float(read_resident_bytes(server.process.pid))

        yield [Subject(IDLE, hold)]


@contextmanager
def _open_growth(bench: Bench) -> Iterator[Sequence[Subject]]:
    files = bench.size(100_000, 1_000)
    with bench.world() as world, bench.checkout(world, files) as top:
        lines = b"".join(b"line %d of a very large file\n" % number for number in range(100_000))
        with open(top / "large.log", "wb") as stream:
            while stream.tell() < bench.size(2_000_000_000, 50_000_000):
                stream.write(lines)

        def grow(work: Callable[[Client], Any], *, children: bool = True) -> float:
            """A fresh server each time: what one has once held it may keep."""
            with world.server(top) as server:
                server.call("read_file", path="README.md")
                return measure_growth(server, lambda: work(server), children=children)

        def list_all(server: Client) -> None:
            server.call("list_files", recursive=True, glob="**")

        far = bench.size(50_000_000, 1_000_000)
        yield [
            Subject(READ, lambda: grow(lambda s: s.call("read_file", path="large.log", offset=far, limit=200))),
            Subject(FLOOD, lambda: grow(lambda s: s.call("run_command", command="timeout 2 yes", timeoutMs=20_000))),
            Subject(LIST, lambda: grow(list_all, children=False)),
            Subject(LIST_ALL, lambda: grow(list_all)),
        ]


_TRIED = """\
A fresh server each time, looked at every twenty milliseconds while it works. Its children count as well (ripgrep, the
shell and what that runs), but for git's own index of the checkout, which is shown beside it. A file is read through a
buffer of fixed size, output is kept in a ring, and of a listing only what may be shown is kept while git's is read.
What a server loads when it is first asked for such a thing counts too, which is more since an idle one holds less.
"""

BENCHMARKS = (
    Benchmark(
        name="memory-idle",
        goal=8,
        title="An idle server",
        open=_open_idle,
        unit=Unit.BYTES,
        bounds=(Bound(IDLE, plus=80_000_000),),
        rounds=7,
        quick_rounds=1,
    ),
    Benchmark(
        name="memory-growth",
        goal=8,
        title="At most more, while it works",
        open=_open_growth,
        unit=Unit.BYTES,
        bounds=tuple(Bound(each, plus=MORE) for each in (READ, FLOOD, LIST)),
        tried=_TRIED,
        rounds=7,
        quick_rounds=1,
    ),
)
