"""What a run leaves in docs/: the page, the results it is made of, and the drawings."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import plot
from benchmarks.benchmark import Benchmark, Unit
from benchmarks.catalog import BENCHMARKS
from benchmarks.page import render_page, render_summary, replace_summary
from benchmarks.results import Result, Results, load_results


class Documents:
    """The page and its companions in one folder."""

    def __init__(self, folder: Path, benchmarks: Sequence[Benchmark] = BENCHMARKS) -> None:
        self._folder = folder
        self._benchmarks = benchmarks
        self.results = load_results(self.data)

    @property
    def page(self) -> Path:
        return self._folder / "performance.md"

    @property
    def data(self) -> Path:
        return self._folder / "performance.json"

    def take(self, name: str, result: Result, run: str, conditions: Mapping[str, str]) -> None:
        """Put in one result, and write everything anew."""
        self.results.runs[run] = conditions
        self.results.take(name, result, run)
        known = {benchmark.name for benchmark in self._benchmarks}
        self.results.results = {each: kept for each, kept in self.results.results.items() if each in known}
        self.results.write(self.data)
        self.results = load_results(self.data)  # the page is of what is kept, digit for digit
        self.write()

    def write(self) -> None:
        """Write the page and the drawings out of the results."""
        for path, text in self.render().items():
            path.write_text(text)

    def render(self) -> dict[Path, str]:
        """Give what is to be written where."""
        drawings = render_plots(self._benchmarks, self.results)
        pages = {self.page: render_page(self._benchmarks, self.results, plots=drawings)}
        readme = self._folder.parent / "README.md"
        if readme.exists():
            pages[readme] = replace_summary(readme.read_text(), render_summary(self._benchmarks, self.results))
        return pages | {self._folder / f"performance-{name}.svg": text for name, text in drawings.items()}


def render_plots(benchmarks: Sequence[Benchmark], results: Results) -> dict[str, str]:
    """Draw each benchmark whose subjects stand in series, by name."""
    drawings = {}
    for benchmark in benchmarks:
        result = results.results.get(benchmark.name)
        series = find_series(result) if result else {}
        if result and series:
            up = "MB" if result.unit is Unit.BYTES else "ms"
            drawings[benchmark.name] = plot.draw(benchmark.title, benchmark.across, up, series)
    return drawings


def find_series(result: Result) -> dict[str, list[plot.Point]]:
    """Give the medians of the subjects that are in a series, in ms or MB."""
    factor = 1e-6 if result.unit is Unit.BYTES else 1e3
    found: dict[str, list[plot.Point]] = {}
    for subject in result.subjects:
        if subject.series and subject.at is not None:
            found.setdefault(subject.series, []).append((subject.at, subject.median * factor))
    return found
