"""What a start imports: a command pays for what it uses, and for nothing else (docs/decisions/0011)."""

import subprocess
import sys
from pathlib import Path

import pytest
from exeora_ws.tools.catalog import CATALOG, FAMILIES

from support.commandline import TOP, child_environment
from support.repositories import RepositoryMaker

HEAVY = {
    "difflib",
    "httpx2",
    "mcp",
    "pathspec",
    "psutil",
    "pydantic",
    "pygit2",
    "tomlkit",
    "tree_sitter",
    "unidiff",
    "yaml",
}
OF_TYPER = {"difflib", "pydantic"}
"""Imported by typer itself, when a command runs."""
LATE = {
    "exeora_ws.files.patch",
    "exeora_ws.policy.commands",
    "exeora_ws.processes.supervisor",
    "exeora_ws.tools.files",
    "exeora_ws.tools.processes",
    "exeora_ws.tools.workspaces",
    "exeora_ws.toolsets",
    "exeora_ws.upstream",
    "exeora_ws.workspaces.create",
    "exeora_ws.workspaces.upkeep",
}


def list_imported(script: str, sealed: dict[str, str], folder: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys\nprint(*sys.modules, sep=chr(10), file=sys.stderr)"],
        env=child_environment(sealed),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_the_core_imports_nothing_heavy(sealed: dict[str, str]):
    imported = list_imported("import exeora_ws.app", sealed, TOP)
    assert imported & (HEAVY | LATE) == set()
    opened = list_imported("from exeora_ws.app import open_app; open_app()", sealed, TOP)
    assert opened & (HEAVY | LATE) == set()


def run(*words: str) -> str:
    return f"from exeora_cli.program import run; assert run({list(words)!r}) == 0"


@pytest.mark.parametrize(
    ("words", "used"),
    [
        (("ls",), {"exeora_ws.tools.files"}),
        (("read", "README.md"), {"exeora_ws.tools.files"}),
        (("write", "x.txt", "--content", "x"), {"exeora_ws.tools.files"}),
        (
            ("create", "feat"),
            {"exeora_ws.tools.workspaces", "exeora_ws.workspaces.create", "exeora_ws.workspaces.upkeep"},
        ),
        (("run", "--", "true"), {"exeora_ws.tools.processes", "exeora_ws.processes.supervisor"}),
        (("ps",), {"exeora_ws.tools.processes", "exeora_ws.processes.supervisor"}),
        (("prompt",), set()),
        (("logs",), set()),
        (("policy", "check"), set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_imports_what_it_uses(
    words: tuple[str, ...], used: set[str], make_repository: RepositoryMaker, sealed: dict[str, str]
):
    repository = make_repository()
    list_imported(run("project", "add", "."), sealed, repository)
    imported = list_imported(run(*words), sealed, repository)
    assert imported & (HEAVY | LATE) - OF_TYPER <= used


def test_the_catalog_knows_what_is_in_each_family():
    for family, names in FAMILIES.items():
        assert tuple(tool.name for tool in family()) == names
    assert list(CATALOG) == [name for names in FAMILIES.values() for name in names]
    assert len(CATALOG) == len(set(CATALOG))
    assert {name: tool.name for name, tool in CATALOG.items()} == {name: name for name in CATALOG}
    assert "no_such" not in CATALOG
    assert CATALOG.get("no_such") is None
