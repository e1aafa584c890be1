"""What a benchmark is: subjects that are run in turns, and what the ratio of their medians shall be.

To add one: a module with a value `BENCHMARKS`, and a line in `catalog.py`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.bench import Bench


class Unit(StrEnum):
    """What the samples of a benchmark are."""

    SECONDS = "seconds"
    BYTES = "bytes"


class Unavailable(Exception):
    """This cannot be measured here; the text says why, and stands on the page."""


def do_nothing() -> None:
    """Neither prepare nor clear up."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One of the things compared.

    `run` is timed, unless it gives a number: then that is the sample. `prepare` and `finish` run before and after each
    sample and are not timed. `series` and `at` place it in a plot.
    """

    label: str
    run: Callable[[], float | None]
    prepare: Callable[[], object] = do_nothing
    finish: Callable[[], object] = do_nothing
    series: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """What is wanted: the median of `ours` at most `ratio` of that of `of`, plus `plus` (seconds or bytes).

    Without `of` the limit is `plus` itself. A bound that is `stretch` is shown and not counted as missed.
    """

    ours: str
    of: str | None = None
    ratio: float = 1.0
    plus: float = 0.0
    stretch: bool = False


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Some subjects, measured together.

    Args:
        name: how `ONLY=` calls it.
        goal: the number of the goal it belongs to (goals.py).
        title: what is measured, as the page has it.
        open: makes ready (untimed), gives the subjects, and clears up. Raises `Unavailable` where nothing can be
            measured.
        bounds: the rows of the page.
        tried: what was tried, and why it is as it is; Markdown without measured numbers, since those would not be made
            by the run.
        rounds: samples of each subject; at least seven, but for what takes minutes.
    """

    name: str
    goal: int
    title: str
    open: Callable[[Bench], AbstractContextManager[Sequence[Subject]]]
    bounds: tuple[Bound, ...] = ()
    unit: Unit = Unit.SECONDS
    tried: str = ""
    rounds: int = 15
    quick_rounds: int = 7
    across: str = ""
    """What the horizontal axis of its plot is, where it has one."""
    quick: bool = True
    """Whether a quick run measures it too; its `open` then makes something smaller."""
