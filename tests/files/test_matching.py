"""Over all bytes and line ends: what an edit does not name stays, and its diff is true."""

import subprocess
from pathlib import Path

import pytest
from exeora_ws.errors import ExeoraError
from exeora_ws.files.difference import diff_contents, quote_name
from exeora_ws.files.matching import Span, find_line_span, find_loose_matches, find_matches, find_nearest
from exeora_ws.files.replacing import Replacement, replace_text
from hypothesis import assume, given, settings
from hypothesis import strategies as st

ALPHABET = st.sampled_from("ab\n\n\r é€😀\t$\\")
TEXT = st.text(ALPHABET, max_size=60)
LINES = st.lists(st.sampled_from(["", "a", "b", "c", "ab", "é"]), min_size=1, max_size=12)
ENDINGS = st.sampled_from([b"\n", b"\r\n"])


@given(TEXT, st.text(ALPHABET, min_size=1, max_size=6), TEXT)
def test_untouched_bytes_never_change(text: str, old: str, new: str):
    data = text.encode()
    assume(old != new)
    try:
        done = replace_text(data, Replacement(old, new), "f")
    except ExeoraError:
        return
    (span,) = done.spans
    assert data[span.start : span.end].replace(b"\r\n", b"\n") == old.encode().replace(b"\r\n", b"\n")
    assert done.data.startswith(data[: span.start])
    assert done.data.endswith(data[span.end :])
    middle = done.data[span.start : len(done.data) - (len(data) - span.end)]
    assert middle.replace(b"\r\n", b"\n") == new.encode().replace(b"\r\n", b"\n")


@given(st.binary(max_size=40), st.text(ALPHABET, min_size=1, max_size=4).filter(lambda t: "\n" not in t))
def test_overlaps_are_counted_as_a_sliding_window_counts_them(data: bytes, wanted: str):
    needle = wanted.encode()
    expected = [i for i in range(len(data)) if data.startswith(needle, i)]
    assert [span.start for span in find_matches(data, needle)] == expected


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "é"]), ENDINGS), min_size=2, max_size=9), st.data())
def test_with_mixed_line_ends_only_edited_lines_differ(lines: list[tuple[str, bytes]], data: st.DataObject):
    """Old text given with LF; one of its lines changed: every other line keeps its own end."""
    lines = [(f"{number}{text}", end) for number, (text, end) in enumerate(lines)]
    raw = b"".join(text.encode() + end for text, end in lines)
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    changed = data.draw(st.integers(first, last))
    old = [text for text, _ in lines[first : last + 1]]
    new = [f"new {text}" if first + index == changed else text for index, text in enumerate(old)]
    done = replace_text(raw, Replacement("\n".join(old) + "\n", "\n".join(new) + "\n"), "f")
    expected = [(f"new {text}" if number == changed else text, end) for number, (text, end) in enumerate(lines)]
    assert done.data == b"".join(text.encode() + end for text, end in expected)


@given(st.lists(st.tuples(st.sampled_from("abcd"), ENDINGS), min_size=3, max_size=9), st.data())
def test_lines_put_in_or_taken_out_leave_the_ends_of_others(lines: list[tuple[str, bytes]], data: st.DataObject):
    lines = [(f"{number}{text}", end) for number, (text, end) in enumerate(lines)]
    raw = b"".join(text.encode() + end for text, end in lines)
    old = [text for text, _ in lines]
    new = list(old)
    where = data.draw(st.integers(0, len(lines) - 1))
    if data.draw(st.booleans()):
        new.insert(where, "put in")
    else:
        del new[where]
    done = replace_text(raw, Replacement("\n".join(old) + "\n", "\n".join(new) + "\n"), "f").data
    kept = {text.encode() + end for number, (text, end) in enumerate(lines) if text in new}
    assert kept <= set(done.splitlines(keepends=True))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("scratch")


def apply_diff(scratch: Path, program: list[str], before: bytes, diff: str) -> bytes:
    (scratch / "f").write_bytes(before)
    done = subprocess.run(program, input=diff.encode(), cwd=scratch, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode() + diff
    return (scratch / "f").read_bytes()


# `patch --binary` keeps carriage returns; git apply complains about white space only on request.
APPLY = [
    ["git", "apply", "-p1", "--whitespace=nowarn"],
    ["patch", "-p1", "--binary", "--quiet", "--no-backup-if-mismatch"],
]


@pytest.mark.parametrize("program", APPLY, ids=["git", "patch"])
@settings(max_examples=60, deadline=None)
@given(st.tuples(LINES, st.booleans()), st.tuples(LINES, st.booleans()), ENDINGS)
def test_the_diff_applied_to_the_old_bytes_gives_the_new(scratch, program, old, new, ending):
    before = ending.join(line.encode() for line in old[0]) + ending * old[1]
    after = ending.join(line.encode() for line in new[0]) + ending * new[1]
    assume(before != after and before and after)
    diff = diff_contents("f", before, after)
    assert apply_diff(scratch, program, before, diff.text) == after


@pytest.mark.parametrize("program", APPLY, ids=["git", "patch"])
def test_long_diffs_have_several_hunks_and_apply(scratch, program):
    before = b"".join(b"line %d\n" % n for n in range(500))
    after = before.replace(b"line 7\n", b"seven\n").replace(b"line 300\n", b"").replace(b"line 499\n", b"end")
    diff = diff_contents("f", before, after)
    assert diff.text.count("@@ -") == 3
    assert apply_diff(scratch, program, before, diff.text) == after


def test_a_change_too_large_to_compare_is_one_replacement_and_true(scratch):
    before = b"".join(b"old %d\n" % n for n in range(5_000))
    after = b"".join(b"new %d\n" % n for n in range(5_000))
    diff = diff_contents("f", b"top\n" + before, b"top\n" + after)
    assert not diff.truncated
    assert apply_diff(scratch, APPLY[0], b"top\n" + before, diff.text) == b"top\n" + after


def test_a_diff_past_the_limit_is_cut_and_says_so():
    diff = diff_contents("f", b"", b"x" * 99 + b"\n" * 2 + b"line\n" * 1_000, max_bytes=500)
    assert diff.truncated
    assert len(diff.text) < 600


def test_names_are_quoted_as_git_quotes_them(tmp_path):
    names = ["plain", "with space", 'quo"te', "back\\slash", "tab\tbed", "new\nline", "é"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "config", "core.quotePath", "false"], check=True)
    for name in names:
        (tmp_path / name).write_text("a\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", "-A"], check=True)
    for name in names:
        (tmp_path / name).write_text("b\n")
    shown = subprocess.run(["git", "-C", str(tmp_path), "diff"], capture_output=True, check=True).stdout.decode()
    for name in names:
        assert f"--- {quote_name('a/' + name)}\n" in shown


@given(LINES, st.integers(1, 14), st.integers(0, 14))
def test_a_line_span_is_those_lines(lines: list[str], first: int, more: int):
    data = "\n".join(lines).encode()
    whole = [line + b"\n" for line in data.split(b"\n")[:-1]] + [line for line in data.split(b"\n")[-1:] if line]
    span = find_line_span(data, first, first + more)
    assert data[span.start : span.end] == b"".join(whole[first - 1 : first + more])


@pytest.mark.parametrize(
    ("data", "wanted", "expected"),
    [
        (b"  a b\n\tc\n", b"a  b\nc", [(0, 8)]),
        (b"x\r\n  a\r\ny\r\n", b"a", [(3, 6)]),
        (b"x\n  a\ny\n", b"\na\n", [(2, 6)]),
        (b"a\na\n", b" a", [(0, 1), (2, 3)]),
        (b"a", b"\n\n", []),
    ],
)
def test_loose_matches_are_whole_lines(data: bytes, wanted: bytes, expected: list[tuple[int, int]]):
    assert find_loose_matches(data, wanted) == [Span(*pair) for pair in expected]


@given(st.binary(max_size=80), st.binary(min_size=1, max_size=20))
def test_looking_for_the_nearest_never_fails(data: bytes, wanted: bytes):
    found = find_nearest(data, wanted)
    if found is not None:
        assert 1 <= found.first_line <= found.last_line <= data.count(b"\n") + 1


def test_the_nearest_lines_of_a_huge_file_are_found_far_down():
    data = b"".join(b"filler %d\n" % n for n in range(60_000)) + b"def wanted_function(argument):\n    pass\n"
    found = find_nearest(data, b"def wanted_function(argument):\n    return 1\n")
    assert (found.first_line, found.last_line) == (60_001, 60_002)
