"""Choosing a workspace at a real terminal, as a person sees it on the screen; and the list that fills as it stands."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.commandline import COMMAND, CommandLine, child_environment
from support.repositories import git
from support.screen import Screen
from support.shells import install

DOWN, UP, ESCAPE, ENTER, CTRL_C, ERASE = "\x1b[B", "\x1b[A", "\x1b", "\r", "\x03", "\x7f"


@pytest.fixture
def workspaces(exeora: CommandLine) -> dict[str, Path]:
    made = {
        branch: exeora.inline("create", branch).out.strip() for branch in ("feature/login", "feature/logout", "fix")
    }
    return {branch: Path(path) for branch, path in made.items()}


def show(exeora: CommandLine, *words: str, columns: int = 120, rows: int = 30, **more: str) -> Screen:
    environment = child_environment(exeora.environment) | {"TERM": "xterm-256color"} | more
    return Screen([*COMMAND, *words], environment, exeora.folder, columns=columns, rows=rows)


def test_typing_narrows_and_enter_goes_there(exeora: CommandLine, workspaces: dict[str, Path], tmp_path: Path):
    told = tmp_path / "told"
    told.write_text("")
    screen = show(exeora, "switch", EXEORA_DIRECTIVE_FILE=str(told))
    shown = screen.wait_for("4 of 4", "> main", "(here)", "feature/logout")
    assert screen.alternate
    screen.type("flogo")
    shown = screen.wait_for("1 of 4", "> feature-logout", "on feature/logout", "base: main +0 -0")
    assert "feature-login" not in shown
    screen.type(ENTER)
    assert screen.end() == 0
    assert not screen.alternate
    assert screen.main_text == "exeora: now in workspace 'feature-logout'"
    assert told.read_text() == f"cd {workspaces['feature/logout']}"


def test_arrows_move_and_the_preview_follows(exeora: CommandLine, workspaces: dict[str, Path]):
    top = workspaces["fix"]
    (top / "README.md").write_text("changed\n")
    git(top, "commit", "-q", "--allow-empty", "-m", "Mend the lock")
    (top / "new file").touch()
    screen = show(exeora, "switch")
    screen.wait_for("4 of 4")
    screen.type(DOWN * 3)
    screen.wait_for("> fix", "!1 ?1", "! README.md", "? new file", "Mend the lock", "base: main +1 -0")
    screen.type(UP)
    screen.wait_for("> feature-logout", "clean", without="Mend the lock")
    screen.type("zzz")
    screen.wait_for("0 of 4", "nothing fits")
    screen.type(ENTER)
    screen.type(ERASE * 3)
    screen.wait_for("4 of 4", "> main")
    screen.type(ENTER)
    assert screen.end() == 0
    assert screen.main_text.replace("\n", "").endswith(str(exeora.folder))


@pytest.mark.parametrize(
    ("key", "code", "said"), [(ESCAPE, 2, "no workspace was chosen"), (CTRL_C, 130, ""), (signal.SIGTERM, 143, "")]
)
def test_leaving_it_leaves_the_terminal_as_it_was(
    exeora: CommandLine, workspaces: dict[str, Path], key: str | signal.Signals, code: int, said: str
):
    """Also where the terminal is a narrow one."""
    screen = show(exeora, "switch", columns=60)
    before = screen.read_settings()
    screen.wait_for("4 of 4", "clean")
    assert screen.read_settings() != before
    if isinstance(key, signal.Signals):
        screen.signal(key)
    else:
        screen.type(key)
    assert screen.end() == code
    assert screen.settings == before
    assert not screen.alternate
    assert said in screen.main_text
    assert screen.sent.count(b"\x1b[?25l") == 0 or screen.sent.rindex(b"\x1b[?25h") > screen.sent.rindex(b"\x1b[?25l")


def test_a_slow_preview_holds_up_no_key_and_ends_with_the_picker(
    exeora: CommandLine, workspaces: dict[str, Path], tmp_path: Path
):
    """`git status` never answers here; keys are answered, and no git is left when the picker has gone."""
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    slow = tmp_path / "slow/git"
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *" status "*) echo $$ >>{tmp_path}/asked; exec sleep 300;; esac\nexec {real} "$@"\n'
    )
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    screen = show(exeora, "switch", PATH=f"{slow.parent}{os.pathsep}{exeora.environment['PATH']}")
    screen.wait_for("> main", "looking")
    screen.wait_until((tmp_path / "asked").exists)
    for moved in ("feature-login", "feature-logout", "fix"):
        screen.type(DOWN)
        screen.wait_for(f"> {moved}", seconds=5)
    screen.type("logi")
    screen.wait_for("1 of 4", seconds=5)
    screen.type(ENTER)
    assert screen.end() == 0
    assert screen.main_text.replace("\n", "").endswith("feature-login")
    for pid in (tmp_path / "asked").read_text().split():
        assert not Path(f"/proc/{pid}").exists()


def test_a_dumb_terminal_gets_the_numbered_list(exeora: CommandLine, workspaces: dict[str, Path]):
    screen = show(exeora, "switch", TERM="dumb")
    screen.wait_for("1)  main", "number, or part of a name:")
    screen.type("2\r")
    assert screen.end() == 0
    assert b"\x1b" not in screen.sent


def test_no_color_is_obeyed_by_the_picker(exeora: CommandLine, workspaces: dict[str, Path]):
    (workspaces["fix"] / "new").touch()
    for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        screen = show(exeora, "switch", **more)
        screen.type("fix")
        screen.wait_for("? new")
        screen.type(ESCAPE)
        screen.end()
        assert (b"\x1b[0;36m" in screen.sent or b";36" in screen.sent) is coloured


def test_only_the_picker_imports_what_draws_it(exeora: CommandLine, feature: Path):
    probe = (
        "import sys; sys.argv = ['exeora', 'switch', 'feat-x']\nfrom exeora_cli.program import run\nrun(sys.argv[1:])\n"
        "print('prompt_toolkit' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=exeora.folder,
        env=child_environment(exeora.environment),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_a_list_at_a_terminal_is_there_at_once_and_fills(
    exeora: CommandLine, workspaces: dict[str, Path], tmp_path: Path
):
    """The state of one workspace is held back: its row waits, the others are there, and are not painted below."""
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    held = tmp_path / "held/git"
    held.parent.mkdir()
    os.mkfifo(tmp_path / "gate")
    held.write_text(
        f'#!/bin/sh\ncase "$*" in *workspaces/app/fix*" status "*) read -r _ <{tmp_path}/gate;; esac\n'
        f'exec {real} "$@"\n'
    )
    held.chmod(0o755)
    (workspaces["fix"] / "new").touch()
    screen = show(exeora, "list", PATH=f"{held.parent}{os.pathsep}{exeora.environment['PATH']}")
    shown = screen.wait_for("clean", "…")
    (waiting,) = [line for line in shown.splitlines() if "…" in line and "fix" in line] or [""]
    assert waiting, shown
    (tmp_path / "gate").write_text("go\n")
    assert screen.end() == 0
    lines = screen.main_text.splitlines()
    assert [line.split()[0] for line in lines] == ["WORKSPACE", "*", "feature-login", "feature-logout", "fix"]
    assert "?1" in lines[-1]
    assert b"\x1b[33m" in screen.sent


def test_a_list_longer_than_the_screen_is_shown_whole_at_last(exeora: CommandLine, workspaces: dict[str, Path]):
    screen = show(exeora, "list", rows=4, NO_COLOR="1")
    assert screen.end() == 0
    assert b"more" in screen.sent
    assert screen.sent.decode().split("\x1b[J")[-1].count("\n") == 5
    assert b"\x1b[3" not in screen.sent
    assert b"\x1b[1m" not in screen.sent


def test_a_piped_list_has_neither_colour_nor_painting(exeora: CommandLine, workspaces: dict[str, Path]):
    done = exeora("list", "--status", TERM="xterm-256color")
    assert "\x1b" not in done.out + done.err
    assert len(done.out.splitlines()) == 5


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_wrapper_of_a_real_shell_goes_where_the_picker_says(
    exeora: CommandLine, workspaces: dict[str, Path], tmp_path: Path, shell: str
):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    environment = install(tmp_path / "bin", exeora.environment) | {"TERM": "xterm-256color"}
    plain = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    start = "exeora shell-init fish | source" if shell == "fish" else f'eval "$(exeora shell-init {shell})"'
    script = f"{start}\nexeora switch\npwd >{tmp_path}/where\n"
    screen = Screen([shell, *plain, "-c", script], environment, exeora.folder)
    screen.wait_for("4 of 4")
    screen.type("logout" + ENTER)
    assert screen.end() == 0, screen.text
    assert (tmp_path / "where").read_text() == f"{workspaces['feature/logout']}\n"
