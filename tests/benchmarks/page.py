"""The page: what was measured beside what is wanted. Every number on it comes out of the results."""

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.benchmark import Benchmark, Bound, Unit
from benchmarks.conditions import show_conditions
from benchmarks.goals import GOALS, Goal
from benchmarks.results import Measured, Result, Results, Verdict, judge

_HEAD = """# Performance

Made by `make bench`, which measures the product beside Git, ripgrep and other servers in one run on one machine. What
is compared is run in turns (A B A B), at least seven times each after a round to warm up; a number is a median, a
ratio one of medians. `make bench ONLY=list,grep` measures some of it again and leaves the rest; `make bench QUICK=1`
measures all of it on small inputs, prints what it finds and leaves this page."""
_COLUMNS = "| goal | what | limit | measured | ratio | |\n|---|---|---|---|---|---|"


def render_page(benchmarks: Sequence[Benchmark], results: Results, *, plots: Iterable[str] = ()) -> str:
    """Write the whole page; `plots` names the benchmarks whose drawing lies beside it as performance-NAME.svg."""
    drawn = set(plots)
    parts = [_HEAD, *_render_runs(results), "## Goals\n\n" + "\n".join(render_goals(benchmarks, results))]
    for goal in GOALS:
        mine = [benchmark for benchmark in benchmarks if benchmark.goal == goal.number]
        parts += [f"## {goal.number}. {goal.title}", goal.text]
        if not mine:
            parts.append("Not measured yet.")
        for benchmark in mine:
            parts += _render_benchmark(benchmark, results.results.get(benchmark.name), drawn=benchmark.name in drawn)
    return "\n\n".join(parts) + "\n"


def _render_runs(results: Results) -> Iterator[str]:
    used = sorted({result.run for result in results.results.values()}, reverse=True)
    for run in used:
        names = sorted(name for name, result in results.results.items() if result.run == run)
        of = "" if len(used) == 1 else f" ({', '.join(names)})"
        yield f"## Measured {run}{of}\n\n" + "\n".join(show_conditions(results.runs[run]))


def render_goals(benchmarks: Iterable[Benchmark], results: Results) -> list[str]:
    """Give the table of all goals: a row for each bound, and one for a goal without any."""
    benchmarks = list(benchmarks)
    lines = [_COLUMNS]
    for goal in GOALS:
        rows = [
            _render_bound(goal, benchmark, bound, results.results.get(benchmark.name))
            for benchmark in benchmarks
            if benchmark.goal == goal.number
            for bound in benchmark.bounds
        ]
        lines += rows or [f"| {goal.number}. {goal.title} | | | | | not measured yet |"]
    return lines


_CLEAR = 0.05
SUMMARISED = ("create-20k", "list", "status", "grep-rare", "files")
"""Benchmarks whose first bound stands in the README, where they were measured."""
MARKS = ("<!-- measured by `make bench` -->", "<!-- end of what was measured -->")


def render_summary(benchmarks: Iterable[Benchmark], results: Results) -> str:
    """Give the few lines that the README says of speed."""
    lines = ["| what | takes | beside | ratio |", "|---|---|---|---|"]
    for benchmark in benchmarks:
        result = results.results.get(benchmark.name)
        if benchmark.name not in SUMMARISED or result is None or result.missing:
            continue
        bound = benchmark.bounds[0]
        verdict = judge(bound, result)
        if verdict is not None and verdict.of is not None:
            what = f"{benchmark.title}: {bound.ours}"
            beside = f"{bound.of}, {show(verdict.of, result.unit)}"
            lines.append(f"| {what} | {show(verdict.ours, result.unit)} | {beside} | {show_ratio(verdict.ratio)} |")
    return "\n".join(lines)


def replace_summary(readme: str, summary: str) -> str:
    """Put the summary between its marks."""
    before, _, rest = readme.partition(MARKS[0])
    _, found, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{summary}\n\n{MARKS[1]}{after}" if found else readme


def _render_bound(goal: Goal, benchmark: Benchmark, bound: Bound, result: Result | None) -> str:
    unit = result.unit if result else Unit.SECONDS
    verdict = judge(bound, result)
    cells = [f"{goal.number}. {goal.title}", f"{benchmark.title}: {bound.ours}", describe_limit(bound, unit)]
    if verdict is None:
        cells += ["", "", f"not measured: {result.missing}" if result and result.missing else "not measured yet"]
    else:
        cells += [show(verdict.ours, unit), show_ratio(verdict.ratio), say_verdict(bound, verdict)]
    return f"| {' | '.join(cells)} |"


def describe_limit(bound: Bound, unit: Unit) -> str:
    """Say a bound in words."""
    plus = show(bound.plus, unit) if bound.plus else ""
    if bound.of is None:
        words = f"at most {plus}"
    elif bound.ratio == 1:
        words = f"at most {bound.of} plus {plus}" if plus else f"not behind {bound.of}"
    else:
        words = f"at most {bound.ratio:.2f} of {bound.of}" + (f" plus {plus}" if plus else "")
    return f"stretch: {words}" if bound.stretch else words


def say_verdict(bound: Bound, verdict: Verdict) -> str:
    """Say whether it is met, or by how much not."""
    if verdict.met:
        return "met"
    missed = f"{verdict.excess:.{0 if verdict.excess > _CLEAR else 1}%} over"
    return missed if bound.stretch else f"**{missed}**"


def _render_benchmark(benchmark: Benchmark, result: Result | None, *, drawn: bool) -> Iterator[str]:
    yield f"### {benchmark.title}"
    if result is None:
        yield "Not measured yet."
    elif result.missing:
        yield f"Not measured here: {result.missing}."
    else:
        yield "\n".join(render_subjects(benchmark, result))
    if drawn:
        yield f"![{benchmark.title}](performance-{benchmark.name}.svg)"
    if benchmark.tried:
        yield benchmark.tried.strip()


def render_subjects(benchmark: Benchmark, result: Result) -> list[str]:
    """Give a table of everything that was compared; the ratio is to what the first bound compares with."""
    reference = next((result.find(bound.of) for bound in benchmark.bounds if bound.of), None)
    lines = ["| what | median | lowest to highest | ratio |", "|---|---|---|---|"]
    return lines + [_render_subject(subject, reference, result.unit) for subject in result.subjects]


def _render_subject(subject: Measured, reference: Measured | None, unit: Unit) -> str:
    spread = f"{show(min(subject.samples), unit)} to {show(max(subject.samples), unit)}"
    ratio = show_ratio(subject.median / reference.median if reference and reference.median else None)
    return f"| {subject.label} | {show(subject.median, unit)} | {spread} | {ratio} |"


def show(value: float, unit: Unit) -> str:
    """Show a number in a unit that a person reads: ms, s or MB."""
    if unit is Unit.BYTES:
        return f"{value / 1e6:.1f} MB"
    if value < 0.001:
        return f"{value * 1e6:.0f} µs"
    milliseconds = value * 1e3
    return (
        f"{milliseconds:,.2f} ms"
        if milliseconds < 10
        else f"{milliseconds:,.0f} ms"
        if milliseconds >= 100
        else f"{milliseconds:.1f} ms"
    )


def show_ratio(ratio: float | None) -> str:
    """Show a ratio; nothing where there is none."""
    return "" if ratio is None else f"{ratio:.2f}"
