"""Takes the samples: the subjects in turns (A B A B), so that whatever else the machine does meets all of them."""

import gc
import time
from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Subject, Unavailable
from benchmarks.results import Measured, Result


def measure(benchmark: Benchmark, bench: Bench, *, now: Callable[[], float] = time.perf_counter) -> Result:
    """Measure one benchmark; where it cannot be measured here the result says why."""
    rounds = benchmark.quick_rounds if bench.quick else benchmark.rounds
    try:
        with benchmark.open(bench) as subjects:
            return Result(benchmark.unit, _take_turns(list(subjects), rounds, now))
    except Unavailable as error:
        return Result(benchmark.unit, (), missing=str(error))


def _take_turns(subjects: list[Subject], rounds: int, now: Callable[[], float]) -> tuple[Measured, ...]:
    samples: dict[str, list[float]] = {subject.label: [] for subject in subjects}
    if len(samples) < len(subjects):
        raise ValueError("two subjects have the same label")
    for number in range(rounds + 1):
        for subject in subjects:
            sample = _take(subject, now)
            if number:  # the first round warms up
                samples[subject.label].append(sample)
    return tuple(Measured(s.label, tuple(samples[s.label]), s.series, s.at) for s in subjects)


def _take(subject: Subject, now: Callable[[], float]) -> float:
    subject.prepare()
    gc.collect()
    gc.disable()
    try:
        begun = now()
        given = subject.run()
        taken = now() - begun
    finally:
        gc.enable()
        subject.finish()
    return taken if given is None else given
