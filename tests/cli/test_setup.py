"""What a newcomer runs: the demo does what it says, and the make file does its set-up and says what is missing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.commandline import TOP, child_environment
from support.repositories import git
from support.trees import repository_picture


@pytest.fixture
def programs(tmp_path: Path, sealed: dict[str, str]) -> dict[str, str]:
    """An environment with `exeora` and `python` on PATH, as `make` gives it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, words in (("exeora", "-m exeora_cli.main"), ("python", "")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        program.chmod(0o755)
    environment = child_environment(sealed)
    return environment | {"PATH": f"{folder}:{environment['PATH']}"}


def run_demo(environment: dict[str, str], repository: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", str(TOP / "fixtures" / "demo.sh")],
        env=environment | {"REPO": str(repository)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_does_what_it_says_and_changes_nothing_else(programs: dict[str, str], make_repository, home: Path):
    repository = make_repository("demonstrated")
    before = repository_picture(repository)
    done = run_demo(programs, repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("demo: everything was as said\n")
    typed = [line for line in done.stdout.splitlines() if line.startswith("$ ")]
    for command in ("git clone", "exeora create", "list", "exeora remove", "demo_mcp.py"):
        assert any(command in line for line in typed), command
    assert repository_picture(repository) == before
    assert not (home / "data" / "exeora").exists()
    assert list((home / "cache").glob("exeora-demo*")) == []


def test_the_demo_fails_loudly(programs: dict[str, str], make_repository, tmp_path: Path):
    broken = tmp_path / "bin" / "exeora"
    text = broken.read_text()
    broken.write_text(text.replace("exec ", 'if [ "$1 $2" = "path demo/green" ]; then set -- path main; fi\nexec '))
    done = run_demo(programs, make_repository("demonstrated"))
    assert done.returncode == 1
    assert "demo: not as said: branch of the second workspace" in done.stderr


def test_the_demo_works_on_a_folder_that_is_no_repository(programs: dict[str, str], tmp_path: Path):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    (folder / "README.md").write_text("unpacked\n")
    done = run_demo(programs, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert git(tmp_path, "-C", str(folder), "rev-parse", check=False) in ("", "rev-parse")


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_says_that_python_is_too_old(tmp_path: Path, sealed: dict[str, str]):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("make", "bash", "sh", "git", "test", "echo"):
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(found)
    old = folder / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    shutil.copy(TOP / "Makefile", tmp_path / "Makefile")
    (tmp_path / "pyproject.toml").touch()
    done = subprocess.run(
        ["make", "test"], cwd=tmp_path, env=sealed | {"PATH": str(folder)}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Python 3.11 or later" in done.stderr
