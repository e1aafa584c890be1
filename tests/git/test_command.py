import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ToolFailed
from exeora_ws.git import command
from exeora_ws.git.command import Git, run
from exeora_ws.git.messages import describe_failure, find_first_complaint, tidy

from support.repositories import git


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository()


@pytest.fixture
def ours(top) -> Git:
    return Git(top, top / ".git")


def shell(script: str, **options) -> command.Output:
    return run(["/bin/sh", "-c", script], os.environ, seconds=options.pop("seconds", 10), **options)


@pytest.fixture(params=["pidfd", "polling"])
def waiting(request, monkeypatch):
    """Kernels without pidfd are polled."""
    if request.param == "polling":
        monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize("lifeline", [False, True])
class TestRunning:
    def test_output_is_bytes_and_apart(self, lifeline):
        done = shell("printf 'a\\377\\n'; printf oops >&2; exit 7", lifeline=lifeline)
        assert (done.code, done.out, done.err, done.text) == (7, b"a\xff\n", b"oops", "a\udcff")

    def test_nothing_on_standard_input(self, lifeline):
        assert shell("cat; echo done", lifeline=lifeline).out == b"done\n"

    def test_a_signal_is_a_negative_code(self, lifeline):
        assert shell("kill -TERM $$", lifeline=lifeline).code == -15

    def test_gits_usage_code_is_no_signal(self, lifeline):
        assert shell("exit 129", lifeline=lifeline).code == 129

    def test_a_large_output_on_both(self, lifeline):
        done = shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2", lifeline=lifeline)
        assert (len(done.out), len(done.err)) == (3_000_000, 3_000_000)

    def test_whoever_keeps_the_output_open_holds_up_nothing(self, lifeline):
        started = time.monotonic()
        assert shell("(setsid sleep 3 &) ; echo hi", lifeline=lifeline).out == b"hi\n"
        assert time.monotonic() - started < 1.5

    def test_time_runs_out(self, lifeline):
        started = time.monotonic()
        with pytest.raises(ToolFailed) as caught:
            shell("sleep 30", seconds=0.2, lifeline=lifeline)
        assert caught.value.reason == "timeout"
        assert time.monotonic() - started < 2

    def test_a_call_that_was_taken_back_before(self, lifeline):
        cancellation = Cancellation()
        cancellation.cancel()
        with pytest.raises(Cancelled):
            shell("sleep 30", lifeline=lifeline, cancellation=cancellation)

    def test_a_call_that_is_taken_back_meanwhile(self, lifeline):
        cancellation = Cancellation()
        threading.Timer(0.1, cancellation.cancel).start()
        started = time.monotonic()
        with pytest.raises(Cancelled):
            shell("sleep 30", lifeline=lifeline, cancellation=cancellation)
        assert time.monotonic() - started < 2

    def test_arguments_are_what_they_are(self, lifeline):
        words = ["$HOME", "a b", "", "'\"", "-n", "*", "é\udcff", "new\nline"]
        script = "import sys,os; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
        environment = os.environ | {"PYTHONUTF8": "1"}
        done = run([sys.executable, "-c", script, *words], environment, seconds=10, lifeline=lifeline)
        assert done.out == "|".join(words).encode("utf-8", "surrogateescape")

    def test_a_nul_is_refused(self, lifeline):
        with pytest.raises(ToolFailed) as caught:
            run(["echo", "a\0b"], os.environ, seconds=10, lifeline=lifeline)
        assert caught.value.reason == "invalid_argument"


def test_data_on_standard_input():
    data = os.urandom(200_000)
    assert run(["cat"], os.environ, seconds=10, stdin=data).out == data


def test_no_descriptor_leaks():
    before = len(os.listdir("/proc/self/fd"))
    for lifeline in (False, True) * 3:
        shell("true", lifeline=lifeline)
        with pytest.raises(ToolFailed):
            shell("sleep 30", seconds=0.05, lifeline=lifeline)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_executable_is_one_sentence(ours, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed) as caught:
        ours.read("status")
    assert caught.value.reason == "git_missing"


def test_a_gone_folder_is_one_sentence(ours, top):
    top.rename(top.with_name("away"))
    with pytest.raises(ToolFailed) as caught:
        ours.read("rev-parse", "HEAD")
    assert caught.value.reason == "not_a_repository"


def test_a_read_takes_no_optional_lock_and_asks_nobody(ours, top):
    git(top, "config", "alias.env", "!env")
    seen = dict(line.partition("=")[::2] for line in ours.read("env").text.splitlines())
    assert seen["GIT_OPTIONAL_LOCKS"] == "0"
    assert seen["GIT_TERMINAL_PROMPT"] == "0"
    assert seen["LC_MESSAGES"] == "C"
    assert "GIT_OPTIONAL_LOCKS" not in ours.change("env").text


def test_a_change_runs_the_hooks_that_git_would(ours, top, tmp_path):
    hook = top / ".git" / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/home/hook\n")
    hook.chmod(0o755)
    ours.change("update-ref", "refs/heads/x", "HEAD")
    assert "committed" in (tmp_path / "home" / "hook").read_text()
    (tmp_path / "home" / "hook").unlink()
    ours.read("rev-parse", "HEAD")
    assert not (tmp_path / "home" / "hook").exists()


def test_messages_come_in_english(ours, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    with pytest.raises(ToolFailed, match="Needed a single revision"):
        ours.read("rev-parse", "--verify", "nothing")


class TestMessages:
    @pytest.mark.parametrize(
        ("line", "shown"),
        [
            ("'/home/u/secret/x' already exists", "'x' already exists"),
            ("cannot open /etc/shadow: no", "cannot open shadow: no"),
            ("no 'https://me:tok@host.example/o/r.git/': 401", "no 'https://host.example/o/r.git/': 401"),
            ("file:///srv/git/r.git is gone", "file:///srv/git/r.git is gone"),
            ("a/b and c/d stay", "a/b and c/d stay"),
            ("bell\x07 and \x1b[31mred", "bell? and ?[31mred"),
            ("in the folder /home/u/a b/c", "in the folder a b/c"),
        ],
    )  # fmt: skip
    def test_no_absolute_path_and_no_credential(self, line, shown):
        assert tidy(line) == shown

    def test_a_long_line_is_cut_and_says_so(self):
        assert len(tidy("x" * 1000)) == 300
        assert tidy("x" * 1000).endswith("…")

    def test_the_first_fatal_line_is_the_one(self):
        assert find_first_complaint("warning: x\nerror: one\nfatal: two\nfatal: three\n") == "two"
        assert find_first_complaint("noise\nerror: one\nmore\n") == "one"
        assert find_first_complaint("noise\nlast words\n\n") == "last words"
        assert find_first_complaint("error: why\nfatal: Could not reset index file to revision 'HEAD'.") == "why"

    @pytest.mark.parametrize(
        ("stderr", "reason"),
        [
            ("fatal: not a git repository (or any of the parent directories): .git", "not_a_repository"),
            ("fatal: 'x' is already checked out at '/w'", "branch_checked_out"),
            ("fatal: 'x' is already used by worktree at '/w'", "branch_checked_out"),
            ("error: unable to write: No space left on device", "disk_full"),
            ("fatal: x: 'refs/heads/a/b' exists; cannot create 'refs/heads/a'", "branch_conflict"),
            ("fatal: Unable to create '/r/.git/index.lock': File exists.", "busy"),
            ("", "git_failed"),
        ],
    )  # fmt: skip
    def test_reasons(self, stderr, reason):
        failure = describe_failure(128, stderr)
        assert failure.reason == reason
        assert failure.message.startswith("git: ")

    def test_a_silent_end_names_its_code_or_signal(self):
        assert describe_failure(3, "").message == "git: exit code 3"
        assert describe_failure(-9, "").message == "git: ended by signal 9"


def test_concurrent_runs_do_not_hold_each_others_lifeline(top, tmp_path):
    """A child started by another thread must not inherit the pipe that says that we are alive."""
    script = (
        "import sys, threading, os\n"
        "from exeora_ws.git.command import run\n"
        "words = ['/bin/sh', '-c', f'echo $$ >> {sys.argv[1]}; sleep 60']\n"
        "def go(): run(words, os.environ, seconds=60, lifeline=True)\n"
        "threads = [threading.Thread(target=go) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "pids")], env=environment)
    while not (tmp_path / "pids").exists() or (tmp_path / "pids").read_text().count("\n") < 4:
        time.sleep(0.01)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 3
    pids = (tmp_path / "pids").read_text().split()
    while time.monotonic() < deadline and any(running(pid) for pid in pids):
        time.sleep(0.01)
    assert not any(running(pid) for pid in pids)


def running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
