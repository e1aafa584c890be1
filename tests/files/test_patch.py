"""A patch is all or nothing, also under kill -9 (contract, section 3; cases 17, 18, 25)."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from exeora_ws.errors import ExeoraError, InvalidArguments, PathEscape, PathNotFound, ToolFailed
from exeora_ws.files import patch as patching
from exeora_ws.files.editing import Keeping, revert_file
from exeora_ws.files.hunks import Hunk
from exeora_ws.files.operation import Operation
from exeora_ws.files.patch import apply_patch, recover_patches
from exeora_ws.files.reach import Reach


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    return tmp_path / "data" / "patches"


@pytest.fixture
def apply(reach: Reach, keeping: Keeping, patches: Path):
    return lambda *operations: apply_patch(reach, operations, keeping, patches)


def update(path: str, old: str, new: str) -> Operation:
    return Operation("update", path, hunks=(Hunk(old, new),))


def create(path: str, content: str = "new\n") -> Operation:
    return Operation("create", path, content=content)


def replace(path: str, content: str) -> Operation:
    return Operation("replace", path, content=content)


def delete(path: str) -> Operation:
    return Operation("delete", path)


def move(path: str, to: str) -> Operation:
    return Operation("move", path, to=to)


def look(top: Path) -> dict[str, tuple]:
    """The tree by content, kind, mode and time; folders by their being there."""
    found = {}
    for path in sorted(top.rglob("*")):
        at = path.lstat()
        if stat.S_ISDIR(at.st_mode):
            found[str(path.relative_to(top))] = (stat.S_IMODE(at.st_mode),)
        else:
            content = os.readlink(path) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(top))] = (at.st_mode, at.st_mtime_ns, content)
    return found


def fill(top: Path) -> None:
    (top / "src").mkdir()
    for name in ("a", "b", "c", "d", "src/e", "untouched"):
        (top / name).write_text(f"one {name}\ntwo\n")
        os.utime(top / name, ns=(1_000_000_000, 1_500_000_000_123_456_789))
    (top / "a").chmod(0o755)
    (top / "b").chmod(0o600)
    (top / "link").symlink_to("src/e")
    (top / "binary").write_bytes(b"\0\xff" * 100)


EVERYTHING = (
    create("new/deep/file", "fresh\n"),
    update("new/deep/file", "fresh", "fresher"),
    update("a", "one a", "ONE a"),
    replace("b", "whole\n"),
    delete("c"),
    move("d", "moved/d"),
    update("moved/d", "two", "2"),
    move("binary", "src/binary"),
    create("c", "again\n"),
    delete("link"),
    update("src/e", "two", "TWO"),
)


def check_everything(top: Path) -> None:
    assert (top / "new/deep/file").read_text() == "fresher\n"
    assert (top / "a").read_text() == "ONE a\ntwo\n"
    assert (top / "a").stat().st_mode & 0o777 == 0o755
    assert ((top / "b").read_text(), (top / "b").stat().st_mode & 0o777) == ("whole\n", 0o600)
    assert (top / "c").read_text() == "again\n"
    assert (top / "moved/d").read_text() == "one d\n2\n"
    assert (top / "src/binary").read_bytes() == b"\0\xff" * 100
    assert (top / "src/e").read_text() == "one src/e\nTWO\n"
    assert not any(os.path.lexists(top / name) for name in ("d", "binary", "link"))


def test_operations_build_on_each_other(apply, top: Path, patches: Path):
    fill(top)
    before = look(top)
    inode = (top / "binary").stat().st_ino
    done = apply(*EVERYTHING)
    check_everything(top)
    assert look(top)["untouched"] == before["untouched"]
    assert (top / "src/binary").stat().st_ino == inode
    assert [operation.type for operation in done.operations][:2] == ["create", "update"]
    assert os.listdir(patches) == []
    assert not [name for name in os.listdir(top) if name.startswith(".exeora")]


def test_the_diff_is_one_git_applies(apply, top: Path, tmp_path: Path):
    fill(top)
    subprocess.run(["cp", "-a", str(top), str(tmp_path / "copy")], check=True)
    subprocess.run(["git", "init", "-q", str(tmp_path / "copy")], check=True)
    done = apply(
        create("new file.txt", "a\nb"),
        update("a", "one", "1"),
        delete("c"),
        move("d", "x/d"),
        update("x/d", "two", "2"),
    )
    told = subprocess.run(
        ["git", "apply", "-"], input=done.diff.text.encode(), cwd=tmp_path / "copy", capture_output=True, check=False
    )
    assert told.returncode == 0, told.stderr.decode() + done.diff.text
    for name in ("new file.txt", "a", "x/d", "b"):
        assert (tmp_path / "copy" / name).read_bytes() == (top / name).read_bytes()
    assert not (tmp_path / "copy" / "c").exists()
    assert not (tmp_path / "copy" / "d").exists()


REFUSALS = [
    (delete("missing"), PathNotFound, None),
    (update("a", "nowhere", "x"), ToolFailed, "no_match"),
    (update("a", "o", "x"), ToolFailed, "ambiguous_match"),
    (update("a", "", "x"), InvalidArguments, "empty_old_text"),
    (update("binary", "x", "y"), ToolFailed, "binary"),
    (Operation("update", "a"), InvalidArguments, "missing_field"),
    (Operation("create", "x"), InvalidArguments, "missing_field"),
    (Operation("move", "a"), InvalidArguments, "missing_field"),
    (create("a"), ToolFailed, "exists"),
    (create("src"), ToolFailed, "exists"),
    (create("a/below"), PathNotFound, "not_a_folder"),
    (replace("missing", "x"), PathNotFound, None),
    (replace("src", "x"), ToolFailed, "is_a_folder"),
    (delete("src"), ToolFailed, "is_a_folder"),
    (move("a", "b"), ToolFailed, "exists"),
    (move("missing", "x"), PathNotFound, None),
    (move("src", "x"), ToolFailed, "is_a_folder"),
    (create("../out"), PathEscape, "outside_root"),
    (create("leak/x"), PathEscape, "outside_root"),
    (update("far", "x", "y"), PathEscape, "outside_root"),
    (create(".git/hooks/x"), PathEscape, "git_folder"),
    (create("exeora.toml"), PathEscape, "policy_file"),
    (move("a", ".git/x"), PathEscape, "git_folder"),
    (create("~/.agents/skills/x"), PathEscape, "outside_root"),
    (create("first/below"), ToolFailed, "not_a_folder"),
]


@pytest.mark.parametrize(("operation", "kind", "reason"), REFUSALS)
def test_one_that_cannot_run_stops_all(apply, top: Path, patches: Path, operation, kind, reason):
    fill(top)
    (top / "leak").symlink_to("/etc")
    (top / "far").symlink_to("/etc/hostname")
    before = look(top)
    with pytest.raises(kind) as caught:
        apply(create("first"), update("b", "one", "1"), operation)
    assert caught.value.reason == reason
    assert caught.value.data["operation"] == 2
    assert caught.value.message.startswith("operations[2]")
    assert look(top) == before
    assert not patches.exists() or os.listdir(patches) == []


def test_limits_are_checked_first(apply, top: Path):
    for operations, reason in (
        ((), "no_operations"),
        ([create(f"f{n}") for n in range(21)], "too_many_operations"),
        ([create("f", "x" * 600_000), create("g", "é" * 200_001)], "patch_too_large"),
    ):
        with pytest.raises(InvalidArguments) as caught:
            apply(*operations)
        assert caught.value.reason == reason
    assert os.listdir(top) == []


def test_a_link_is_deleted_and_moved_itself_but_written_through(apply, top: Path):
    fill(top)
    apply(update("link", "two", "2"))
    assert (top / "link").is_symlink()
    assert (top / "src" / "e").read_text() == "one src/e\n2\n"
    apply(move("link", "other"))
    assert os.readlink(top / "other") == "src/e"
    apply(delete("other"))
    assert (top / "src" / "e").exists()


def test_a_swap_within_one_patch_is_refused_whole(apply, top: Path):
    fill(top)
    before = look(top)
    with pytest.raises(ToolFailed) as caught:
        apply(move("a", "t"), move("b", "a"), move("t", "b"))
    assert caught.value.reason == "unsupported"
    assert look(top) == before


STEPS = ["_move", "_write", "_remove"]


@pytest.mark.parametrize(("step", "count"), [(step, count) for step in STEPS for count in (1, 2, 4, 7, 9)])
def test_a_failure_in_the_middle_takes_all_back(apply, top: Path, patches: Path, monkeypatch, step: str, count: int):
    fill(top)
    before = look(top)
    calls = 0
    real = getattr(patching, step)

    def fail(*args):
        nonlocal calls
        calls += 1
        if calls > count:
            raise ToolFailed("no more", reason="disk_full")
        return real(*args)

    monkeypatch.setattr(patching, step, fail)
    with pytest.raises(ToolFailed) as caught:
        apply(*EVERYTHING)
    assert caught.value.reason == "disk_full"
    assert look(top) == before
    assert os.listdir(patches) == []


def test_extended_attributes_of_a_file_already_deleted_come_back(apply, top: Path, monkeypatch):
    for name in ("a", "b"):
        (top / name).write_text("x")
    try:
        os.setxattr(top / "a", "user.origin", b"mail\0\xff")
    except OSError:
        pytest.skip("no extended attributes here")
    real = patching._remove

    def remove(root, step):
        if step.before.shown == "b":
            raise ToolFailed("no more", reason="disk_full")
        real(root, step)

    monkeypatch.setattr(patching, "_remove", remove)
    with pytest.raises(ToolFailed):
        apply(delete("a"), delete("b"))
    assert os.getxattr(top / "a", "user.origin") == b"mail\0\xff"


KILLABLE = ("link", "rename", "replace", "unlink", "mkdir", "fsync", "rmdir")


def run_and_die(reach: Reach, keeping: Keeping, patches: Path, at: int) -> bool:
    """Apply the patch in a child that kills itself at its `at`-th change on disk; False when it got to the end."""
    return do_and_die(lambda: apply_patch(reach, EVERYTHING, keeping, patches), at)


def do_and_die(do, at: int) -> bool:
    child = os.fork()
    if child == 0:
        count = 0

        def deadly(real):
            def call(*args, **options):
                nonlocal count
                count += 1
                if count == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **options)

            return call

        for name in KILLABLE:
            setattr(os, name, deadly(getattr(os, name)))
        code = 7
        try:
            do()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert not (os.WIFEXITED(status) and os.WEXITSTATUS(status)), "the patch failed instead of dying"
    return os.WIFSIGNALED(status)


def test_kill_9_at_every_step_leaves_the_tree_as_it_was_or_done(reach, keeping, top: Path, patches: Path):
    fill(top)
    before = look(top)
    at, undone = 1, 0
    while run_and_die(reach, keeping, patches, at):
        recovered = recover_patches(patches, keeping.locks)
        assert all(not one.left for one in recovered), (at, recovered)
        undone += len(recovered)
        if look(top) != before:  # killed after the moment from which the patch counts
            check_everything(top)
            break
        assert [name for name in os.listdir(patches) if not name.startswith(".")] == [] if patches.exists() else True
        at += 1
    assert undone > 15
    assert at > 30


@pytest.mark.parametrize("at", [20, 27, 34, 41, 48, 55])
def test_kill_9_at_every_step_of_the_recovery_too(reach, keeping, top: Path, patches: Path, at: int):
    fill(top)
    before = look(top)
    assert run_and_die(reach, keeping, patches, at)
    step = 1
    while do_and_die(lambda: recover_patches(patches, keeping.locks), step):
        step += 1
        assert step < 200
    assert all(not one.left for one in recover_patches(patches, keeping.locks))
    if look(top) != before:
        check_everything(top)
    assert [name for name in os.listdir(patches) if not name.startswith(".")] == []


def test_the_next_patch_in_that_root_recovers_first(reach: Reach, keeping: Keeping, top: Path, patches: Path):
    fill(top)
    before = look(top)
    at = 1
    while run_and_die(reach, keeping, patches, at) and look(top) == before:
        at += 1
    apply_patch(reach, [create("after")], keeping, patches)
    assert {name: seen for name, seen in look(top).items() if name != "after"} == before


def test_what_somebody_wrote_since_is_left_to_them(reach: Reach, keeping: Keeping, top: Path, patches: Path):
    fill(top)
    before = look(top)
    at = 1
    while run_and_die(reach, keeping, patches, at) and (top / "a").read_text() == "one a\ntwo\n":
        recover_patches(patches, keeping.locks)
        at += 1
    (top / "a").write_text("mine")
    (recovered,) = recover_patches(patches, keeping.locks)
    assert (recovered.root, recovered.left) == (str(top), ("a",))
    assert (top / "a").read_text() == "mine"
    after = look(top)
    assert {name: seen for name, seen in after.items() if name != "a"} == {n: s for n, s in before.items() if n != "a"}


def test_a_patch_under_way_is_not_recovered(reach: Reach, keeping: Keeping, top: Path, patches: Path, monkeypatch):
    fill(top)
    real = patching._remove

    def look_and_remove(*args):
        assert recover_patches(patches, keeping.locks) == []
        real(*args)

    monkeypatch.setattr(patching, "_remove", look_and_remove)
    apply_patch(reach, EVERYTHING, keeping, patches)
    check_everything(top)


def test_a_root_that_is_away_keeps_its_journal(reach: Reach, keeping: Keeping, top: Path, patches: Path):
    fill(top)
    before = look(top)
    at = 1
    while run_and_die(reach, keeping, patches, at) and look(top) == before:
        at += 1
    top.rename(top.with_name("away"))
    assert recover_patches(patches, keeping.locks) == []
    top.with_name("away").rename(top)
    assert len(recover_patches(patches, keeping.locks)) == 1
    assert look(top) == before


def test_a_patched_file_can_be_reverted(apply, reach: Reach, keeping: Keeping, top: Path):
    fill(top)
    apply(update("a", "one", "1"), create("n"), delete("c"))
    for name in ("a", "n", "c"):
        revert_file(reach, name, keeping)
    assert (top / "a").read_text() == "one a\ntwo\n"
    assert (top / "c").read_text() == "one c\ntwo\n"
    assert not (top / "n").exists()


def test_errors_name_the_operation_by_index(apply, top: Path):
    with pytest.raises(ExeoraError) as caught:
        apply(create("x"), create("x"))
    assert caught.value.data == {"operation": 1}
