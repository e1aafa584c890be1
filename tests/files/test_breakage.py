"""What has gone wrong before: odd names, files that change while they are read, answers too large, no room to undo."""

import ctypes
import dataclasses
import json
import os
import threading
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError, InvalidArguments, PathEscape, PathNotFound, ToolFailed
from exeora_ws.files import journal
from exeora_ws.files.difference import diff_contents
from exeora_ws.files.editing import edit_file, write_file
from exeora_ws.files.globs import parse_glob
from exeora_ws.files.hunks import Hunk
from exeora_ws.files.listing import list_folder, list_tree
from exeora_ws.files.operation import Operation
from exeora_ws.files.patch import apply_patch, recover_patches
from exeora_ws.files.reading import read_text
from exeora_ws.files.replacing import Replacement
from exeora_ws.files.ripgrep import Patience, Ripgrep
from exeora_ws.files.searching import Query, search
from exeora_ws.limits import EDIT_FILE_BYTES, RESULT_BYTES

from support.repositories import git
from support.trees import picture


@pytest.fixture
def at(reach):
    """Run a function on the spot of a path."""

    def run(path, function, *arguments, **options):
        with reach.locate_for_reading(path) as spot:
            return function(spot, *arguments, **options)

    return run


@pytest.fixture
def patience():
    return Patience(Cancellation())


def lines_of(found):
    return [(match.path, match.line, match.text) for match in found.matches]


# Names


def test_a_folder_named_like_home_is_the_project_s_own(
    at, reach, keeping, ripgrep, patience, top: Path, tmp_path: Path
):
    (top / "~" / "deep").mkdir(parents=True)
    (top / "~" / "f").write_text("needle\n")
    (top / "~" / "deep" / "link").symlink_to("../f")
    names = ["./~/deep/link", "./~/f"]
    assert [entry.path for entry in at(".", list_tree, ripgrep, patience).entries] == names
    assert [entry.path for entry in at("./~", list_tree, ripgrep, patience).entries] == names
    assert [entry.path for entry in at(".", list_folder).entries] == ["./~"]
    assert lines_of(at(".", search, Query("needle"), ripgrep, patience)) == [("./~/f", 1, "needle")]
    assert at("./~/f", read_text).content == "needle\n"
    edit_file(reach, "./~/f", Replacement("needle", "thread"), keeping)
    moves = [Operation("update", "./~/f", hunks=(Hunk("thread", "rope"),)), Operation("move", "./~/f", to="./~/g")]
    done = apply_patch(reach, moves, keeping, tmp_path / "patches")
    assert "a/~/f b/~/g" in done.diff.text
    assert (top / "~" / "g").read_text() == "rope\n"
    with pytest.raises(PathEscape):
        at("~/g", read_text)


def test_a_patch_takes_names_as_they_are(reach, keeping, top: Path, tmp_path: Path):
    r"""`a\xe9` may be four characters more, or the byte: a missing one must not be taken for the other."""
    odd = os.fsdecode(b"a\xe9")
    (top / odd).write_text("bytes")
    (top / "x").write_text("x")
    operations = [Operation("create", "a\\xe9", content="characters")]
    with pytest.raises(ToolFailed) as caught:  # the name is how the other is shown, and that is there
        apply_patch(reach, operations, keeping, tmp_path / "patches")
    assert caught.value.reason == "exists"
    os.rename(top / odd, top / "a\\xe9")
    apply_patch(reach, [Operation("move", "a\\xe9", to="b")], keeping, tmp_path / "patches")
    assert sorted(os.listdir(top)) == ["b", "x"]


@pytest.mark.parametrize(
    "name",
    [
        "exeora.toml",
        "Exeora.TOML",
        "exeora.toml.",
        "exeora.toml ",
        "exeora\u200c.toml",
        "exeora.toml::$DATA",
        "exeora.toml/below",
        "EXEORA~1.TOM",
        "exeora.toml\\x",
        "./exeora.toml",
    ],
)
def test_the_policy_is_not_written_under_any_name_of_it(reach, keeping, top: Path, tmp_path: Path, name: str):
    with pytest.raises(PathEscape) as caught:
        write_file(reach, name, "", keeping)
    assert caught.value.reason == "policy_file"
    with pytest.raises(PathEscape):
        apply_patch(reach, [Operation("create", name, content="")], keeping, tmp_path / "patches")
    assert os.listdir(top) == []


def test_a_link_swapped_in_after_the_check_is_not_followed_by_a_patch(reach, top: Path):
    (top / ".git" / "hooks").mkdir(parents=True)
    (top / "real").symlink_to(".git/hooks")
    with reach.open_project() as root:
        with pytest.raises(PathNotFound) as caught:
            root.locate_real(("real", "pre-commit"))
        assert caught.value.reason == "not_a_folder"
        with root.locate_real(("real",)) as spot:
            assert spot.is_link


# Files that are not what they seem, or change


def test_a_part_that_begins_like_a_format_is_text(at, top: Path):
    (top / "f").write_bytes(b"first\n%PDF-1.7 is how they begin\nPK\x03\x04\nlast\n")
    assert at("f", read_text, offset=2, limit=1).content == "%PDF-1.7 is how they begin\n"
    assert at("f", read_text, offset=3).content == "PK\x03\x04\nlast\n"


def test_what_is_read_is_what_was_counted(at, top: Path, monkeypatch):
    """Between the count and the reading the file grows, or is cut off."""
    (top / "f").write_bytes(b"one\ntwo\n")
    real = os.pread

    def change(then):
        def pread(descriptor, size, offset):
            if offset == 4:
                then()
            return real(descriptor, size, offset)

        monkeypatch.setattr(os, "pread", pread)

    change(lambda: (top / "f").open("ab").write(b"three\n" * 10))
    got = at("f", read_text, offset=2)
    assert (got.content, got.total_lines, got.truncated) == ("two\n", 2, False)
    change(lambda: os.truncate(top / "f", 5))
    with pytest.raises(ToolFailed) as caught:
        at("f", read_text, offset=2)
    assert caught.value.reason == "stale"


def test_a_file_that_grows_as_fast_as_it_is_read_ends(at, top: Path, monkeypatch):
    (top / "f").write_bytes(b"line\n" * 100_000)
    real = os.readv

    def readv(descriptor, buffers):
        with (top / "f").open("ab") as stream:
            stream.write(b"line\n" * 200_000)
        return real(descriptor, buffers)

    monkeypatch.setattr(os, "readv", readv)
    got = at("f", read_text)
    assert (got.total_lines, got.truncated) == (100_000, False)


def test_what_only_says_that_it_is_small_is_not_read_whole(reach, keeping, top: Path, monkeypatch):
    """Files under /proc say that they have 0 bytes."""
    (top / "f").write_bytes(b"x\n" * 10)
    os.truncate(top / "f", EDIT_FILE_BYTES + 5)
    real = os.fstat

    def fstat(descriptor):
        found = real(descriptor)
        return os.stat_result((*found[:6], 0, *found[7:])) if found.st_size > EDIT_FILE_BYTES else found

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(ToolFailed) as caught:
        edit_file(reach, "f", Replacement("x", "y"), keeping)
    assert caught.value.reason == "too_large"


# Answers too large


def escaped(text: str) -> int:
    return len(json.dumps(text))


@pytest.mark.parametrize(
    "data",
    [
        b"\n" * 600_000,
        b"\x01\n" * 300_000,
        (b"\xe9" * 79 + b"\n") * 7_000,
        "\u0436".encode() * 260_000,
        b'"\\\n' * 200_000,
    ],
    ids=["newlines", "controls", "latin-1", "one Cyrillic line", "quotes"],
)
def test_a_read_that_json_makes_larger_is_paged_and_loses_nothing(at, top: Path, data: bytes):
    (top / "f").write_bytes(data)
    options, parts = {}, []
    while True:
        got = at("f", read_text, **options)
        assert escaped(got.content) < RESULT_BYTES
        parts.append(got.content)
        if not got.truncated:
            break
        options = {"offset": got.next_line, "column": got.next_column or 1}
    assert len(parts) > 1
    assert "".join(parts) == data.decode("utf-8", "replace")


def test_listings_and_searches_end_where_an_answer_is_full(at, ripgrep, patience, top: Path):
    deep = "/".join(["d" * 200] * 6)
    (top / deep).mkdir(parents=True)
    for number in range(900):
        (top / deep / f"{number:03}").write_text("needle" + "\x01" * 400 if number < 250 else "")
    for listed in (at(".", list_tree, ripgrep, patience), at(deep, list_folder)):
        assert listed.truncated
        assert 600 < len(listed.entries) < 900
        assert sum(escaped(entry.path) for entry in listed.entries) < RESULT_BYTES
    found = at(".", search, Query("needle"), ripgrep, patience)
    assert found.truncated
    assert sum(escaped(match.path) + escaped(match.text) for match in found.matches) < RESULT_BYTES


def test_a_diff_of_control_characters_fits_an_answer():
    before, after = (b"".join(char * 90 + b"%d\n" % n for n in range(3_000)) for char in (b"\x01", b"\x02"))
    diff = diff_contents("f", before, after)
    assert diff.truncated
    assert escaped(diff.text) < RESULT_BYTES


# Searching


def test_a_pattern_that_names_the_carriage_return_finds_it(at, ripgrep, patience, top: Path):
    (top / "dos").write_bytes(b"foo\r\nbar\r\n")
    (top / "unix").write_bytes(b"foo\nC:\\repo\n")

    def run(pattern):
        return [(path, line) for path, line, _ in lines_of(at(".", search, Query(pattern), ripgrep, patience))]

    assert run(r"\r$") == run(r"\x0d") == run("\r") == [("dos", 1), ("dos", 2)]
    assert run(r"foo\r?$") == run("foo$") == [("dos", 1), ("unix", 1)]
    assert run(r"C:\\repo$") == [("unix", 2)]


@pytest.mark.parametrize("pattern", [r"a\nb", r"\x00", "(", "(?<=a)b", r"(a)\1"])
def test_a_refused_pattern_says_nothing_of_options_a_caller_lacks(at, ripgrep, patience, top: Path, pattern: str):
    (top / "f").write_text("x")
    with pytest.raises(InvalidArguments) as caught:
        at(".", search, Query(pattern), ripgrep, patience)
    assert caught.value.reason == "invalid_pattern"
    assert "--" not in caught.value.message
    assert "onsider" not in caught.value.message


@pytest.mark.parametrize("rule", ["[", "a\\", "\\", "{a"])
def test_a_rule_that_means_nothing_is_passed_over(at, ripgrep, patience, top: Path, rule: str):
    git(top, "init", "-q")
    (top / ".gitignore").write_text(f"{rule}\n*.log\n")
    (top / "src").mkdir()
    (top / "src" / ".gitignore").write_text(f"{rule}\n*.tmp\n")
    for name in ("a.txt", "a.log", "a.tmp"):
        (top / "src" / name).write_text("x\n")
    assert [e.path for e in at("src", list_tree, ripgrep, patience).entries] == ["src/.gitignore", "src/a.txt"]
    assert at("src", search, Query("nothing"), ripgrep, patience).matches == ()
    assert at("src", search, Query("x"), ripgrep, patience).unreadable == 0


class Killed:
    """Starts ripgrep and has it killed when it has given its first bytes."""

    def __init__(self, spawn) -> None:
        self._spawn = spawn

    def __call__(self, argv, **options):
        script = 'out=$("$@" </dev/stdin | head -c 100; echo .); printf %s "${out%.}"; kill -9 $$'
        return self._spawn(["/bin/sh", "-c", script, "rg", *argv], **options)


def test_a_ripgrep_that_was_killed_is_no_end(at, ripgrep, patience, top: Path):
    for number in range(100):
        (top / f"file{number}").write_text("needle\n")
    sly = Ripgrep(ripgrep.program, Killed(ripgrep.spawn), ripgrep.environ)
    for run in (
        lambda: at(".", search, Query("needle"), sly, patience),
        lambda: at(".", list_tree, sly, patience),
        lambda: at(".", list_tree, sly, patience, glob=parse_glob("nothing")),
        lambda: at("file1", search, Query("needle"), sly, patience),
    ):
        with pytest.raises(ToolFailed) as caught:
            run()
        assert caught.value.reason == "search_failed"
        assert str(top) not in json.dumps(caught.value.to_dict())


def test_a_huge_binary_file_does_not_hold_up_a_search(at, ripgrep, top: Path):
    (top / "a.txt").write_text("needle\n")
    (top / "b.bin").write_bytes(b"needle\n\0")
    (top / "disk.img").touch()
    os.truncate(top / "disk.img", 200_000_000_000)
    found = at(".", search, Query("needle"), ripgrep, Patience(Cancellation(), seconds=6))
    assert lines_of(found) == [("a.txt", 1, "needle")]
    assert (found.truncated, found.skipped_binary) == (False, 1)


# No room


def test_an_undo_that_finds_no_room_keeps_the_journal(reach, keeping, top: Path, tmp_path: Path, monkeypatch):
    patches = tmp_path / "patches"
    for name in ("a", "b", "c"):
        (top / name).write_text(f"old {name}\n")
    before = picture(top)
    real = journal.write_content
    full = True

    def write(spot, content, **options):
        if full and spot.name == "a":
            raise ToolFailed("a: the disk is full", reason="disk_full")
        real(spot, content, **options)

    monkeypatch.setattr(journal, "write_content", write)
    blocked = [Operation("replace", name, content="new\n") for name in ("a", "b", "c")]
    monkeypatch.setattr("exeora_ws.files.patch._remove", fail_with("io_error"))
    with pytest.raises(ToolFailed) as caught:
        apply_patch(reach, blocked, keeping, patches)
    assert (caught.value.reason, caught.value.data) == ("undo_incomplete", {"left": [], "pending": ["a"]})
    assert ((top / "a").read_text(), (top / "b").read_text()) == ("new\n", "old b\n")
    assert [one.pending for one in recover_patches(patches, keeping.locks)] == [("a",)]
    full = False
    assert [(one.pending, one.left) for one in recover_patches(patches, keeping.locks)] == [((), ())]
    assert picture(top) == before
    assert os.listdir(patches) == []


def fail_with(reason: str):
    def fail(*_args):
        raise ToolFailed("no more", reason=reason)

    return fail


def test_what_cannot_be_kept_safe_is_not_done_and_says_so(reach, keeping, top: Path, tmp_path: Path):
    """The data folder is no folder: neither locks nor journals nor snapshots can be had."""
    (top / "f").write_text("old")
    before = picture(top)
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    for broken, patches in (
        (dataclasses.replace(keeping, locks=nowhere), tmp_path / "patches"),
        (keeping, nowhere / "patches"),
    ):
        with pytest.raises(ExeoraError) as caught:
            apply_patch(reach, [Operation("replace", "f", content="new")], broken, patches)
        assert str(tmp_path) not in caught.value.message
        assert picture(top) == before
    with pytest.raises(ExeoraError):
        edit_file(reach, "f", Replacement("old", "new"), dataclasses.replace(keeping, locks=nowhere))
    assert picture(top) == before


def try_it(run) -> str:
    """Give what it gives, or how it was refused."""
    try:
        return str(run())
    except ExeoraError as error:
        return str(error.to_dict())


def test_links_swapped_by_another_process_never_lead_out(
    at, reach, keeping, ripgrep, patience, top: Path, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("SECRET\n")
    (top / "real").mkdir()
    (top / "real" / "f").write_text("inside\n")
    (top / "link").symlink_to(outside)
    done = threading.Event()
    exchange = ctypes.CDLL(None, use_errno=True).renameat2

    def swap() -> None:
        while not done.is_set():
            assert exchange(-100, os.fsencode(top / "real"), -100, os.fsencode(top / "link"), 2) == 0

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for number in range(60):
            for run in (
                lambda: at("real/f", read_text).content,
                lambda: lines_of(at("real", search, Query("inside|SECRET"), ripgrep, patience)),
                lambda n=number: write_file(reach, f"real/new{n}", "x", keeping),
                lambda n=number: apply_patch(
                    reach, [Operation("create", f"real/made/{n}", content="x")], keeping, tmp_path / "patches"
                ),
            ):
                said = try_it(run)
                assert "SECRET" not in said
                assert "io_error" not in said
    finally:
        done.set()
        swapper.join()
    assert os.listdir(outside) == ["f"]
    assert (outside / "f").read_text() == "SECRET\n"
