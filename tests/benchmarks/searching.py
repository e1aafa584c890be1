"""Goal 5 (search and list files)."""

from benchmarks.benchmark import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = ()
