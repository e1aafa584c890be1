"""Nothing that a repository or a server writes acts on a person's terminal."""

from pathlib import Path

import pytest

from exeora_cli.render import show_tools
from support.commandline import COMMAND, CommandLine, child_environment
from support.screen import Screen

HOSTILE = "a\x1b]0;title\x07\x1b[2Jb\x9b31m"


@pytest.fixture
def hostile(exeora: CommandLine, feature: Path) -> Path:
    """A workspace whose changes, and the reason it is locked, would set the title and clear the screen."""
    (feature / "README.md").write_text(f"{HOSTILE}\n\ttab\n")
    assert exeora.inline("lock", "feat-x", "--reason", HOSTILE).code == 0
    return feature


@pytest.mark.parametrize("words", [("diff", "feat-x"), ("grep", "-w", "feat-x", "b"), ("list",), ("git-list",)])
def test_at_a_terminal_it_is_escaped(exeora: CommandLine, hostile: Path, words: tuple[str, ...]):
    environment = child_environment(exeora.environment) | {"TERM": "xterm", "NO_COLOR": "1"}
    screen = Screen([*COMMAND, *words], environment, exeora.folder)
    assert screen.end() == 0
    assert b"\\x1b]0;title\\x07\\x1b[2Jb\\x9b31m" in screen.sent
    assert not any(sequence in screen.sent for sequence in (b"\x1b]", b"\x1b[2J", b"\xc2\x9b"))


def test_a_pipe_gets_the_bytes(exeora: CommandLine, hostile: Path):
    assert f"+{HOSTILE}\n+\ttab\n" in exeora.inline("diff", "feat-x").out


def test_a_server_names_its_tools_in_plain_text():
    assert show_tools({"tools": [{"name": "x", "title": HOSTILE}]}).lines[0].isprintable()
