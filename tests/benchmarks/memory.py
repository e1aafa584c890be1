"""Goal 8 (memory)."""

from benchmarks.benchmark import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = ()
