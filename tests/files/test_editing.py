"""Edits touch only their bytes, keep what a file has besides bytes, and lose nobody's work (contract, section 6)."""

import ctypes
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError, InvalidArguments, PathEscape, PathNotFound, ToolFailed
from exeora_ws.files import editing, writer
from exeora_ws.files.editing import Keeping, edit_file, hold_spot, revert_file, write_file
from exeora_ws.files.reach import Reach
from exeora_ws.files.replacing import Replacement
from exeora_ws.files.root import Root


@pytest.fixture
def edit(reach: Reach, keeping: Keeping):
    return lambda path, old, new, **options: edit_file(reach, path, Replacement(old, new, **options), keeping)


def tree(top: Path) -> dict[str, tuple]:
    """Everything that may not change by a refusal."""
    found = {}
    for path in sorted(top.rglob("*")):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path.relative_to(top))] = (stat.st_ino, stat.st_mode, stat.st_mtime_ns, stat.st_size, content)
    return found


@pytest.mark.parametrize("new", ["$& $1 \\1 \\g<0> $$", "\\n", "%s {0}", "\\\\", "é€😀"])
def test_case_19_the_new_text_is_literal(edit, top: Path, new: str):
    (top / "f").write_bytes(b"a old z")
    edit("f", "old", new)
    assert (top / "f").read_bytes() == b"a " + new.encode() + b" z"


def test_case_20_lf_text_matches_a_crlf_file_with_one_lf_line(edit, top: Path):
    (top / "f").write_bytes(b"one\r\ntwo\nthree\r\nfour\r\n")
    edit("f", "one\ntwo\nthree\n", "one\n2\nthree\n")
    assert (top / "f").read_bytes() == b"one\r\n2\nthree\r\nfour\r\n"
    edit("f", "three\nfour", "three\nand more\nfour")
    assert (top / "f").read_bytes() == b"one\r\n2\nthree\r\nand more\r\nfour\r\n"
    edit("f", "four", "four\nfive")
    assert (top / "f").read_bytes() == b"one\r\n2\nthree\r\nand more\r\nfour\r\nfive\r\n"


def test_case_21_the_bom_stays(edit, top: Path):
    (top / "f").write_bytes(b"\xef\xbb\xbfimport os\nx\n")
    edit("f", "import os\n", "import sys\n")
    assert (top / "f").read_bytes() == b"\xef\xbb\xbfimport sys\nx\n"


def test_case_22_a_latin_1_byte_refuses_the_edit(edit, top: Path):
    (top / "f").write_bytes(b"ok\ncaf\xe9\nold\n")
    before = tree(top)
    with pytest.raises(ToolFailed) as caught:
        edit("f", "old", "new")
    assert caught.value.reason == "not_utf8"
    assert caught.value.data == {"line": 2}
    assert tree(top) == before


def test_case_23_no_final_newline_stays_and_the_diff_says_so(edit, top: Path):
    (top / "f").write_bytes(b"one\ntwo")
    done = edit("f", "two", "2")
    assert (top / "f").read_bytes() == b"one\n2"
    assert done.diff.text == (
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n"
        "-two\n\\ No newline at end of file\n+2\n\\ No newline at end of file\n"
    )


def test_case_25_mode_and_link_stay(edit, reach: Reach, keeping: Keeping, top: Path):
    for name, mode in (("script", 0o755), ("secret", 0o600), ("target", 0o640)):
        (top / name).write_text("old")
        (top / name).chmod(mode)
    (top / "link").symlink_to("target")
    for name in ("script", "secret", "link"):
        edit(name, "old", "new")
        assert (top / name).read_text() == "new"
    assert [(top / n).stat().st_mode & 0o7777 for n in ("script", "secret", "target")] == [0o755, 0o600, 0o640]
    assert os.readlink(top / "link") == "target"
    write_file(reach, "link", "whole", keeping)
    write_file(reach, "script", "whole", keeping)
    assert ((top / "link").is_symlink(), (top / "target").read_text()) == (True, "whole")
    assert (top / "script").stat().st_mode & 0o7777 == 0o755


def test_extended_attributes_stay(edit, top: Path):
    (top / "f").write_text("old")
    try:
        os.setxattr(top / "f", "user.origin", b"mail")
    except OSError:
        pytest.skip("no extended attributes here")
    edit("f", "old", "new")
    assert os.getxattr(top / "f", "user.origin") == b"mail"


def test_the_owner_stays(edit, top: Path):
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    (top / "f").write_text("old")
    os.chown(top / "f", 12345, 23456)
    edit("f", "old", "new")
    found = (top / "f").stat()
    assert (found.st_uid, found.st_gid) == (12345, 23456)


def test_a_set_user_bit_stays(edit, top: Path):
    (top / "f").write_text("old")
    (top / "f").chmod(0o4755)
    edit("f", "old", "new")
    assert (top / "f").stat().st_mode & 0o7777 == 0o4755


def test_a_file_that_is_read_only_is_not_replaced():
    """Root may write everything, so this runs as somebody else when it can."""
    code = (
        "import os,sys\n"
        "from exeora_ws.files.root import Root\nfrom exeora_ws.files.writer import write_content\n"
        "from pathlib import Path\nfrom exeora_ws.errors import ToolFailed\n"
        "if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
        "with Root(Path(sys.argv[1])) as root, root.locate('f') as spot:\n"
        "    try: write_content(spot, b'new')\n"
        "    except ToolFailed as e: print(e.reason)\n"
    )
    sandbox = Path("/tmp") / f"read-only-{os.getpid()}"  # pytest's own folders are closed to others
    sandbox.mkdir(mode=0o777)
    sandbox.chmod(0o777)
    try:
        (sandbox / "f").write_text("old")
        (sandbox / "f").chmod(0o444)
        done = subprocess.run(
            [sys.executable, "-c", code, str(sandbox)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(editing.__file__).parents[2],
        )
        assert done.stdout.strip() == "read_only"
        assert (sandbox / "f").read_text() == "old"
        assert os.listdir(sandbox) == ["f"]
    finally:
        (sandbox / "f").unlink()
        sandbox.rmdir()


def test_overlapping_matches_count(edit, top: Path):
    (top / "f").write_text("x\naaa\n")
    with pytest.raises(ToolFailed) as caught:
        edit("f", "aa", "b")
    assert caught.value.reason == "ambiguous_match"
    assert caught.value.data == {"lines": [2, 2], "matches": 2, "more": False}
    assert "2 times" in caught.value.message


def test_ambiguity_lists_the_lines(edit, top: Path):
    (top / "f").write_text("".join(f"{'same' if n % 10 == 0 else n}\n" for n in range(1, 500)))
    before = tree(top)
    with pytest.raises(ToolFailed) as caught:
        edit("f", "same\n", "b")
    assert caught.value.data["lines"] == list(range(10, 210, 10))
    assert caught.value.data["matches"] == 49
    assert tree(top) == before


def test_more_matches_than_are_counted_are_said_to_be_more(edit, top: Path):
    (top / "f").write_text("a" * 1_000)
    with pytest.raises(ToolFailed, match="more than 100 times"):
        edit("f", "a", "b")


def test_a_miss_names_the_nearest_lines(edit, top: Path):
    (top / "f").write_text("def one():\n    return 1\n\n\ndef two():\n    return  2\n")
    with pytest.raises(ToolFailed) as caught:
        edit("f", "def two():\n    return 2\n", "x")
    error = caught.value
    assert error.reason == "no_match"
    assert error.data["nearest"]["firstLine"] == 5
    assert error.data["nearest"]["lastLine"] == 6
    assert error.data["nearest"]["difference"] == "only white space differs"
    assert "lines 5 to 6" in error.message


def test_a_miss_finds_the_line_that_is_like_it(edit, top: Path):
    (top / "f").write_text("".join(f"value_{n} = compute({n})\n" for n in range(300)) + "the quick brown fox\n")
    with pytest.raises(ToolFailed) as caught:
        edit("f", "the quick brwn fox", "x")
    assert caught.value.data["nearest"]["firstLine"] == 301


def test_a_miss_says_when_the_change_was_made_already(edit, top: Path):
    (top / "f").write_text("a\nnew text\nb\n")
    with pytest.raises(ToolFailed) as caught:
        edit("f", "old text", "new text")
    assert caught.value.data["alreadyApplied"] is True
    assert caught.value.data["newTextLines"] == [2]
    assert "already" in caught.value.message


def test_a_miss_by_the_last_newline_is_named(edit, top: Path):
    (top / "f").write_text("a\nlast")
    with pytest.raises(ToolFailed, match="without a newline"):
        edit("f", "last\n", "x\n")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [("", "x", "empty_old_text"), ("a", "a", "nothing_to_change"), ("\ud800", "x", "not_unicode")],
)
def test_edits_that_mean_nothing_are_refused(edit, top: Path, old: str, new: str, reason: str):
    (top / "f").write_text("a")
    before = tree(top)
    with pytest.raises(InvalidArguments) as caught:
        edit("f", old, new)
    assert caught.value.reason == reason
    assert tree(top) == before


@pytest.mark.parametrize(
    ("path", "kind", "reason"),
    [
        ("none", PathNotFound, None),
        ("folder", ToolFailed, "is_a_folder"),
        ("pipe", ToolFailed, "is_a_fifo"),
        ("binary", ToolFailed, "binary"),
        ("utf16", ToolFailed, "binary"),
        (".git/config", PathEscape, "git_folder"),
        ("out", PathEscape, "outside_root"),
        ("../x", PathEscape, "outside_root"),
    ],
)
def test_files_that_are_not_edited(edit, top: Path, path: str, kind: type[ExeoraError], reason: str | None):
    (top / "folder").mkdir()
    (top / ".git").mkdir()
    (top / ".git" / "config").write_text("old")
    os.mkfifo(top / "pipe")
    (top / "binary").write_bytes(b"old\0")
    (top / "utf16").write_bytes("old".encode("utf-16"))
    (top / "out").symlink_to("/etc/hostname")
    with pytest.raises(kind) as caught:
        edit(path, "old", "new")
    assert caught.value.reason == reason


def test_every_replaces_all_and_lines_confine(edit, top: Path):
    (top / "f").write_text("a\na\naaa\na\n")
    assert edit("f", "a", "b", every=True, first_line=2, last_line=3).replacements == 4
    assert (top / "f").read_text() == "a\nb\nbbb\na\n"
    edit("f", "a", "c", first_line=2)
    assert (top / "f").read_text() == "a\nb\nbbb\nc\n"


def test_loose_matching_forgives_white_space_of_whole_lines(edit, top: Path):
    (top / "f").write_bytes(b"if x:\r\n\tdo( a, b )\r\nend\r\n")
    with pytest.raises(ToolFailed):
        edit("f", "do(a, b)", "done()")
    done = edit("f", "    do(a, b)", "\tdone()", loose=True)
    assert (done.loose, (top / "f").read_bytes()) == (True, b"if x:\r\n\tdone()\r\nend\r\n")


def test_a_file_that_changes_before_the_write_is_stale(reach: Reach, keeping: Keeping, top: Path):
    (top / "f").write_text("old")
    with hold_spot(reach, "f", keeping) as spot:
        (top / "f").write_text("other")
        with pytest.raises(ToolFailed) as caught:
            writer.write_content(spot, b"mine")
    assert caught.value.reason == "stale"
    assert (top / "f").read_text() == "other"
    assert os.listdir(top) == ["f"]


def test_a_change_that_keeps_every_time_is_stale_too(reach: Reach, keeping: Keeping, top: Path):
    (top / "f").write_text("old")
    with hold_spot(reach, "f", keeping) as spot, pytest.raises(ToolFailed) as caught:
        writer.write_content(spot, b"mine", read_as=b"0ld")
    assert caught.value.reason == "stale"
    assert (top / "f").read_text() == "old"


def test_a_file_that_appears_before_the_write_is_stale(reach: Reach, keeping: Keeping, top: Path):
    with hold_spot(reach, "f", keeping) as spot:
        (top / "f").write_text("other")
        with pytest.raises(ToolFailed) as caught:
            writer.write_content(spot, b"mine")
    assert caught.value.reason == "stale"
    assert (top / "f").read_text() == "other"


@pytest.mark.parametrize("existing", [True, False])
def test_drafts_with_a_name_work_and_leave_nothing(
    reach: Reach, keeping: Keeping, top: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
):
    monkeypatch.setattr(writer, "_TMPFILE", 0)
    if existing:
        (top / "f").write_text("old")
    write_file(reach, "f", "new", keeping)
    assert ((top / "f").read_text(), os.listdir(top)) == ("new", ["f"])


def test_write_makes_folders_and_says_whether_it_created(reach: Reach, keeping: Keeping, top: Path):
    done = write_file(reach, "a/b/c.txt", "é\n", keeping)
    assert (done.path, done.bytes_written, done.created) == ("a/b/c.txt", 3, True)
    again = write_file(reach, "./a//b/c.txt", "", keeping)
    assert (again.path, again.bytes_written, again.created) == ("a/b/c.txt", 0, False)
    with pytest.raises(ToolFailed) as caught:
        write_file(reach, "a/b/c.txt", "x", keeping, only_new=True)
    assert caught.value.reason == "exists"


def test_a_new_file_takes_the_umask(reach: Reach, keeping: Keeping, top: Path):
    previous = os.umask(0o027)
    try:
        write_file(reach, "d/f", "x", keeping)
    finally:
        os.umask(previous)
    assert (top / "d" / "f").stat().st_mode & 0o777 == 0o640
    assert (top / "d").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("path", ["folder", "folder/", "pipe", ".", "new/"])
def test_write_refuses_what_is_no_file(reach: Reach, keeping: Keeping, top: Path, path: str):
    (top / "folder").mkdir()
    os.mkfifo(top / "pipe")
    before = tree(top)
    with pytest.raises(ExeoraError):
        write_file(reach, path, "x", keeping)
    assert tree(top) == before


def test_folders_made_for_a_failed_write_go_again(reach: Reach, top: Path):
    def fail_in_folder(spot):
        with writer.make_parents(spot):
            assert (top / "a" / "b").is_dir()
            raise ZeroDivisionError

    with reach.locate_for_writing("a/b/f") as spot, pytest.raises(ZeroDivisionError):
        fail_in_folder(spot)
    assert os.listdir(top) == []


def test_a_full_disk_is_said_and_the_old_file_stays(reach: Reach, keeping: Keeping, top: Path, monkeypatch):
    (top / "f").write_text("old")
    monkeypatch.setattr(writer.os, "fsync", lambda _fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ToolFailed) as caught:
        write_file(reach, "f", "new", keeping)
    assert caught.value.reason == "disk_full"
    assert ((top / "f").read_text(), os.listdir(top)) == ("old", ["f"])


def test_a_swapped_folder_never_wins(reach: Reach, keeping: Keeping, top: Path, tmp_path: Path):
    """A thread swaps a folder for a link out of the root during 500 writes."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("untouched")
    (top / "real").mkdir()
    (top / "real" / "f").write_text("0")
    (top / "bad").symlink_to(outside)
    stop = threading.Event()
    exchange = ctypes.CDLL(None).renameat2
    real, bad = bytes(top / "real"), bytes(top / "bad")

    def swap():
        while not stop.is_set():
            assert exchange(-100, real, -100, bad, 2) == 0  # AT_FDCWD, RENAME_EXCHANGE

    swapper = threading.Thread(target=swap)
    swapper.start()
    written = refused = 0
    try:
        for number in range(500):
            try:
                if number % 2:
                    write_file(reach, f"real/new-{number}", "inside", keeping)
                else:
                    write_file(reach, "real/f", str(number), keeping)
                written += 1
            except ExeoraError:
                refused += 1
    finally:
        stop.set()
        swapper.join()
    assert os.listdir(outside) == ["f"]
    assert (outside / "f").read_text() == "untouched"
    assert written
    assert written + refused == 500


_EDITOR = """
import sys
from pathlib import Path
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.files.editing import Keeping, edit_file
from exeora_ws.files.reach import Reach
from exeora_ws.files.replacing import Replacement
from exeora_ws.files.snapshots import Snapshots
top, data, first, last = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
reach, keeping = Reach(top, top), Keeping(data / "locks", Snapshots(data / "snapshots"), str(first), Cancellation())
sys.stdin.read(1)
for number in range(first, last):
    edit_file(reach, "f", Replacement(f"line {number:02}\\n", f"edited {number:02}\\n"), keeping)
"""


def test_case_24_parallel_edits_of_distinct_lines_all_land(top: Path, tmp_path: Path):
    """Twenty edits from four processes at once."""
    (top / "f").write_text("".join(f"line {n:02}\n" for n in range(20)))
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _EDITOR, str(top), str(tmp_path / "data"), str(first), str(first + 5)],
            stdin=subprocess.PIPE,
            cwd=Path(editing.__file__).parents[2],
        )
        for first in range(0, 20, 5)
    ]
    for worker in workers:
        worker.stdin.write(b"g")
        worker.stdin.flush()
    for worker in workers:
        assert worker.wait(30) == 0
        worker.stdin.close()
    assert (top / "f").read_text() == "".join(f"edited {n:02}\n" for n in range(20))


def test_parallel_edits_from_threads_land_too(reach: Reach, keeping: Keeping, top: Path):
    (top / "f").write_text("".join(f"line {n:02}\n" for n in range(20)))
    (top / "alias").symlink_to("f")
    order = list(range(20))
    random.Random(1).shuffle(order)
    threads = [
        threading.Thread(
            target=edit_file,
            args=(reach, "alias" if n % 2 else "f", Replacement(f"line {n:02}\n", f"edited {n:02}\n"), keeping),
        )
        for n in order
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (top / "f").read_text() == "".join(f"edited {n:02}\n" for n in range(20))


def test_a_lock_held_by_another_is_waited_for_until_the_call_is_taken_back(reach, keeping, top: Path):
    (top / "f").write_text("old")
    cancellation = Cancellation()
    other = Keeping(keeping.locks, keeping.snapshots, "two", cancellation)
    with hold_spot(reach, "f", keeping):
        cancellation.cancel()
        with pytest.raises(ExeoraError) as caught:
            write_file(reach, "f", "new", other)
    assert caught.value.code == "CANCELLED"
    assert (top / "f").read_text() == "old"


def test_revert_gives_the_first_content_back(edit, reach: Reach, keeping: Keeping, top: Path):
    (top / "f").write_bytes(b"first\r\n")
    (top / "f").chmod(0o755)
    edit("f", "first", "second")
    edit("f", "second", "third")
    assert revert_file(reach, "f", keeping).bytes_written == 7
    assert (top / "f").read_bytes() == b"first\r\n"
    (top / "f").unlink()
    assert revert_file(reach, "f", keeping).created
    assert (top / "f").stat().st_mode & 0o777 == 0o755


def test_revert_deletes_what_was_not_there(reach: Reach, keeping: Keeping, top: Path):
    write_file(reach, "new", "x", keeping)
    revert_file(reach, "new", keeping)
    assert os.listdir(top) == []
    assert not revert_file(reach, "new", keeping).created


def test_revert_without_a_snapshot_is_refused(reach: Reach, keeping: Keeping, top: Path):
    (top / "f").write_text("x")
    other = Keeping(keeping.locks, keeping.snapshots, "another session", Cancellation())
    write_file(reach, "f", "y", other)
    with pytest.raises(ToolFailed) as caught:
        revert_file(reach, "f", keeping)
    assert caught.value.reason == "no_snapshot"
    assert (top / "f").read_text() == "y"
    revert_file(reach, "f", keeping, any_session=True)
    assert (top / "f").read_text() == "x"


def test_nothing_is_left_beside_the_files(edit, reach: Reach, keeping: Keeping, top: Path):
    (top / "f").write_text("old")
    edit("f", "old", "new")
    write_file(reach, "g", "x", keeping)
    with Root(top) as root, root.locate("f") as spot:
        assert spot.stat.st_nlink == 1
    assert sorted(os.listdir(top)) == ["f", "g"]
