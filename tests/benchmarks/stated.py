"""Goal 4 (list with status)."""

from benchmarks.benchmark import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = ()
