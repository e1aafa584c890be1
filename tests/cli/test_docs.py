"""The documents say what the code does."""

import ast
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


def test_every_reason_in_the_code_is_in_the_documents_and_the_other_way_round():
    in_code = {reason for path in SOURCES for reason in list_reasons(path.read_text())}
    assert len(in_code) > 200
    pages = {path.name: path.read_text() for path in (TOP / "docs").glob("*.md")}
    documented = set(re.findall(r"`([a-z0-9_]+)`", "".join(pages.values())))
    assert in_code <= documented, f"put them into docs/reasons.md: {sorted(in_code - documented)}"
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", pages["reasons.md"], re.MULTILINE)
    listed = [reason for row in rows for reason in re.findall(r"[a-z_]+", row)]
    assert len(listed) == len(set(listed)) > 100
    everything = "".join(path.read_text() for path in SOURCES)
    assert [reason for reason in listed if f'"{reason}"' not in everything] == []


SOURCES = [path for top in ("exeora_ws", "cli") for path in sorted((TOP / top).rglob("*.py"))]


def list_reasons(source: str) -> set[str]:
    """Every text that is given for `reason=`, also where one of several is chosen."""
    given = [
        keyword.value
        for node in ast.walk(ast.parse(source))
        for keyword in (node.keywords if isinstance(node, ast.Call) else ())
        if keyword.arg == "reason"
    ]
    texts = [each.value for value in given for each in ast.walk(value) if isinstance(each, ast.Constant)]
    return {text for text in texts if isinstance(text, str)}
