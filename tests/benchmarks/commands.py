"""Goal 7 (start, small reads, commands)."""

from benchmarks.benchmark import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = ()
