"""The documents say what the code does."""

import re
from pathlib import Path

from support import tools_reference
from support.cli_reference import TARGET, write_reference
from support.commandline import TOP, CommandLine


def test_the_reference_is_made_of_the_commands():
    assert TARGET.read_text() == write_reference(), "run `make docs`"


def test_every_command_in_the_readme_exists():
    from exeora_cli.program import build

    commands = build().commands
    named = set(re.findall(r"\bexeora ([a-z][a-z-]+)", (TOP / "README.md").read_text()))
    assert {"create", "list", "path", "remove", "mcp"} <= named
    assert named <= set(commands), named - set(commands)


def test_the_json_documents_have_the_keys_that_the_reference_names(exeora: CommandLine, feature: Path):
    text = TARGET.read_text()
    for words in (("create", "y"), ("list",), ("git-list",), ("path", "y"), ("status",), ("remove", "y")):
        section = text.split(f"### {words[0]}\n")[1].split("###")[0].split("JSON: ")[1]
        document = exeora.inline(*words, "--json").document
        for key in set(document) - {"schema"}:
            assert f"`{key}" in section or f"{key}{{" in section or f"{key}[" in section, (words, key)


def test_the_page_of_tools_is_made_of_the_tools():
    assert tools_reference.TARGET.read_text() == tools_reference.write_reference(), "run `make docs`"


def test_every_reason_that_a_tool_gives_is_explained_once():
    from exeora_ws.tools.catalog import CATALOG

    for tool in CATALOG.values():
        section = tools_reference.TARGET.read_text().split(f"### {tool.name}\n")[1].split("\n### ")[0]
        for reason in tool.reasons:
            assert section.count(f"| `{reason}` |") == 1, (tool.name, reason)
