"""A fleet under load: 1,000 simulated machines, 200 calls a second for a minute (docs/fleet.md, sizing).

`python -m benchmarks.fleet [machines rate seconds gateways]` prints the figures; `make bench ONLY=fleet` puts them onto
the page.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Bound, Subject, Unit
from support.simulation import Figures, simulating

MACHINES, RATE, SECONDS, GATEWAYS = 1_000, 200.0, 60.0, 2
_PROCESSES = 4
MEDIAN, NINETY_NINE = "half of the calls are answered within", "99 of 100 calls are answered within"
PROCESSOR = "processor time of a call in its gateway"
GATEWAY, NATS = "a gateway", "the nats-server"
PROCESSOR_SECONDS, GATEWAY_BYTES = 0.004, 120_000_000
_taken: dict[Path, Figures] = {}
"""One minute serves both benchmarks of a run."""


def simulate(folder: Path, machines: int, rate: float, seconds: float, gateways: int) -> Figures:
    """Run a fleet and load it; gives what came of it."""
    with simulating(folder, machines, processes=_PROCESSES, gateways=gateways) as simulation:
        return simulation.load(rate, seconds)


def describe(figures: Figures) -> list[str]:
    """Put the figures into lines."""
    calls, done = len(figures.calls), sum(call.done for call in figures.calls)
    times = ", ".join(f"{share:g} %: {1000 * figures.percentile(share):.1f} ms" for share in (50, 90, 99, 99.9))
    lines = [f"{done} of {calls} calls answered with a result; {times}"]
    used = [(GATEWAY, gateway, calls / len(figures.gateways)) for gateway in figures.gateways]
    used += [(NATS, figures.nats, calls), ("the simulated machines", figures.machines, calls)]
    return lines + [
        f"{name}: {1000 * each.processor / share:.2f} ms of processor a call, {each.memory / 1e6:.0f} MB"
        for name, each, share in used
    ]


def _measure_once(bench: Bench) -> Figures:
    folder = bench.folder / "fleet"
    if folder not in _taken:
        machines, seconds = bench.size(MACHINES, 50), bench.size(SECONDS, 5.0)
        figures = simulate(folder, machines, bench.size(RATE, 50.0), seconds, GATEWAYS)
        lost = sum(not call.done for call in figures.calls)
        assert not lost, f"{lost} calls were not answered with a result"
        _taken[folder] = figures
    return _taken[folder]


@contextmanager
def _open_times(bench: Bench) -> Iterator[Sequence[Subject]]:
    figures, rounds = _measure_once(bench), bench.size(15, 7)
    length = max(call.due for call in figures.calls) / rounds
    windows = [figures.window(number * length, (number + 1) * length) for number in range(rounds)]

    def in_turn(share: float) -> Any:
        """Give the share of one window after the other; the round that warms up gets the first too."""
        left = iter([windows[0], *windows])
        return lambda: figures.percentile(share, next(left))

    spent = sum(gateway.processor for gateway in figures.gateways) / len(figures.calls)
    yield [
        Subject(MEDIAN, in_turn(50)),
        Subject(NINETY_NINE, in_turn(99)),
        Subject(PROCESSOR, lambda: spent),
    ]


@contextmanager
def _open_memory(bench: Bench) -> Iterator[Sequence[Subject]]:
    figures = _measure_once(bench)
    most = max(gateway.memory for gateway in figures.gateways)
    yield [Subject(GATEWAY, lambda: float(most)), Subject(NATS, lambda: float(figures.nats.memory))]


_TITLE = f"{MACHINES:,} machines, {RATE:g} calls a second for a minute"
BENCHMARKS = (
    Benchmark(
        name="fleet",
        goal=10,
        title=_TITLE,
        open=_open_times,
        bounds=(Bound(PROCESSOR, plus=PROCESSOR_SECONDS),),
        quick=False,
    ),
    Benchmark(
        name="fleet-memory",
        goal=10,
        title=f"memory with {_TITLE}",
        open=_open_memory,
        bounds=(Bound(GATEWAY, plus=float(GATEWAY_BYTES)),),
        unit=Unit.BYTES,
        quick=False,
    ),
)


def main(words: Sequence[str]) -> int:
    """Measure once and print."""
    given = [float(word) for word in words] or [MACHINES, RATE, SECONDS, GATEWAYS]
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        figures = simulate(Path(folder) / "fleet", int(given[0]), given[1], given[2], int(given[3]))
    print(*describe(figures), sep="\n")
    return 0 if all(call.done for call in figures.calls) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
