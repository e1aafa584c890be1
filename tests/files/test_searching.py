"""Searches agree with ripgrep, show only what lies inside, and no pattern holds them (cases 18, 28, 29)."""

import os
import re
import shutil
import subprocess
import sysconfig
import threading
import time
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, InvalidArguments, PathEscape, ToolFailed, ToolTimeout
from exeora_ws.files.excerpts import LineReader
from exeora_ws.files.globs import parse_glob
from exeora_ws.files.reach import Reach
from exeora_ws.files.ripgrep import Patience, Ripgrep
from exeora_ws.files.searching import Found, Query, search

from support.repositories import git


@pytest.fixture
def grep(reach: Reach, ripgrep: Ripgrep):
    def run(pattern: str, path: str = ".", *, patience=None, limit=200, glob=None, **options) -> Found:
        query = Query(pattern, glob=parse_glob(glob) if glob else None, **options)
        with reach.locate_for_reading(path) as spot:
            return search(spot, query, ripgrep, patience or Patience(Cancellation()), limit=limit)

    return run


@pytest.fixture
def lines(grep):
    return lambda *args, **options: [(m.path, m.line, m.text) for m in grep(*args, **options).matches]


def make(top: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def test_matches_come_sorted_with_lines(grep, top: Path):
    make(top, {"b/z.txt": "no\nneedle 1\n", "a.txt": "needle 2\nno\nneedle 3", "b.txt": "needle 4\r\n"})
    found = grep("needle \\d$")
    assert [(m.path, m.line, m.text, m.cut) for m in found.matches] == [
        ("a.txt", 1, "needle 2", False),
        ("a.txt", 3, "needle 3", False),
        ("b/z.txt", 2, "needle 1", False),
        ("b.txt", 1, "needle 4", False),
    ]
    assert (found.truncated, found.skipped_binary, found.unreadable) == (False, 0, 0)


def test_case_28_hidden_ignored_and_negated(lines, top: Path):
    git(top, "init", "-q")
    make(
        top,
        {
            ".hidden": "needle",
            "x.log": "needle",
            "src/keep.log": "needle",
            "build/out": "needle",
            "vendor/v": "needle",
            "node_modules/m": "needle",
            ".git/needle": "needle",
            ".gitignore": "*.log\nbuild/\nvendor/*\n",
            "src/.gitignore": "!keep.log\n",
        },
    )
    assert [path for path, *_ in lines("needle")] == [".hidden", "src/keep.log"]
    assert [path for path, *_ in lines("needle", "build")] == ["build/out"]
    assert [path for path, *_ in lines("needle", "vendor")] == ["vendor/v"]
    assert [path for path, *_ in lines("needle", "x.log")] == ["x.log"]
    assert [path for path, *_ in lines("needle", "node_modules")] == ["node_modules/m"]
    assert [path for path, *_ in lines("needle", glob="*.log")] == ["src/keep.log"]
    assert [path for path, *_ in lines("needle", glob="build/**")] == []


def test_case_18_links_are_not_followed(lines, top: Path, tmp_path: Path):
    make(tmp_path, {"outside/secret": "needle"})
    make(top, {"in/f": "needle"})
    (top / "leak").symlink_to(tmp_path / "outside")
    (top / "file").symlink_to(tmp_path / "outside" / "secret")
    (top / "inner").symlink_to("in")
    assert lines("needle") == [("in/f", 1, "needle")]
    assert lines("needle", "inner") == [("inner/f", 1, "needle")]
    for path in ("leak", "file", "leak/secret"):
        with pytest.raises(PathEscape):
            lines("needle", path)


def test_what_a_link_brought_in_during_the_search_is_not_shown(reach, ripgrep, top: Path, tmp_path: Path):
    """The folder is swapped for a link out of the root just before ripgrep walks into it."""
    make(tmp_path, {"outside/f": "needle secret"})
    make(top, {"a/f": "needle inside"})

    class SwapAtEnd:
        def __call__(self, *args, **options):
            (top / "a").rename(top / "b")
            (top / "a").symlink_to(tmp_path / "outside")
            return ripgrep.spawn(*args, **options)

    sly = Ripgrep(ripgrep.program, SwapAtEnd(), ripgrep.environ)
    with reach.locate_for_reading("a") as spot:
        found = search(spot, Query("needle"), sly, Patience(Cancellation()))
    assert not [match for match in found.matches if "secret" in match.text]
    assert [match.path for match in found.matches] == ["a/f"]


def test_case_29_devices_and_fifos_in_the_tree_hold_nobody(lines, top: Path):
    os.mkfifo(top / "p")
    (top / "z").symlink_to("/dev/zero")
    make(top, {"f": "needle"})
    started = time.monotonic()
    assert lines("needle") == [("f", 1, "needle")]
    with pytest.raises(ToolFailed) as caught:
        lines("needle", "p")
    assert caught.value.reason == "is_a_fifo"
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(("limit", "truncated"), [(1, True), (5, True), (6, False), (7, False)])
def test_truncated_is_exact_and_the_first_are_shown(lines, grep, top: Path, limit: int, truncated: bool):
    make(top, {f"{name}/f": "needle\nneedle\n" for name in "cab"})
    assert grep("needle", limit=limit).truncated is truncated
    expected = [(f"{name}/f", line, "needle") for name in "abc" for line in (1, 2)]
    assert lines("needle", limit=limit) == expected[:limit]


def test_two_hundred_of_many_are_the_first_two_hundred(lines, grep, top: Path):
    make(top, {f"d{n % 7}/f{n}": "x needle\n" * 3 for n in range(300)})
    got = lines("needle")
    everything = sorted(
        ((f"d{n % 7}/f{n}", line, "x needle") for n in range(300) for line in (1, 2, 3)),
        key=lambda match: (match[0].split("/"), match[1]),
    )
    assert got == everything[:200]
    assert grep("needle").truncated


def test_long_lines_are_cut_around_the_match(grep, top: Path):
    make(top, {"f": "a" * 3_000_000 + "needle" + "b" * 1_000 + "\n", "g": "é" * 600 + "needle\n", "h": "x" * 500})
    (first, second) = grep("needle").matches
    assert (len(first.text), first.cut) == (500, True)
    assert first.text.startswith("a" * 100 + "needle" + "b")
    assert (second.text, second.cut) == ("é" * 494 + "needle", True)
    (whole,) = grep("x+").matches
    assert (whole.text, whole.cut) == ("x" * 500, False)


def test_every_match_of_a_long_line_counts_once(grep, top: Path):
    make(top, {"f": "needle " * 100_000 + "\n"})
    found = grep("needle")
    assert (len(found.matches), found.truncated) == (1, False)


def test_binary_files_are_skipped_and_counted(lines, grep, top: Path):
    make(
        top,
        {
            "t.txt": "needle",
            "b.bin": b"needle\0",
            "late.bin": b"needle\n" + b"x\n" * 200_000 + b"\0",
            "none.bin": b"\0",
        },
    )
    assert lines("needle") == [("t.txt", 1, "needle")]
    assert grep("needle").skipped_binary == 2
    one = grep("needle", "b.bin")
    assert (one.matches, one.skipped_binary) == ((), 1)


def test_encodings_and_names_survive(lines, top: Path):
    make(
        top,
        {
            "bom.txt": b"\xef\xbb\xbfneedle bom\nsecond needle\n",
            "latin.txt": b"caf\xe9 needle\n",
            "u16.txt": "é needle\nother\nneedle two\n".encode("utf-16"),
            os.fsdecode(b"bad\xff.txt"): "needle",
            "new\nline": "needle",
            "-dash": "needle",
            "a: binary file matches": "needle",
        },
    )
    assert lines("^needle|needle$|caf. needle|needle two") == [
        ("-dash", 1, "needle"),
        ("a: binary file matches", 1, "needle"),
        ("bad\\xff.txt", 1, "needle"),
        ("bom.txt", 1, "needle bom"),
        ("bom.txt", 2, "second needle"),
        ("latin.txt", 1, "caf\ufffd needle"),
        ("new\nline", 1, "needle"),
        ("u16.txt", 1, "é needle"),
        ("u16.txt", 3, "needle two"),
    ]
    assert lines("needle", "-dash") == [("-dash", 1, "needle")]


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("(", "unclosed group"), ("a{99999999}", "size limit"), ("(?<=a)b", "look-around"), ("a\\nb", "not allowed"),
     ("a\nb", "one at a time"), ("\0", "NUL"), ("\ud800", "surrogate"), ("x" * 30_000, "bytes"), ("[z-a]", "range")],
)  # fmt: skip
def test_patterns_that_do_not_compile(grep, top: Path, pattern: str, says: str):
    make(top, {"f": "x"})
    with pytest.raises(InvalidArguments, match=re.escape(says)) as caught:
        grep(pattern)
    assert caught.value.reason == "invalid_pattern"


def test_the_pointer_at_the_spot_is_ripgreps_own(grep, top: Path):
    make(top, {"f": "x"})
    with pytest.raises(InvalidArguments) as caught:
        grep("ab(c")
    assert "ab(c" in caught.value.message
    assert "  ^" in caught.value.message


def test_patterns_that_look_like_options_and_plain_text(lines, top: Path):
    make(top, {"f": "--files -e a.b\nAxB\n"})
    assert [line for _, line, _ in lines("--files")] == [1]
    assert [line for _, line, _ in lines("-e")] == [1]
    assert [line for _, line, _ in lines("a.b", ignore_case=True)] == [1, 2]
    assert [line for _, line, _ in lines("a.b", fixed=True, ignore_case=True)] == [1]
    assert lines("axb") == []


def test_a_file_and_its_glob(lines, top: Path):
    make(top, {"a/x.py": "needle"})
    assert lines("needle", "a/x.py", glob="*.py") == [("a/x.py", 1, "needle")]
    assert lines("needle", "a/x.py", glob="*.ts") == []


def test_an_empty_pattern_matches_every_line(grep, top: Path):
    make(top, {"f": "a\n\nb"})
    assert [(match.line, match.text) for match in grep("").matches] == [(1, "a"), (2, ""), (3, "b")]


def test_a_search_taken_back_ends_ripgrep(reach: Reach, ripgrep: Ripgrep, top: Path):
    """A FIFO named as a rule file would hold ripgrep for ever; taking the call back ends it at once."""
    os.mkfifo(top / ".gitignore")
    make(top, {"f": "needle"})
    children = []

    def spawn(*args, **options):
        children.append(ripgrep.spawn(*args, **options))
        return children[-1]

    cancellation = Cancellation()
    threading.Timer(0.2, cancellation.cancel).start()
    started = time.monotonic()
    with reach.locate_for_reading(".") as spot, pytest.raises(Cancelled):
        search(spot, Query("needle"), Ripgrep(ripgrep.program, spawn, ripgrep.environ), Patience(cancellation))
    assert time.monotonic() - started < 2
    assert children[0].poll() is not None


def test_no_pattern_holds_the_search(grep, top: Path):
    make(top, {"f": "a" * 200_000})
    started = time.monotonic()
    assert grep("(a*)*b").matches == ()
    assert time.monotonic() - started < 5
    with pytest.raises(ToolTimeout):
        grep("x", patience=Patience(Cancellation(), seconds=-1))


def test_progress_is_told_now_and_then(reach: Reach, ripgrep: Ripgrep, top: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("exeora_ws.files.ripgrep._TICK_SECONDS", 0)
    make(top, {f"f{n}": "needle\n" for n in range(20)})
    told: list[str] = []
    with reach.locate_for_reading(".") as spot:
        search(spot, Query("needle"), ripgrep, Patience(Cancellation(), told.append))
    assert told
    assert told[0].startswith("searching: ")


@pytest.mark.parametrize("column", [1, 301, 3_001])
def test_an_excerpt_holds_what_was_matched(tmp_path: Path, column: int):
    line = "".join(chr(0x4E00 + n % 500) for n in range(1_500)).encode()
    (tmp_path / "f").write_bytes(b"first\n" + line + b"\nlast\n")
    descriptor = os.open(tmp_path / "f", os.O_RDONLY)
    got = LineReader(descriptor).read_line(6, column)
    os.close(descriptor)
    assert got.cut
    assert len(got.text) == 500
    assert line[column - 1 :].decode()[:300] in got.text


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    top = tmp_path_factory.mktemp("checkout") / "stdlib"
    keep = shutil.ignore_patterns("site-packages", "test", "lib2to3", "idlelib", "ensurepip", "__pycache__")
    shutil.copytree(sysconfig.get_path("stdlib"), top, ignore=keep, symlinks=True)
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / ".gitignore").write_text("json/\nemail/*.py\n!email/utils.py\n")
    return top


@pytest.mark.parametrize("pattern", ["def __enter__", "(?i)todo", "raise \\w+Error\\(", "nothing has this in it!"])
def test_a_large_checkout_is_searched_as_ripgrep_searches_it(checkout: Path, home: Path, ripgrep, pattern: str):
    with Reach(checkout, home).locate_for_reading(".") as spot:
        found = search(spot, Query(pattern), ripgrep, Patience(Cancellation()), limit=100_000)
    told = subprocess.run(
        [ripgrep.program, "--no-config", "--no-heading", "-n", "--null", "-e", pattern, "."],
        capture_output=True,
        cwd=checkout,
        check=False,
    ).stdout
    expected = set()
    for row in told.splitlines():
        path, rest = row.split(b"\0")
        line, text = rest.split(b":", 1)
        expected.add((path.decode().removeprefix("./"), int(line), text.decode("utf-8", "replace")[:500]))
    assert {(match.path, match.line, match.text[:500]) for match in found.matches if not match.cut} <= expected
    assert len(found.matches) == len(expected)
    assert not found.truncated
