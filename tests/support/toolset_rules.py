"""Writes the table of rules at the end of docs/toolsets.md out of the tests that hold them: `make docs`."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1] / "toolsets"
TARGET = Path(__file__).parents[2] / "docs" / "toolsets.md"
MARK = "<!-- From here on written by `make docs` out of tests/toolsets. -->\n"
FILES = {
    "Toolsets together": ("test_catalog.py",),
    "agentexec": ("test_agentexec.py", "test_agentexec_served.py"),
    "engine": ("test_engine.py", "test_engine_turns.py"),
    "sandbox": ("test_sandbox.py",),
}


def list_rules(file: Path) -> list[tuple[str, str]]:
    """Each test of a file and the rule it holds, which is its docstring."""
    found = []
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            rule = ast.get_docstring(node)
            assert rule is not None, f"{file.name}: {node.name} does not say which rule it holds"
            found.append((node.name, " ".join(rule.split()).replace("|", "\\|")))
    return found


def write_rules() -> str:
    """The tables."""
    parts = [MARK, "\n## Every rule, and the test that holds it\n"]
    for title, files in FILES.items():
        for file in files:
            parts.append(f"\n### {title} ({file})\n\n| rule | test |\n|---|---|\n")
            parts += [f"| {rule} | `{name}` |\n" for name, rule in list_rules(TESTS / file)]
    return "".join(parts)


def write_page() -> str:
    """The page as it should be: what a person wrote, and the tables."""
    return TARGET.read_text().partition(MARK)[0] + write_rules()


if __name__ == "__main__":
    TARGET.write_text(write_page())
