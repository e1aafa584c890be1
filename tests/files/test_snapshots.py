"""First contents are kept once, privately, and not for ever."""

import os
import threading
import time
from pathlib import Path

import pytest
from exeora_ws.files.editing import Keeping, write_file
from exeora_ws.files.reach import Reach
from exeora_ws.files.snapshots import Snapshots


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "snapshots"


def keep(store: Snapshots, session: str, path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        store.keep(session, str(path), descriptor, 0o644)
    finally:
        os.close(descriptor)


def test_only_the_first_content_of_a_session_is_kept(folder: Path, top: Path):
    store = Snapshots(folder)
    (top / "f").write_text("first")
    keep(store, "one", top / "f")
    (top / "f").write_text("second")
    keep(store, "one", top / "f")
    keep(store, "two", top / "f")
    assert store.load_content(store.find(str(top / "f"), "one")) == b"first"
    assert store.load_content(store.find(str(top / "f"), "two")) == b"second"
    assert store.load_content(store.find(str(top / "f"))) == b"second"
    assert store.find(str(top / "g")) is None
    assert store.find(str(top / "f"), "three") is None


def test_everything_kept_is_private(folder: Path, top: Path):
    (top / "f").write_text("secret")
    keep(Snapshots(folder), "one", top / "f")
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert folder.stat().st_mode & 0o777 == 0o700


def test_equal_contents_are_kept_once(folder: Path, top: Path):
    store = Snapshots(folder)
    for name in "abc":
        (top / name).write_text("same")
        keep(store, "one", top / name)
    assert len([path for path in (folder / "objects").rglob("*") if path.is_file()]) == 1


def test_what_is_too_large_is_recorded_as_not_kept(folder: Path, top: Path):
    store = Snapshots(folder, max_file_bytes=3)
    (top / "f").write_text("long")
    keep(store, "one", top / "f")
    found = store.find(str(top / "f"), "one")
    assert (found.object, found.absent, found.why_not) == (None, False, "too_large")
    assert store.load_content(found) is None


def test_an_unreadable_file_gets_no_snapshot_not_even_later(folder: Path, top: Path):
    store = Snapshots(folder)
    store.keep_unreadable("one", str(top / "f"))
    (top / "f").write_text("written by the tool")
    keep(store, "one", top / "f")
    found = store.find(str(top / "f"), "one")
    assert (found.object, found.absent, found.why_not) == (None, False, "unreadable")


def test_pruning_lets_go_of_the_old_and_of_what_is_too_much(folder: Path, top: Path):
    store = Snapshots(folder, max_bytes=250)
    for number in range(4):
        (top / f"f{number}").write_text(str(number) * 100)
        keep(store, f"session {number}", top / f"f{number}")
        time.sleep(0.002)
    store.prune()
    kept = [store.find(str(top / f"f{number}")) for number in range(4)]
    assert [bool(record) for record in kept] == [False, False, True, True]
    assert store.load_content(kept[3]) == b"3" * 100
    assert len([path for path in (folder / "objects").rglob("*") if path.is_file()]) == 2
    Snapshots(folder, max_days=0).prune()
    assert [path for path in folder.rglob("*/*/*") if path.is_file()] == []


def test_names_outside_utf8_are_kept_apart(folder: Path, top: Path):
    store = Snapshots(folder)
    for raw in (b"a\xff", b"a\xfe"):
        name = os.fsdecode(bytes(top) + b"/" + raw)
        Path(name).write_bytes(raw)
        keep(store, "one", Path(name))
        assert store.load_content(store.find(name, "one")) == raw
        assert store.find(name, "one").file == name


def test_two_sessions_writing_one_new_file_at_once(reach: Reach, keeping: Keeping, top: Path):
    other = Keeping(keeping.locks, keeping.snapshots, "two", keeping.cancellation)
    threads = [threading.Thread(target=write_file, args=(reach, "d/f", s.session, s)) for s in (keeping, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = [keeping.snapshots.find(str(top / "d" / "f"), session) for session in ("session-1", "two")]
    assert sorted(record.absent for record in records) == [False, True]
