"""`make bench`: measures, prints, and writes docs/performance.md with what is drawn beside it."""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.bench import open_bench
from benchmarks.benchmark import Benchmark
from benchmarks.catalog import BENCHMARKS, choose
from benchmarks.conditions import describe_machine
from benchmarks.documents import Documents
from benchmarks.page import describe_limit, render_subjects, say_verdict, show, show_ratio
from benchmarks.results import Result, find_unknown_labels, judge
from benchmarks.runner import measure

DOCS = Path(__file__).parents[2] / "docs"


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmarks that are asked for; 1 when one of them broke."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help="names or beginnings of names, or numbers of goals: list,grep,9")
    parser.add_argument("--quick", action="store_true", help="small inputs, few samples; writes nothing")
    parser.add_argument("--folder", type=Path, help="where to measure (default: /dev/shm, else TMPDIR)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page goes")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the page again")
    parser.add_argument("--list", action="store_true", help="name the benchmarks")
    options = parser.parse_args(words)
    if options.list:
        print(*(f"{each.goal}  {each.name}  {each.title}" for each in BENCHMARKS), sep="\n")
        return 0
    documents = Documents(options.docs)
    if options.render:
        documents.write()
        return 0
    try:
        chosen = choose(options.only, quick=options.quick)
    except ValueError as error:
        parser.error(str(error))
    return run(chosen, None if options.quick else documents, folder=options.folder, quick=options.quick)


def run(chosen: Sequence[Benchmark], documents: "Documents | None", *, folder: Path | None, quick: bool) -> int:
    """Measure, print, and put each result into the documents as soon as it is there."""
    broken = 0
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    if quick:
        print(
            "Small inputs and few samples: titles and limits are those of a whole run, which this says nothing about."
        )
    with open_bench(folder, quick=quick) as bench:
        conditions = describe_machine(bench.folder)
        for benchmark in chosen:
            begun = time.monotonic()
            try:
                result = measure(benchmark, bench)
            except Exception as error:  # noqa: BLE001 - the others shall be measured all the same
                print(f"\n{benchmark.title}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                broken += 1
                continue
            tell(benchmark, result, time.monotonic() - begun)
            unknown = find_unknown_labels(benchmark, result)
            if unknown and not quick:
                raise ValueError(f"{benchmark.name} has bounds on what it did not measure: {sorted(unknown)}")
            if documents is not None:
                documents.take(benchmark.name, result, stamp, conditions)
    return 1 if broken else 0


def tell(benchmark: Benchmark, result: Result, seconds: float) -> None:
    """Print one result."""
    print(f"\n{benchmark.title}  [{benchmark.name}, {seconds:.0f} s]")
    if result.missing:
        print(f"  not measured here: {result.missing}")
        return
    for line in render_subjects(benchmark, result):
        print(f"  {line}")
    for bound in benchmark.bounds:
        verdict = judge(bound, result)
        if verdict is not None:
            ratio = show_ratio(verdict.ratio) or show(verdict.ours, result.unit)
            print(f"  {bound.ours}: {ratio}; {describe_limit(bound, result.unit)}: {say_verdict(bound, verdict)}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
