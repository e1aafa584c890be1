"""Benchmarks are no tests; that they measure what they say, and that the page says what was measured, is tested."""

import gc
import itertools
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import __main__ as program
from benchmarks import page, plot
from benchmarks.bench import Bench
from benchmarks.benchmark import Benchmark, Bound, Subject, Unavailable, Unit
from benchmarks.catalog import BENCHMARKS, MODULES, choose
from benchmarks.command import Command, CommandFailed
from benchmarks.conditions import describe_machine, find_file_system
from benchmarks.documents import Documents
from benchmarks.goals import GOALS
from benchmarks.inputs import generate
from benchmarks.results import Results, judge
from benchmarks.runner import measure

TOP = Path(__file__).parents[1]
FASTER, SLOWER = "`true`", "`sleep`"


@pytest.fixture(autouse=True, scope="module")
def little_garbage() -> None:
    """Every sample begins with a search for garbage: not in what thousands of other tests have left."""
    gc.collect()
    gc.freeze()


@contextmanager
def open_tiny(bench: Bench) -> Iterator[Sequence[Subject]]:
    with bench.world() as world:
        yield [
            Subject(FASTER, world.program("true").run, series="one", at=1),
            Subject(SLOWER, world.program("sleep", "0.02").run, series="one", at=10),
        ]


TINY = Benchmark(
    name="tiny",
    goal=3,
    title="Two programs",
    open=open_tiny,
    bounds=(Bound(FASTER, SLOWER, 0.9), Bound(SLOWER, FASTER, 1.01), Bound(SLOWER, plus=60.0)),
    across="number",
    rounds=7,
    tried="Nothing was tried.",
)


@contextmanager
def open_nothing(_bench: Bench) -> Iterator[Sequence[Subject]]:
    raise Unavailable("no such thing here")
    yield []


MISSING = Benchmark(name="missing", goal=1, title="Missing", open=open_nothing, bounds=(Bound("`a`", "`b`"),))


def test_a_tiny_run_from_end_to_end(tmp_path: Path, capsys):
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "README.md").write_text(f"# before\n{page.MARKS[0]}\n{page.MARKS[1]}\nafter\n")
    documents = Documents(docs, (MISSING, TINY))
    assert program.run((MISSING, TINY), documents, folder=tmp_path, quick=False) == 0
    told = capsys.readouterr().out
    assert f"{FASTER}: " in told
    assert "met" in told
    assert "% over" in told
    text = (docs / "performance.md").read_text()
    assert [f"## {goal.number}. {goal.title}" in text for goal in GOALS] == [True] * len(GOALS)
    assert "not measured: no such thing here" in text
    assert f"at most 0.90 of {SLOWER}" in text
    assert "**" in text  # a bound that is missed, by how much
    assert "performance-tiny.svg" in text
    assert TINY.tried in text
    assert f"| file system | {find_file_system(tmp_path)} |" in text
    ET.fromstring((docs / "performance-tiny.svg").read_text())
    assert not list(tmp_path.glob("exeora-bench-*"))
    again = Documents(docs, (MISSING, TINY))
    assert again.render() == {path: path.read_text() for path in again.render()}


def test_a_quick_run_writes_nothing(tmp_path: Path):
    before = list(tmp_path.iterdir())
    assert program.run((TINY,), None, folder=tmp_path, quick=True) == 0
    assert list(tmp_path.iterdir()) == before


def test_one_that_breaks_does_not_keep_the_others_from_being_measured(tmp_path: Path):
    @contextmanager
    def break_down(bench: Bench) -> Iterator[Sequence[Subject]]:
        with bench.world() as world:
            yield [Subject("`false`", world.program("false").run)]

    broken = Benchmark(name="broken", goal=1, title="Broken", open=break_down)
    documents = Documents(tmp_path, (broken, TINY))
    assert program.run((broken, TINY), documents, folder=tmp_path, quick=False) == 1
    assert list(documents.results.results) == ["tiny"]


def test_subjects_are_run_in_turns_after_a_round_to_warm_up(tmp_path: Path):
    order: list[str] = []

    @contextmanager
    def open_two(_bench: Bench) -> Iterator[Sequence[Subject]]:
        def subject(name: str) -> Subject:
            return Subject(
                name,
                lambda: float(len(order)),
                prepare=lambda: order.append(f"{name} prepare"),
                finish=lambda: order.append(f"{name} finish"),
            )

        yield [subject("a"), subject("b")]

    counted = Benchmark(name="counted", goal=1, title="", open=open_two, unit=Unit.BYTES, rounds=9)
    result = measure(counted, Bench(tmp_path))
    assert order[:4] == ["a prepare", "a finish", "b prepare", "b finish"]
    assert order == order[:4] * 10
    assert [len(subject.samples) for subject in result.subjects] == [9, 9]
    assert result.subjects[0].samples[0] == 5.0  # the first round is not among them


def test_what_run_takes_is_the_sample_unless_it_gives_one(tmp_path: Path):
    @contextmanager
    def open_one(_bench: Bench) -> Iterator[Sequence[Subject]]:
        yield [Subject("timed", lambda: None), Subject("given", lambda: 42.0)]

    clock = itertools.count(step=3)
    one = Benchmark(name="one", goal=1, title="", open=open_one)
    result = measure(one, Bench(tmp_path, quick=True), now=lambda: float(next(clock)))
    assert [subject.median for subject in result.subjects] == [3.0, 42.0]


def test_a_run_of_some_keeps_the_rows_of_the_others(tmp_path: Path):
    @contextmanager
    def open_known(_bench: Bench) -> Iterator[Sequence[Subject]]:
        yield [Subject(FASTER, lambda: 1.0), Subject(SLOWER, lambda: 2.0)]

    first, second = (
        Benchmark(name=name, goal=3, title=name, open=open_known, bounds=(Bound(FASTER, SLOWER),)) for name in "ab"
    )
    for chosen, stamp in (((first, second), "2026-01-01"), ((second,), "2026-02-02")):
        documents = Documents(tmp_path, (first, second))
        for each in chosen:
            documents.take(each.name, measure(each, Bench(tmp_path, quick=True)), stamp, {"load": stamp})
    text = (tmp_path / "performance.md").read_text()
    assert "## Measured 2026-01-01 (a)" in text
    assert "## Measured 2026-02-02 (b)" in text


def test_a_bound_is_met_or_missed_by_a_part_of_its_limit():
    assert page.describe_limit(Bound("a", "`rg`", plus=0.015), Unit.SECONDS) == "at most `rg` plus 15.0 ms"
    assert page.describe_limit(Bound("a", plus=80e6), Unit.BYTES) == "at most 80.0 MB"
    assert page.describe_limit(Bound("a", "b", 0.5, stretch=True), Unit.SECONDS) == "stretch: at most 0.50 of b"
    assert judge(Bound("a", "b"), None) is None
    shown = [page.show(value, Unit.SECONDS) for value in (0.0000123, 0.00123, 0.0123, 1.23)]
    assert shown == ["12 µs", "1.23 ms", "12.3 ms", "1,230 ms"]


def test_programs_that_fail_are_no_measurement(tmp_path: Path, sealed: dict[str, str]):
    with pytest.raises(CommandFailed, match="sad"):
        Command(("/bin/sh", "-c", "echo sad >&2; exit 3"), tmp_path, sealed).run()
    Command(("/bin/sh", "-c", "exit 3"), tmp_path, sealed, good_codes=(3,)).run()


def test_a_generated_repository_has_its_files_and_is_always_the_same(tmp_path: Path):
    trees = []
    for name in ("one", "two"):
        generate(tmp_path / name, 300)
        listed = subprocess.run(
            ["git", "-C", tmp_path / name, "ls-tree", "-r", "main"], capture_output=True, text=True, check=True
        )
        trees.append(listed.stdout)
    assert trees[0] == trees[1]
    paths = [line.partition("\t")[2] for line in trees[0].splitlines()]
    assert len(paths) == len(set(paths)) == 300
    assert max(path.count("/") for path in paths) >= 3


def test_the_machine_is_described(tmp_path: Path):
    said = describe_machine(tmp_path)
    assert {"processor", "memory", "kernel", "file system", "load at the start", "Python", "git", "ripgrep"} <= set(
        said
    )
    assert said["git"].startswith("git version")


def test_a_plot_has_a_line_for_each_series_and_a_point_for_each_value():
    text = plot.draw("t < u", "x", "ms", {"a & b": [(10, 1.5), (1_000, 300)], "c": [(10, 2)]})
    drawing = ET.fromstring(text)
    kinds = [element.tag.rpartition("}")[2] for element in drawing.iter()]
    assert kinds.count("polyline") == 2
    assert kinds.count("circle") == 3


def test_every_benchmark_belongs_to_a_goal_and_can_be_chosen():
    assert [goal.number for goal in GOALS] == list(range(1, 11))
    assert {benchmark.goal for benchmark in BENCHMARKS} <= {goal.number for goal in GOALS}
    names = [benchmark.name for benchmark in BENCHMARKS]
    assert len(names) == len(set(names))
    assert all(benchmark.rounds >= 7 for benchmark in BENCHMARKS)
    assert {each.name for each in choose("list,5", quick=False)} >= {"list", "list-200", "files"}
    with pytest.raises(ValueError, match="no benchmark"):
        choose("nothing", quick=False)
    assert len(MODULES) == len(GOALS)


def test_benchmarks_are_not_collected_as_tests():
    folder = TOP / "tests" / "benchmarks"
    assert not [
        path.name for path in folder.rglob("*.py") if path.name.startswith("test_") or path.stem.endswith("_test")
    ]


def test_no_number_that_was_not_measured_stands_beside_those_that_were():
    for benchmark in BENCHMARKS:
        assert not re.search(r"\d ?(ms|µs|s|MB|%)\b", benchmark.tried), benchmark.name


def test_the_page_and_the_readme_say_what_was_measured():
    documents = Documents(TOP / "docs")
    for path, text in documents.render().items():
        assert path.read_text() == text, f"{path.name}: make bench, or python -m benchmarks --render"
    rows = documents.page.read_text().split("\n## Goals\n")[1].split("\n## ")[0]
    for goal in GOALS:
        assert f"| {goal.number}. {goal.title} |" in rows


def test_the_readme_gives_no_other_figures_of_speed():
    text = (TOP / "README.md").read_text()
    outside = text.partition(page.MARKS[0])[0] + text.partition(page.MARKS[1])[2]
    assert not re.search(r"\d ?(ms|µs|milliseconds|MB)\b", outside)
    assert page.MARKS[1] in text


def test_a_page_without_any_result_has_a_row_for_each_goal():
    rows = page.render_goals((), Results())
    assert len(rows) == 1 + len(GOALS)
