"""The wrappers of shell-init in real shells: they go where they are told, and evaluate nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.commandline import CommandLine, child_environment
from support.repositories import git
from support.shells import install, run_shell

SHELLS = ("bash", "zsh", "fish")
INIT = {shell: f'eval "$(command exeora shell-init {shell})"' for shell in ("bash", "zsh")} | {
    "fish": "command exeora shell-init fish | source"
}
STATUS = {"bash": "$?", "zsh": "$?", "fish": "$status"}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture
def environment(tmp_path: Path, sealed: dict[str, str]) -> dict[str, str]:
    return install(tmp_path / "bin", sealed)


def run(shell: str, environment: dict[str, str], folder: Path, *lines: str) -> list[str]:
    """Run lines after the wrapper was loaded; gives what they printed on stdout."""
    done = run_shell(shell, "\n".join((INIT[shell], *lines)), folder, environment)
    assert "syntax error" not in done.stderr, done.stderr
    assert list(Path(environment["TMPDIR"]).glob("exeora.*")) == []
    return done.stdout.splitlines()


def test_switch_moves_the_shell_there_and_back(shell: str, environment, repository: Path, feature: Path):
    out = run(shell, environment, repository, "exeora switch feat/x", "pwd", "exeora switch -", "pwd")
    assert out == [str(feature), str(repository)]


def test_create_and_switch_at_once(shell: str, environment, repository: Path, exeora: CommandLine):
    out = run(
        shell, environment, repository, "exeora create new --switch", "pwd", "exeora path", "exeora switch -", "pwd"
    )
    assert out[0] == out[1]
    assert Path(out[0]).name == "new"
    assert out[2] == str(repository)


def test_removing_where_the_shell_stands_takes_it_to_main(shell: str, environment, repository: Path, feature: Path):
    out = run(
        shell,
        environment,
        repository,
        "exeora switch feat-x",
        "exeora remove feat-x",
        "pwd",
        "exeora path",
        "git status -s",
    )
    assert out == ["removed feat-x", str(repository), str(repository)]


def test_renaming_where_the_shell_stands_moves_it_along(shell: str, environment, repository: Path, feature: Path):
    out = run(shell, environment, repository, "exeora switch feat-x", "exeora rename @ better", "pwd")
    assert out[-1] == str(feature.with_name("better"))


def test_pruning_where_the_shell_stands_takes_it_to_main(shell: str, environment, repository: Path, feature: Path):
    git(feature, "commit", "-q", "--allow-empty", "-m", "work")
    git(repository, "merge", "-q", "feat/x")
    out = run(shell, environment, feature, "exeora prune --merged --min-age 0", "pwd")
    assert out[-1] == str(repository)


def test_codes_streams_and_odd_arguments_pass_through(shell: str, environment, repository: Path, feature: Path):
    out = run(
        shell,
        environment,
        repository,
        "exeora switch nowhere",
        f"echo {STATUS[shell]}",
        "exeora switch 'a b; touch evil' 2>/dev/null",
        f"echo {STATUS[shell]}",
        "pwd",
        "exeora list --fast | grep -c feat-x",
    )
    assert out == ["1", "1", str(repository), "1"]
    assert not (repository / "evil").exists()


def test_a_folder_with_an_odd_name_is_only_a_name(shell: str, environment, repository: Path, tmp_path: Path, exeora):
    odd = tmp_path / "a $(touch evil) 'b' \"c\"; `touch evil` -n\nline"
    git(repository, "worktree", "add", "-q", "-b", "odd", str(odd))
    assert exeora.inline("attach", str(odd)).code == 0
    out = run(shell, environment, repository, "exeora switch odd", "pwd -P" if shell != "fish" else "command pwd -P")
    assert "\n".join(out) == str(odd)
    assert not (repository / "evil").exists()
    assert not (odd / "evil").exists()


def test_without_a_wrapper_the_path_is_printed_and_the_way_said(exeora: CommandLine, feature: Path):
    done = exeora("switch", "feat-x")
    assert (done.code, done.out) == (0, f"{feature}\n")
    assert "shell-init" in done.err
    document = exeora("switch", "main", "--json").document
    assert (document["workspace"], document["directed"]) == ("main", False)


def test_a_directive_file_that_is_no_file_of_ours_is_not_written(exeora: CommandLine, feature: Path, tmp_path: Path):
    target = tmp_path / "target"
    target.write_text("mine")
    os.symlink(target, tmp_path / "link")
    done = exeora("switch", "feat-x", EXEORA_DIRECTIVE_FILE=str(tmp_path / "link"))
    assert done.out == f"{feature}\n"
    assert target.read_text() == "mine"
    os.mkfifo(tmp_path / "pipe")
    assert exeora("switch", "feat-x", EXEORA_DIRECTIVE_FILE=str(tmp_path / "pipe")).code == 0


def test_an_unknown_shell_is_a_usage_error(exeora: CommandLine):
    assert exeora.inline("shell-init", "tcsh").code == 2
    assert "function exeora" in exeora.inline("shell-init", "powershell").out


def test_the_picker_takes_a_number_or_a_part_of_a_name(exeora: CommandLine, feature: Path):
    assert exeora("switch", stdin="2\n").out == f"{feature}\n"
    assert exeora("switch", stdin="9\nftx\n").out == f"{feature}\n"
    shown = exeora("switch", stdin="zzz\nfeat-x\n")
    assert shown.out == f"{feature}\n"
    assert "1)  main" in shown.err
    assert "nothing fits 'zzz'" in shown.err
    none = exeora("switch", stdin="")
    assert (none.code, none.out) == (2, "")


def test_the_hot_switch_does_what_the_slow_one_does(exeora: CommandLine, feature: Path, tmp_path: Path, monkeypatch):
    told = tmp_path / "told"
    monkeypatch.setenv("EXEORA_DIRECTIVE_FILE", str(told))
    previous = Path(exeora.environment["XDG_DATA_HOME"]) / "exeora/previous"

    def switch(selector: str, *, folder: Path, slow: bool) -> tuple[object, ...]:
        told.write_text("")
        done = exeora.inline("switch", selector, folder=folder, slow=slow)
        remembered = {p.name: p.read_text() for p in previous.iterdir()} if previous.exists() else {}
        return done.code, done.out, done.err, told.read_text(), remembered

    first = switch("feat-x", folder=exeora.folder, slow=True)
    assert first[:2] == (0, "")
    assert first[3] == f"cd {feature}"
    for selector in ("feat-x", "feat/x", "main", "-"):
        for folder in (exeora.folder, feature):
            switch("main", folder=feature, slow=True)
            before = switch(selector, folder=folder, slow=True)
            switch("main", folder=feature, slow=True)
            assert switch(selector, folder=folder, slow=False) == before
    assert switch("nowhere", folder=feature, slow=False) == switch("nowhere", folder=feature, slow=True)


def test_the_hot_switch_imports_nothing_heavy(
    exeora: CommandLine, feature: Path, tmp_path: Path, sealed: dict[str, str]
):
    told = tmp_path / "told"
    told.write_text("")
    exeora("switch", "feat-x", EXEORA_DIRECTIVE_FILE=str(told))
    environment = child_environment(sealed) | {"EXEORA_DIRECTIVE_FILE": str(told)}
    probe = (
        "import sys; sys.argv[0] = 'exeora'\nfrom exeora_cli.main import main\ncode = main()\n"
        "print([m for m in ('typer', 're', 'pathlib', 'pygit2', 'dataclasses') if m in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", probe, "switch", "main"],
        cwd=feature,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert told.read_text() == f"cd {exeora.folder}"
