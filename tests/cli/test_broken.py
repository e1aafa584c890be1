"""The command line where something is broken: it names what it was told, or the place it stands in, or nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.commandline import COMMAND, CommandLine, child_environment
from support.repositories import git

BAD = os.fsdecode(b"b\xff")


@pytest.mark.parametrize("command", [("path",), ("create", "evil"), ("call", "read_file", '{"path": "README.md"}')])
def test_in_a_nested_workspace_without_its_git_file_nothing_acts_in_main(
    exeora: CommandLine, repository: Path, command: tuple[str, ...]
):
    git(repository, "worktree", "add", "-q", "nested", "-b", "nested")
    assert exeora("attach", "nested").code == 0
    (repository / "nested/.git").unlink()
    done = exeora("--json", *command, folder=repository / "nested")
    assert (done.code, done.out) == (1, "")
    assert done.error["code"] == "WORKSPACE_UNAVAILABLE"
    assert git(repository, "branch", "--list", "evil") == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--project", "app", "-w", "main", "create", "y"), 0),
        (("--project", "app", "remove", "feat/x"), 0),
        (("--project", "app", "list"), 0),
        (("create", "z"), 1),
        (("--project", "app", "create", "z"), 1),
    ],
)
def test_from_a_folder_that_is_gone_what_is_named_is_still_reached(
    exeora: CommandLine, feature: Path, sealed: dict[str, str], tmp_path: Path, words: tuple[str, ...], code: int
):
    leave = f'mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", leave, "sh", *COMMAND, *words],
        env=child_environment(sealed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert code == 0 or "the current directory is gone" in done.stderr


@pytest.mark.parametrize("words", [("-w", BAD, "path"), ("path", BAD), ("--project", BAD, "list"), ("remove", BAD)])
def test_a_selector_that_is_not_utf8_is_unknown(exeora: CommandLine, feature: Path, words: tuple[str, ...]):
    done = exeora(*words)
    assert done.code == 1, done.err
    assert "there is no" in done.err


def test_a_branch_that_is_not_utf8_looks_the_same_on_both_ways(exeora: CommandLine, repository: Path, feature: Path):
    git(feature, "checkout", "-q", "-b", BAD)
    assert "b\\xff" in exeora.inline("list").out
    for words in (("list",), ("list", "--json")):
        assert exeora.inline(*words).out == exeora.inline(*words, slow=True).out


def test_without_a_runtime_folder_stderr_holds_only_ours(exeora: CommandLine, repository: Path):
    done = exeora("--json", "create", "y", XDG_RUNTIME_DIR="")
    assert done.code == 0
    assert done.err.count("\n") == 1
    assert done.err.startswith('{"schema":1,"note":')
    shutil.rmtree(done.document["workspace"]["path"])
    assert exeora("--json", "path", "y", XDG_RUNTIME_DIR="").error["reason"] == "missing"
