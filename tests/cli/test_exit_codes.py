"""Every exit code of the contract (section 11), from the real process, in text and in JSON."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exeora_ws.settings import find_places

from support.commandline import COMMAND, CommandLine, Done, child_environment
from support.repositories import git
from support.trees import repository_picture

BROKEN = """
import sys
from exeora_ws.workspaces.inventory import Inventory
def fail(*_):
    raise RuntimeError("the secret text of a bug")
Inventory.{method} = fail
sys.argv = ["exeora", *sys.argv[1:]]
from exeora_cli.main import main
sys.exit(main())
"""
REFUSING = """
import sys
from exeora_ws import errors
from exeora_ws.tools.gate import CallGate
def refuse(*_):
    raise errors.{error}("not allowed here")
CallGate.approve = refuse
sys.argv = ["exeora", *sys.argv[1:]]
from exeora_cli.main import main
sys.exit(main())
"""


def run_script(exeora: CommandLine, script: str, *words: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=exeora.folder,
        env=child_environment(exeora.environment),
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_0_done(exeora: CommandLine):
    assert exeora("list").code == 0
    assert exeora("create", "x").code == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("path", "no-such"), "UNKNOWN_WORKSPACE"),
        (("--project", "no-such", "list"), "UNKNOWN_PROJECT"),
        (("create", "feat/x/y"), "TOOL_FAILED"),
        (("call", "remove_workspace", '{"workspace": "main"}'), "TOOL_FAILED"),
    ],
)
def test_1_failed(exeora: CommandLine, feature: Path, words: tuple[str, ...], code: str):
    text, document = exeora(*words), exeora(*words, "--json")
    assert text.code == document.code == 1
    assert text.out == document.out == ""
    first, *rest = text.err.splitlines()
    assert first == f"exeora: {document.error['message']}"
    assert rest == [f"hint: {document.error['hint']}"] if "hint" in document.error else rest == []
    assert document.error["code"] == code


@pytest.mark.parametrize(
    "words",
    [
        ("no-such",),
        ("list", "--no-such"),
        ("list", "extra"),
        ("create",),
        ("create", "a b"),
        ("create", "x", "--from", "HEAD", "--reuse"),
        ("create", "x", "--slug", "UPPER"),
        ("remove",),
        ("detach",),
        ("call", "no_such_tool"),
        ("call", "create_workspace", '{"nope": 1}'),
        ("-w", "main", "list"),
        ("-w", "a", "path", "b"),
        ("--project", "app", "project", "list"),
        ("-w", "main", "config", "get"),
        ("-w", "main", "completion", "bash"),
        ("config", "set", "no-such", "1"),
        ("mcp", "--account", "--project", "app"),
    ],
    ids=" ".join,
)
def test_2_usage(exeora: CommandLine, feature: Path, repository: Path, words: tuple[str, ...]):
    before = repository_picture(repository)
    text, document = exeora.inline(*words), exeora.inline(*words, "--json")
    assert text.code == document.code == 2, text.err
    assert text.out == document.out == ""
    assert text.err.startswith("exeora: ")
    assert len(text.err.splitlines()) <= 2
    assert document.error["code"] in ("INVALID_ARGUMENTS", "UNKNOWN_TOOL")
    assert document.error["reason" if document.error["code"] == "INVALID_ARGUMENTS" else "code"]
    assert repository_picture(repository) == before


def test_2_as_a_process(exeora: CommandLine):
    assert exeora("no-such").code == 2
    assert exeora("remove", "--json").error["reason"] == "missing_workspace"


@pytest.mark.parametrize("method", ["list_git_workspaces", "find_around"])
def test_3_a_bug(exeora: CommandLine, feature: Path, method: str):
    script = BROKEN.format(method=method)
    text, document = run_script(exeora, script, "git-list"), run_script(exeora, script, "git-list", "--json")
    log = find_places().log
    assert text.code == document.code == 3
    assert text.out == document.out == ""
    assert "secret" not in text.err + document.err
    assert "Traceback" not in text.err
    assert text.err.splitlines()[1] == f"hint: the traceback is in {log}"
    assert document.error["code"] == "INTERNAL_ERROR"
    assert document.error["data"]["log"] == str(log)
    content = log.read_text()
    assert content.count("the secret text of a bug") >= 2
    assert document.error["data"]["id"] in content
    assert log.stat().st_mode & 0o777 == 0o600


def test_4_refused_by_policy(exeora: CommandLine, feature: Path, repository: Path):
    (repository / "exeora.toml").write_text('mode = "read_only"\n')
    text, document = exeora("remove", "feat-x"), exeora("remove", "feat-x", "--json")
    assert (text.code, document.code, text.out, document.out) == (4, 4, "", "")
    assert document.error["code"] == "FORBIDDEN"
    assert text.err.startswith(f"exeora: {document.error['message']}\n")
    assert feature.is_dir()
    assert exeora("list").code == exeora("git-list").code == 0


@pytest.mark.parametrize("error", ["ApprovalDeclined", "ApprovalTimeout"])
def test_4_refused_by_a_person(exeora: CommandLine, feature: Path, error: str):
    done = run_script(exeora, REFUSING.format(error=error), "remove", "feat-x", "--json")
    assert (done.code, done.out) == (4, "")
    assert done.error["message"] == "not allowed here"
    assert feature.is_dir()


def hold_checkout(repository: Path, tmp_path: Path, *, seconds: int) -> Path:
    """Have the checkout of a new worktree take that long; gives the file that says it has begun."""
    begun = tmp_path / "begun"
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch '{begun}'\nsleep {seconds}\n")
    hook.chmod(0o755)
    return begun


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not come"
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_128_and_the_signal_leaves_nothing_behind(
    exeora: CommandLine, feature: Path, repository: Path, tmp_path: Path, number: signal.Signals, code: int
):
    begun = hold_checkout(repository, tmp_path, seconds=300)
    before = repository_picture(repository)
    running = exeora.start("create", "slow")
    wait_for(begun)
    running.send_signal(number)
    running.send_signal(number)
    out, err = running.communicate(timeout=30)
    if running.returncode == 0:
        pytest.fail(err.decode())
    assert running.returncode == code, err
    assert out == b""
    assert err == b"exeora: interrupted: the call was cancelled\n"
    assert repository_picture(repository) == before
    assert git(repository, "branch", "--list", "slow") == ""
    assert [w["slug"] for w in exeora.inline("list", "--json").document["workspaces"]] == ["main", "feat-x"]
    assert not (feature.parent / "slow").exists()
    (repository / ".git" / "hooks" / "post-checkout").unlink()
    assert exeora.inline("create", "slow").code == 0


def test_what_takes_longer_than_a_second_is_shown_at_a_terminal_only(
    exeora: CommandLine, feature: Path, repository: Path, tmp_path: Path
):
    hold_checkout(repository, tmp_path, seconds=2)
    ours, theirs = os.openpty()
    done = subprocess.run(
        [*COMMAND, "create", "slow"],
        cwd=repository,
        env=child_environment(exeora.environment),
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "exeora: create_workspace (1 s)" in shown
    # The line is wiped before anything else is said, and what is said stands alone.
    assert shown.split("\x1b[K")[-1].startswith("exeora: created workspace 'slow'")
    assert "(1 s)" not in exeora.inline("create", "slower").err


def test_one_signal_is_enough(exeora: CommandLine, feature: Path, repository: Path, tmp_path: Path):
    begun = hold_checkout(repository, tmp_path, seconds=300)
    running = exeora.start("create", "slow", "--json")
    wait_for(begun)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out) == (130, b"")
    assert b'"code":"CANCELLED"' in err
    assert git(repository, "branch", "--list", "slow") == ""


def test_a_reader_that_goes_away_is_no_error(exeora: CommandLine, feature: Path):
    for words in (("list",), ("git-list",)):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=exeora.folder,
            env=child_environment(exeora.environment),
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, b"")
