"""Ranges, totals and ends of text files (contract, sections 3 and 4; cases 21, 22, 26)."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from exeora_ws import storage
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, InvalidArguments, ToolFailed
from exeora_ws.files import reading
from exeora_ws.files.reading import TextRange, read_text, trim_character
from exeora_ws.files.root import Root
from hypothesis import given
from hypothesis import strategies as st


def read(top: Path, path: str, **options) -> TextRange:
    with Root(top) as root, root.locate(path) as spot:
        return read_text(spot, **options)


def read_all(top: Path, path: str, max_bytes: int) -> tuple[str, int]:
    """Follow the continuation to the end; gives the text and the number of calls."""
    parts, calls = [], 0
    line, column = 1, 1
    while True:
        got = read(top, path, offset=line, column=column, max_bytes=max_bytes)
        parts.append(got.content)
        calls += 1
        assert len(got.content.encode()) <= max_bytes
        if not got.truncated:
            assert (got.next_line, got.next_column) == (None, None)
            return "".join(parts), calls
        assert got.content
        line, column = got.next_line, got.next_column or 1


@pytest.mark.parametrize(
    ("data", "total"),
    [(b"", 0), (b"a", 1), (b"a\n", 1), (b"\n", 1), (b"a\nb", 2), (b"a\r\nb\r\n", 2), (b"a\rb\x0c\x1c\n", 1)],
)
def test_lines_are_counted_by_newlines_only(top: Path, data: bytes, total: int):
    (top / "f").write_bytes(data)
    got = read(top, "f")
    assert (got.content, got.total_lines, got.truncated) == (data.decode(), total, False)


def test_unicode_line_separators_are_not_lines(top: Path):
    (top / "f").write_text("a\u2028b\x85c\u2029d\ne\n")
    assert read(top, "f").total_lines == 2


@pytest.mark.parametrize(
    ("offset", "limit", "content", "following"),
    [(1, 2, "1\n2\n", 3), (3, 1, "3\n", 4), (4, None, "4\n5", None), (5, 9, "5", None), (1, 5, "1\n2\n3\n4\n5", None)],
)
def test_a_range_says_whether_the_file_goes_on(top: Path, offset: int, limit, content: str, following):
    (top / "f").write_text("1\n2\n3\n4\n5")
    got = read(top, "f", offset=offset, limit=limit)
    assert (got.content, got.next_line, got.truncated, got.total_lines) == (content, following, bool(following), 5)


@pytest.mark.parametrize(("data", "offset", "total"), [("", 2, 0), ("a\n", 2, 1), ("a\nb", 3, 2), ("a\nb\n", 3, 2)])
def test_an_offset_past_the_end_states_the_count(top: Path, data: str, offset: int, total: int):
    (top / "f").write_text(data)
    with pytest.raises(InvalidArguments) as caught:
        read(top, "f", offset=offset)
    assert caught.value.reason == "offset_past_end"
    assert caught.value.data == {"totalLines": total}
    assert f"{total} line" in caught.value.message


@pytest.mark.parametrize("options", [{"offset": 0}, {"limit": 0}, {"offset": -1}, {"column": 0}])
def test_ranges_count_from_one(top: Path, options: dict[str, int]):
    (top / "f").write_text("a")
    with pytest.raises(InvalidArguments) as caught:
        read(top, "f", **options)
    assert caught.value.reason == "invalid_range"


def test_the_byte_cut_falls_on_a_line(top: Path):
    (top / "f").write_text("".join(f"line {n:05}\n" for n in range(60_000)))
    got = read(top, "f")
    assert got.content.endswith("\n")
    assert 500_000 - 11 <= len(got.content) <= 500_000
    assert got.truncated
    assert got.total_lines == 60_000
    text, calls = read_all(top, "f", 500_000)
    assert (text, calls) == ((top / "f").read_text(), 2)


def test_case_26_a_single_line_of_3_mb_is_paged(top: Path):
    line = "é€x" * 500_000
    (top / "f").write_text("short\n" + line + "\nlast\n")
    text, calls = read_all(top, "f", 500_000)
    assert text == "short\n" + line + "\nlast\n"
    assert calls == 8


def test_case_21_the_reader_never_sees_the_bom(top: Path):
    (top / "f").write_bytes(b"\xef\xbb\xbfimport os\nx\n")
    got = read(top, "f")
    assert (got.content, got.replaced) == ("import os\nx\n", 0)
    assert read(top, "f", max_bytes=4).next_column == 5
    (top / "only").write_bytes(b"\xef\xbb\xbf")
    assert read(top, "only").total_lines == 0


def test_case_22_what_is_not_utf8_is_shown_and_counted(top: Path):
    (top / "f").write_bytes(b"caf\xe9 \xef\xbf\xbd \xff\n")
    got = read(top, "f")
    assert (got.content, got.replaced) == ("caf\ufffd \ufffd \ufffd\n", 2)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\nrest", "PNG image"),
        (b"%PDF-1.7\nplain", "PDF document"),
        (b"text\0text", "binary data"),
        ("text".encode("utf-16"), "UTF-16 text"),
        (b"GIF89a\x01\x00", "GIF image"),
        (b"\x1f\x8b\x08rest", "gzip data"),
        (b"SQLite format 3\x00", "SQLite database"),
    ],
)
def test_binary_is_refused_by_content_and_named(top: Path, data: bytes, kind: str):
    (top / "f.txt").write_bytes(data)
    with pytest.raises(ToolFailed) as caught:
        read(top, "f.txt")
    assert (caught.value.reason, caught.value.data) == ("binary", {"kind": kind})
    assert kind in caught.value.message


def test_text_that_opens_like_a_format_is_text(top: Path):
    for text in ("GIF89a is a format", "BZh is a name", "BMW", "MZ", "RIFF off", "flacid"):
        (top / "f").write_text(text)
        assert read(top, "f").content == text


def test_a_nul_far_in_is_found_when_it_is_read(top: Path):
    (top / "f").write_bytes(b"line\n" * 5_000 + b"nul\0\n" + b"line\n" * 10)
    assert read(top, "f", limit=10).content == "line\n" * 10
    with pytest.raises(ToolFailed) as caught:
        read(top, "f", offset=5_001, limit=1)
    assert caught.value.reason == "binary"


@pytest.mark.parametrize(("column", "good"), [(3, True), (4, False), (5, False), (99, False)])
def test_a_column_past_the_line_is_refused(top: Path, column: int, good: bool):
    (top / "f").write_bytes(b"abc\ndef")
    if good:
        assert read(top, "f", column=column).content == "c\ndef"
        return
    with pytest.raises(InvalidArguments) as caught:
        read(top, "f", column=column + 1 if column == 4 else column)
    assert caught.value.reason == "column_past_end"


def test_counting_stops_when_the_call_is_taken_back(top: Path):
    (top / "f").write_text("x\n" * 100)
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        read(top, "f", cancellation=cancellation)


TEXT = st.text(st.sampled_from("ab\n\r\u00e9\u20ac\U0001f600 "), max_size=60)


@given(TEXT, st.integers(1, 12), st.integers(1, 12))
def test_a_range_is_those_lines(tmp_path_factory, text: str, offset: int, limit: int):
    top = tmp_path_factory.getbasetemp()
    (top / "range").write_bytes(text.encode())
    lines = text.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    if offset > max(len(lines), 1):
        with pytest.raises(InvalidArguments):
            read(top, "range", offset=offset, limit=limit)
        return
    got = read(top, "range", offset=offset, limit=limit)
    assert got.content == "".join(lines[offset - 1 : offset - 1 + limit])
    assert got.total_lines == len(lines)
    assert got.next_line == (offset + limit if offset + limit <= len(lines) else None)


@given(TEXT, st.integers(4, 9))
def test_following_the_continuation_gives_the_file(tmp_path_factory, text: str, max_bytes: int):
    top = tmp_path_factory.getbasetemp()
    (top / "paged").write_bytes(text.encode())
    assert read_all(top, "paged", max_bytes)[0] == text


@given(st.text(max_size=8), st.integers(0, 30))
def test_a_trimmed_text_decodes(text: str, size: int):
    raw = text.encode()
    cut = trim_character(raw[:size])
    if len(raw[:size]) > 3:
        cut.decode()
    assert len(raw[:size]) - len(cut) <= 3


_MEASURE = """
import resource, sys
from pathlib import Path
from exeora_ws.files.root import Root
from exeora_ws.files.reading import read_text
top = Path(sys.argv[1])
with Root(top) as root, root.locate("small") as spot:
    read_text(spot)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with Root(top) as root, root.locate("huge") as spot:
    got = read_text(spot, offset=int(sys.argv[2]), limit=1000)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(after - before, got.total_lines, len(got.content), got.content.split()[-1])
"""


def test_a_range_of_a_2_gb_file_costs_less_than_20_mb(top: Path):
    head = b"".join(b"line %06d\n" % n for n in range(20_000))
    (top / "small").write_bytes(head)
    with (top / "huge").open("wb") as stream:
        stream.write(head)
        stream.seek(2_000_000_000)
        stream.write(b"\n" + head)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(top), "30002"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(reading.__file__).parents[2],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (400_000_000, 400_000_000)),
    )
    grown, total, length, last = done.stdout.split()
    assert int(grown) < 20_000
    assert (int(total), int(length), last) == (40_001, 12_000, "010999")


@pytest.fixture
def large(top: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is worth remembering, old enough to be."""
    monkeypatch.setattr(storage, "_SETTLED_NS", -1)
    file = top / "f"
    file.write_bytes(b"0123456789\n" * 150_000)
    return file


def count_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counted = []
    count = reading._count_lines

    def note(*arguments):
        counted.append(1)
        return count(*arguments)

    monkeypatch.setattr(reading, "_count_lines", note)
    return counted


def test_who_reads_on_in_a_large_file_has_nothing_counted_again(large: Path, monkeypatch: pytest.MonkeyPatch):
    counted = count_counts(monkeypatch)
    text, calls = read_all(large.parent, "f", 500_000)
    assert text.encode() == large.read_bytes()
    assert calls > 3
    assert len(counted) == 1


@pytest.mark.parametrize("change", ["grown", "same size", "replaced"])
def test_a_file_that_was_written_is_counted_again(large: Path, monkeypatch: pytest.MonkeyPatch, change: str):
    first = read(large.parent, "f")
    assert first.next_line is not None
    if change == "grown":
        with large.open("ab") as stream:
            stream.write(b"more\n" * 10)
    elif change == "same size":
        with large.open("r+b") as stream:
            stream.write(b"\n" * 22)
    else:
        large.unlink()
        large.write_bytes(b"\n" * 1_650_000)
    counted = count_counts(monkeypatch)
    again = read(large.parent, "f", offset=first.next_line)
    assert counted
    assert again.total_lines == large.read_bytes().count(b"\n")


def test_a_file_that_is_new_may_change_unseen_and_is_not_remembered(top: Path, monkeypatch: pytest.MonkeyPatch):
    (top / "f").write_bytes(b"0123456789\n" * 150_000)
    first = read(top, "f")
    counted = count_counts(monkeypatch)
    assert read(top, "f", offset=first.next_line).total_lines == 150_000
    assert counted
