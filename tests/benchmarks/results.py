"""What was measured, and on what: kept as JSON, so that a run of some benchmarks leaves the rows of the others."""

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.benchmark import Benchmark, Bound, Unit

_FORM = 1
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """The samples of one subject."""

    label: str
    samples: tuple[float, ...]
    series: str = ""
    at: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark's samples; none, and why, where it could not be measured."""

    unit: Unit
    subjects: tuple[Measured, ...]
    missing: str = ""
    run: str = ""
    """When: names the conditions it was measured under."""

    def find(self, label: str) -> Measured | None:
        return next((subject for subject in self.subjects if subject.label == label), None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bound beside what was measured."""

    ours: float
    of: float | None
    limit: float

    @property
    def met(self) -> bool:
        return self.ours <= self.limit

    @property
    def ratio(self) -> float | None:
        return self.ours / self.of if self.of else None

    @property
    def excess(self) -> float:
        """By what part it is over its limit."""
        return self.ours / self.limit - 1


def judge(bound: Bound, result: Result | None) -> Verdict | None:
    """Hold a bound against a result; None where one of the two was not measured."""
    ours = result.find(bound.ours) if result else None
    if result is None or ours is None:
        return None
    if bound.of is None:
        return Verdict(ours.median, None, bound.plus)
    of = result.find(bound.of)
    return Verdict(ours.median, of.median, bound.ratio * of.median + bound.plus) if of else None


def find_unknown_labels(benchmark: Benchmark, result: Result) -> set[str]:
    """Give what the bounds of a benchmark speak of and its result does not have."""
    if result.missing:
        return set()
    wanted = {label for bound in benchmark.bounds for label in (bound.ours, bound.of) if label is not None}
    return wanted - {subject.label for subject in result.subjects}


@dataclass(slots=True)
class Results:
    """All that is known: results by the name of their benchmark, and the conditions of each run that they are of."""

    results: dict[str, Result] = field(default_factory=dict)
    runs: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def take(self, name: str, result: Result, run: str) -> None:
        """Put a new result in the place of the one before."""
        self.results[name] = Result(result.unit, result.subjects, result.missing, run)

    def write(self, path: Path) -> None:
        """Write it, less the runs that nothing is of any more."""
        used = {result.run for result in self.results.values()}
        document = {
            "form": _FORM,
            "runs": {run: dict(self.runs[run]) for run in sorted(used)},
            "results": {name: _to_json(result) for name, result in sorted(self.results.items())},
        }
        path.write_text(json.dumps(document, indent=1) + "\n")


def load_results(path: Path) -> Results:
    """Read what an earlier run wrote; nothing where there is none."""
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return Results()
    if document["form"] != _FORM:
        return Results()
    return Results({name: _from_json(each) for name, each in document["results"].items()}, dict(document["runs"]))


def _to_json(result: Result) -> dict[str, Any]:
    subjects = [asdict(each) | {"samples": [_round(sample) for sample in each.samples]} for each in result.subjects]
    return {"run": result.run, "unit": result.unit.value, "missing": result.missing, "subjects": subjects}


def _from_json(document: Mapping[str, Any]) -> Result:
    subjects = tuple(Measured(**{**each, "samples": tuple(each["samples"])}) for each in document["subjects"])
    return Result(Unit(document["unit"]), subjects, document["missing"], document["run"])


def _round(sample: float) -> float:
    return float(f"{sample:.{_DIGITS}g}")
