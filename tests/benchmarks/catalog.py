"""Every benchmark, in the order of the page. One line a module; the room that owns a goal fills its module."""

from benchmarks import calls, commands, creating, fleet, memory, offline, removing, scale, searching, stated
from benchmarks.benchmark import Benchmark

MODULES = (creating, removing, offline, stated, searching, calls, commands, memory, scale, fleet)
BENCHMARKS: tuple[Benchmark, ...] = tuple(benchmark for module in MODULES for benchmark in module.BENCHMARKS)


def choose(words: str, *, quick: bool) -> list[Benchmark]:
    """Give the benchmarks that `ONLY=` means: names, beginnings of names, or numbers of goals, set off by commas.

    Raises:
        ValueError: a word means none.
    """
    chosen: list[Benchmark] = []
    for word in filter(None, words.split(",")):
        found = [each for each in BENCHMARKS if each.name.startswith(word) or str(each.goal) == word]
        if not found:
            raise ValueError(f"no benchmark is called {word!r}: {', '.join(each.name for each in BENCHMARKS)}")
        chosen += [each for each in found if each not in chosen]
    return [each for each in (chosen or BENCHMARKS) if each.quick or not quick or chosen]
