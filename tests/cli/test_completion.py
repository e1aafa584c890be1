"""Completion: the hot way gives what typer's own would give, and the scripts work in a real shell."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exeora_cli import hot_completion
from exeora_cli.snapshot import Unusual
from support.commandline import CommandLine, child_environment
from support.repositories import git


def question(shell: str, line: str) -> dict[str, str]:
    if shell == "bash":
        words = line.split(" ")
        asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    else:
        asked = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return {"_EXEORA_COMPLETE": f"complete_{shell}", **asked}


def ask(exeora: CommandLine, shell: str, line: str, *, slow: bool, folder: Path | None = None) -> str:
    """Give the answer of a process; with `slow`, of one whose inventory file is not found."""
    script = "import sys; sys.argv = ['exeora']; "
    script += (
        "from exeora_cli.program import run; sys.exit(run([]))" if slow else "from exeora_cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder or exeora.folder,
        env=child_environment(exeora.environment) | question(shell, line),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    "line",
    [
        "exeora path ",
        "exeora remove fe",
        "exeora -w feat/",
        "exeora --project app detach m",
        "exeora --project a",
        "exeora create ",
        "exeora create --reuse re",
        "exeora create x --from or",
        "exeora diff feat-x --stat --against re",
        "exeora --project app merge feat-x --squash --into ",
    ],
)
def test_the_hot_completion_is_the_slow_completion(
    exeora: CommandLine, feature: Path, monkeypatch, shell: str, line: str
):
    monkeypatch.chdir(exeora.folder)
    git(exeora.folder, "branch", "release/1.0")
    git(exeora.folder, "pack-refs", "--all")
    git(exeora.folder, "branch", "release/2.0")
    for name in ("main", "topic"):
        git(exeora.folder, "update-ref", f"refs/remotes/origin/{name}", "HEAD")
    git(exeora.folder, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    hot = hot_completion.complete({**os.environ, **question(shell, line)})
    assert hot == ask(exeora, shell, line, slow=True)
    assert hot.strip()
    if "--into" in line:
        assert "release/1.0" in hot
        assert "release/2.0" in hot
        assert "origin" not in hot
    if "--from" in line:
        assert "origin/topic" in hot
        assert "origin/HEAD" not in hot


@pytest.mark.parametrize(
    "line",
    [
        "exeora ",
        "exeora cre",
        "exeora path --",
        "exeora create nosuch",
        "exeora path main ",
        "exeora path 'fe",
        "exeora path nosuch",
    ],
)
def test_other_words_are_left_to_typer(exeora: CommandLine, feature: Path, monkeypatch, line: str):
    monkeypatch.chdir(exeora.folder)
    with pytest.raises(Unusual):
        hot_completion.complete({**os.environ, **question("bash", line)})


def test_commands_options_tools_and_settings_are_completed(exeora: CommandLine, feature: Path):
    assert ask(exeora, "bash", "exeora cre", slow=False).split() == ["create"]
    assert "--delete-branch" in ask(exeora, "bash", "exeora remove --", slow=False).split()
    assert ask(exeora, "bash", "exeora call list_g", slow=False).split() == ["list_git_workspaces"]
    assert ask(exeora, "bash", "exeora config get wor", slow=False).split() == ["worktree-root"]
    assert ask(exeora, "bash", "exeora completion ", slow=False).split() == ["bash", "zsh", "fish"]
    assert ask(exeora, "bash", "exeora create x -w fe", slow=False).split() == ["feat-x", "feat/x"]


def test_completion_outside_any_project_is_empty_and_silent(exeora: CommandLine, tmp_path: Path):
    assert ask(exeora, "bash", "exeora path ", slow=False, folder=tmp_path).strip() == ""


def test_the_hot_commands_are_those_that_take_a_workspace():
    from exeora_cli.program import build

    named = {
        name
        for name, command in build().commands.items()
        if any(p.param_type_name == "argument" and p.name == "workspace" for p in command.params)
    }
    assert named == hot_completion.WORKSPACE_COMMANDS


def test_the_hot_options_are_those_that_take_a_branch():
    from exeora_cli import completion
    from exeora_cli.program import build

    taking: dict[str, bool] = {}
    for command in build().commands.values():
        for parameter in command.params:
            complete = getattr(parameter, "_custom_shell_complete", None)
            names = getattr(complete, "__closure__", None) or ()
            called = {cell.cell_contents for cell in names if callable(cell.cell_contents)}
            for function, remotes in ((completion.complete_branch, True), (completion.complete_local_branch, False)):
                if function in called or any(function in _inner(each) for each in called):
                    taking |= {option: remotes for option in parameter.opts if option.startswith("-")}
    assert taking == hot_completion.BRANCH_OPTIONS


def _inner(function: object) -> set[object]:
    cells = getattr(function, "__closure__", None) or ()
    found = {cell.cell_contents for cell in cells if callable(cell.cell_contents)}
    return found | {getattr(function, "__wrapped__", None)}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_the_script_completes_in_a_real_bash(exeora: CommandLine, feature: Path, tmp_path: Path):
    program = tmp_path / "bin" / "exeora"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m exeora_cli.main "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(exeora completion bash)"; COMP_WORDS=(exeora path feat); COMP_CWORD=2; '
        '_exeora_completion exeora; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = child_environment(exeora.environment)
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=exeora.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["feat-x", "feat/x"], done.stderr


def test_an_unknown_shell_is_refused(exeora: CommandLine):
    done = exeora.inline("completion", "tcsh", "--json")
    assert (done.code, done.error["reason"]) == (2, "unknown_shell")
    for shell in ("zsh", "fish"):
        assert "_EXEORA_COMPLETE" in exeora.inline("completion", shell).out
