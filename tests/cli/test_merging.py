"""merge offers to remove what it merged: asked at a terminal, said elsewhere, done with --remove."""

from pathlib import Path

import pytest

from support.commandline import COMMAND, CommandLine, child_environment
from support.repositories import commit_file, git
from support.screen import Screen


@pytest.fixture
def feature(feature: Path) -> Path:
    commit_file(feature, "a.txt", "a\n", "add a")
    commit_file(feature, "b.txt", "b\n", "add b")
    return feature


def at_terminal(exeora: CommandLine, *words: str, folder: Path | None = None, **more: str) -> Screen:
    environment = child_environment(exeora.environment) | {"TERM": "xterm"} | more
    return Screen([*COMMAND, *words], environment, folder or exeora.folder, columns=200)


def branches(exeora: CommandLine) -> list[str]:
    return git(exeora.folder, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def test_a_yes_removes_it_and_its_branch_and_the_shell_goes_to_main(exeora: CommandLine, feature: Path, tmp_path: Path):
    told = tmp_path / "told"
    told.touch()
    screen = at_terminal(exeora, "merge", "--squash", folder=feature, EXEORA_DIRECTIVE_FILE=str(told))
    shown = screen.wait_for("merged feat-x into main (2 commits)", "Remove it, and its branch? [y/N]")
    assert "exeora remove" not in shown
    screen.type("y\r")
    assert screen.end() == 0
    assert "branch 'feat/x' was deleted" in screen.main_text
    assert "removed feat-x" in screen.main_text
    assert not feature.exists()
    assert branches(exeora) == ["main"]
    assert told.read_text() == f"cd {exeora.folder}"
    assert exeora.inline("restore").code == 0
    assert (feature / "b.txt").exists()


@pytest.mark.parametrize("typed", ["\r", "n\r", "perhaps\r"])
def test_anything_else_keeps_it(exeora: CommandLine, feature: Path, typed: str):
    screen = at_terminal(exeora, "merge", "feat-x")
    screen.wait_for("[y/N]")
    screen.type(typed)
    assert screen.end() == 0
    assert feature.exists()
    assert branches(exeora) == ["feat/x", "main"]


def test_keep_asks_nothing_and_without_a_terminal_the_command_is_said(exeora: CommandLine, feature: Path):
    screen = at_terminal(exeora, "merge", "feat-x", "--keep")
    assert screen.end() == 0
    assert "[y/N]" not in screen.main_text
    commit_file(feature, "c.txt", "c\n")
    done = exeora("merge", "feat-x")
    assert done.code == 0
    assert done.err.endswith("exeora: done with it? exeora remove feat-x --delete-branch\n")
    assert feature.exists()


@pytest.mark.parametrize("how", ["--squash", "--rebase"])
def test_remove_needs_no_terminal_and_takes_the_branch_along(exeora: CommandLine, feature: Path, how: str):
    commit_file(exeora.folder, "main.txt", "main\n")
    document = exeora.inline("merge", "feat-x", how, "--remove", "--json").document
    assert (document["into"], document["kept"]) == ("main", None)
    assert (document["removal"]["removed"], document["removal"]["branchDeleted"]) == (True, True)
    assert not feature.exists()
    assert branches(exeora) == ["main"]
    assert git(exeora.folder, "show", "main:b.txt") == "b"


def test_json_asks_nobody_and_removes_nothing_by_itself(exeora: CommandLine, feature: Path):
    assert exeora.inline("merge", "feat-x", "--json").document["removal"] is None
    assert feature.exists()


def test_what_cannot_be_removed_is_merged_all_the_same(exeora: CommandLine, feature: Path):
    git(exeora.folder, "worktree", "lock", "--reason", "on a stick", str(feature))
    done = exeora.inline("merge", "feat-x", "--remove")
    assert done.code == 1
    assert done.out == "merged feat-x into main (2 commits)\n"
    assert "locked: on a stick" in done.err
    assert git(exeora.folder, "rev-parse", "main") == git(feature, "rev-parse", "HEAD")
