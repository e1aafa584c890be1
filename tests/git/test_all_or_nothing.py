"""A failed addition leaves what was there: no branch, no record, no folder; and the same call succeeds afterwards."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ToolFailed
from exeora_ws.git import command
from exeora_ws.git.port import Addition

from support.repositories import commit_file, git

TOP = Path(__file__).parents[2]


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository(commits=2)


@pytest.fixture(params=["absent", "empty folder", "absent parents"])
def target(request, tmp_path) -> Path:
    if request.param == "absent parents":
        return tmp_path / "a" / "b" / "new"
    if request.param == "empty folder":
        (tmp_path / "new").mkdir(mode=0o750)
    return tmp_path / "new"


def look(tmp_path: Path) -> list[tuple[str, int]]:
    """The folders beside the repositories, with their modes."""
    return sorted((p.name, p.stat().st_mode) for p in tmp_path.iterdir() if p.name not in ("repositories", "home"))


def write_hook(top: Path, text: str) -> Path:
    hook = top / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\n" + text)
    hook.chmod(0o755)
    return hook


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def environment_of(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


class Attempt:
    """One addition that fails, and then, with the cause gone, succeeds."""

    def __init__(self, opened, top: Path, target: Path, tmp_path: Path, trace) -> None:
        self.repository = opened(top)
        self.addition = Addition(target, git(top, "rev-parse", "HEAD"), new_branch="feature/new", source=top)
        self.top, self.tmp_path, self.trace = top, tmp_path, trace

    def fail(self) -> ToolFailed:
        before = self.trace(self.top), look(self.tmp_path)
        with pytest.raises(ToolFailed) as caught:
            self.repository.add_worktree(self.addition)
        assert (self.trace(self.top), look(self.tmp_path)) == before
        assert str(self.tmp_path) not in caught.value.message
        return caught.value

    def succeed(self) -> None:
        self.repository.add_worktree(self.addition)
        assert git(self.addition.path, "status", "--porcelain", "--branch") == "## feature/new"


@pytest.fixture
def attempt(opened_by_git, top, target, tmp_path, trace) -> Attempt:
    return Attempt(opened_by_git, top, target, tmp_path, trace)


def test_a_required_filter_fails(attempt, top):
    git(top, "config", "filter.remote.clean", "cat")
    commit_file(top, ".gitattributes", "*.bin filter=remote\n")
    commit_file(top, "a.bin", "pointer\n")
    git(top, "config", "filter.remote.smudge", "echo 'server away' >&2; exit 2")
    git(top, "config", "filter.remote.required", "true")
    attempt.addition = replace(attempt.addition, commit=git(top, "rev-parse", "HEAD"))
    failure = attempt.fail()
    assert failure.reason == "filter_failed"
    assert "a.bin" in failure.message
    git(top, "config", "filter.remote.smudge", "cat")
    attempt.succeed()


def test_the_hook_fails(attempt, top):
    hook = write_hook(top, "touch left-over; echo one >&2; echo 'no node here, in /opt/x/bin' >&2; exit 3\n")
    failure = attempt.fail()
    assert failure.reason == "hook_failed"
    assert "no node here" in failure.message
    assert "exit code 3" in failure.message
    assert "/opt" not in failure.message
    hook.unlink()
    attempt.succeed()


def test_the_hook_dies_of_a_signal(attempt, top):
    write_hook(top, "kill -KILL $$\n").chmod(0o755)
    assert attempt.fail().reason == "hook_failed"


def test_the_hook_leaves_what_cannot_be_written(attempt, top):
    write_hook(top, "mkdir -p locked/deep; touch locked/deep/x; chmod -R a-w locked; exit 1\n")
    assert attempt.fail().reason == "hook_failed"


def test_the_hook_kills_git(attempt, top):
    hook = write_hook(top, "kill -KILL $PPID; sleep 5\n")
    assert attempt.fail().reason == "hook_failed"
    hook.unlink()
    attempt.succeed()


@pytest.mark.parametrize("left", [["HEAD", "commondir"], [], ["gitdir"]])
def test_git_is_killed_while_it_tidies_up(attempt, top, left):
    git(top, "worktree", "add", "-q", "-b", "newer", str(top.parent / "newer"))
    admin = top / ".git" / "worktrees" / "new"
    kept = " ".join(f"! -name {name}" for name in left)
    write_hook(top, f"find {admin} -type f {kept} -delete; rmdir {admin}/* 2>/dev/null; kill -KILL $PPID; sleep 5\n")
    assert attempt.fail().reason == "hook_failed"


def test_time_runs_out(attempt, top, monkeypatch, tmp_path, home):
    hook = write_hook(top, f"echo $$ > {tmp_path}/home/pid; trap '' TERM; setsid sleep 300 & sleep 300\n")
    monkeypatch.setattr(command, "GIT_POPULATE_SECONDS", 0.7)
    monkeypatch.setattr(command, "KILL_GRACE_MS", 200)
    assert attempt.fail().reason == "timeout"
    shell = int((tmp_path / "home" / "pid").read_text())
    assert not is_alive(shell)
    mine = [p for p in psutil.process_iter() if p.pid != os.getpid() and environment_of(p).get("HOME") == str(home)]
    assert not [p for p in mine if is_alive(p.pid)]
    hook.unlink()
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    attempt.succeed()


def test_an_interrupt(attempt, top, tmp_path, trace):
    write_hook(top, f"echo $$ > {tmp_path}/home/pid; sleep 300\n")
    before = trace(top), look(tmp_path)

    def interrupt() -> None:
        while not (tmp_path / "home" / "pid").exists() or not (tmp_path / "home" / "pid").read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        attempt.repository.add_worktree(attempt.addition)
    assert (trace(top), look(tmp_path)) == before
    assert not is_alive(int((tmp_path / "home" / "pid").read_text()))


def test_the_call_is_taken_back(attempt, top, tmp_path, trace, monkeypatch):
    monkeypatch.setattr(command, "KILL_GRACE_MS", 200)
    pid = tmp_path / "home" / "pid"
    hook = write_hook(top, f"echo $$ > {pid}; trap '' TERM; sleep 300\n")
    before = trace(top), look(tmp_path)
    cancellation = Cancellation()

    def cancel() -> None:
        while not pid.exists() or not pid.read_text():
            time.sleep(0.01)
        cancellation.cancel()

    threading.Thread(target=cancel).start()
    with pytest.raises(Cancelled):
        attempt.repository.add_worktree(attempt.addition, cancellation)
    assert (trace(top), look(tmp_path)) == before
    assert not is_alive(int(pid.read_text()))
    hook.unlink()
    with pytest.raises(Cancelled):
        attempt.repository.add_worktree(attempt.addition, cancellation)
    assert (trace(top), look(tmp_path)) == before
    attempt.succeed()


def test_the_commit_lacks_an_object(attempt, top):
    blob = git(top, "rev-parse", "HEAD:README.md")
    (top / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert attempt.fail().reason == "git_failed"


def test_a_hook_that_leaves_something_running_holds_up_nothing(opened_by_git, top, tmp_path):
    write_hook(top, f"sleep 300 & echo $! > {tmp_path}/home/pid\n")
    started = time.monotonic()
    commit = git(top, "rev-parse", "HEAD")
    opened_by_git(top).add_worktree(Addition(tmp_path / "new", commit, new_branch="new", source=top))
    assert time.monotonic() - started < 5
    left = int((tmp_path / "home" / "pid").read_text())
    deadline = time.monotonic() + 2
    while is_alive(left) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not is_alive(left)


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("size", [50_000, 3_000_000])
def test_the_disk_is_full(opened, top, small_disk, trace, size):
    for number in range(40):
        (top / f"large-{number}").write_bytes(os.urandom(size // 40))
    git(top, "add", "-A")
    git(top, "commit", "-qm", "large")
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (380_000 if size < 400_000 else 0))
    before = trace(top)
    addition = Addition(small_disk / "a" / "new", git(top, "rev-parse", "HEAD"), new_branch="new", source=top)
    with pytest.raises(ToolFailed) as caught:
        opened(top).add_worktree(addition)
    assert caught.value.reason == "disk_full"
    assert trace(top) == before
    assert list(small_disk.iterdir()) == [filler]
    filler.unlink()
    if size < 400_000:
        opened(top).add_worktree(addition)
        assert git(addition.path, "status", "--porcelain") == ""


KILLED = """
import sys
from pathlib import Path
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Addition
top, target = Path(sys.argv[1]), Path(sys.argv[2])
repository = open_repository(top)
repository.add_worktree(Addition(target, repository.head().commit, new_branch="new", source=top))
"""


def test_when_exeora_is_killed_git_and_its_hook_die_too(top, tmp_path):
    write_hook(top, f"echo $$ $PPID > {tmp_path}/home/pids; sleep 300\n")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, top, tmp_path / "new"], env=os.environ | {"PYTHONPATH": str(TOP)}
    )
    pids = tmp_path / "home" / "pids"
    while not pids.exists() or not pids.read_text().endswith("\n"):
        time.sleep(0.01)
    running = [psutil.Process(int(pid)) for pid in pids.read_text().split()]
    process.kill()
    process.wait()
    deadline = time.monotonic() + 3
    while any(is_alive(p.pid) for p in running) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not any(is_alive(p.pid) for p in running)
