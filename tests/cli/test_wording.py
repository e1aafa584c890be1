"""The same error, said to a person at a shell: every next step is something that can be typed there."""

import ast
import re
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.tools.catalog import CATALOG

from exeora_cli.wording import COMMANDS, FIELDS, for_shell
from support.commandline import TOP, CommandLine
from support.repositories import git

ROOMS = ("workspaces", "git", "files", "processes", "policy", "tools", "skills")
_FIELDS_IN_TOOLS = {name for tool in CATALOG.values() for name in tool.input_schema(account=False)["properties"]}


def list_hints() -> list[tuple[str, str]]:
    """Every `hint=` that the core spells out, the parts that are worked out left empty."""
    found = []
    for room in ROOMS:
        for path in sorted((TOP / "exeora_ws" / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                for keyword in node.keywords if isinstance(node, ast.Call) else ():
                    if keyword.arg == "hint":
                        found += [(path.name, text) for text in _texts(keyword.value)]
    return found


def _texts(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(v.value if isinstance(v, ast.Constant) else "X" for v in node.values)]
    if isinstance(node, ast.IfExp):
        return _texts(node.body) + _texts(node.orelse)
    return []


def test_no_hint_of_the_core_leaves_a_person_with_a_tool_or_a_field():
    hints = list_hints()
    assert len(hints) > 80
    odd = {name for name in _FIELDS_IN_TOOLS | set(FIELDS) if not name.islower()} - {"nextCursor"}
    for where, hint in hints:
        said = for_shell(ToolFailed("no", hint=hint)).hint
        for name in (set(CATALOG) - {"grep"}) | {"tools/list"} | odd:
            assert re.search(rf"(?<![\w/-]){re.escape(name)}(?!\w)", said) is None, (where, said)
        assert re.search(r"\b(pass|with) (force|from|slug|name)\b", said) is None, (where, said)


def test_every_tool_has_its_command(exeora: CommandLine):
    from exeora_cli.program import build

    assert set(CATALOG) == set(COMMANDS) - {"tools/list"}
    program = build()
    for command in COMMANDS.values():
        _, first, *rest = command.split()
        assert first in program.commands
        assert not rest or rest[0] in program.commands[first].commands


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("remove", "feat-x"), "commit or discard them, or pass --force"),
        (("create", "feat/taken"), "pass --reuse to use it"),
        (("create", "nowhere", "--reuse"), "leave --reuse out to make it"),
        (("attach", "/nowhere"), "exeora git-list names those there are"),
        (("list", "--project", "nowhere"), "exeora project list names those there are"),
        (("read", "src"), "exeora ls shows what is in a folder"),
    ],
)
def test_errors_of_commands_say_what_to_type(exeora: CommandLine, feature: Path, words: tuple[str, ...], said: str):
    (feature / "new").touch()
    git(exeora.folder, "branch", "feat/taken")
    done = exeora.inline(*words)
    assert done.err.splitlines()[-1] == f"hint: {said}", done.err
    assert exeora.inline(*words, "--json").error["hint"] == said


def test_who_writes_a_tools_fields_is_answered_in_them(exeora: CommandLine, feature: Path):
    (feature / "new").touch()
    done = exeora.inline("call", "remove_workspace", '{"workspace": "feat-x"}')
    assert done.err.splitlines()[-1] == "hint: commit or discard them, or pass force"
    done = exeora.inline("call", "create_workspace", '{"branch": "z", "from": "nowhere"}')
    assert "from: 'nowhere'" in done.err


def test_a_field_in_front_of_a_message_is_an_option(exeora: CommandLine, feature: Path):
    assert "--from: 'nowhere' names no commit here" in exeora.inline("create", "z", "--from", "nowhere").err
    assert "--slug: " in exeora.inline("create", "z", "--slug", "NO!").err
