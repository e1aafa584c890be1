"""Goal 9 (scale)."""

from benchmarks.benchmark import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = ()
