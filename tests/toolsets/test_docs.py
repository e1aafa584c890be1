"""The page on toolsets says what the tests hold."""

import json
import re

from exeora_ws.toolsets.catalog import TOOLSETS
from exeora_ws.toolsets.engine.plan import load_plan

from support import toolset_rules


def test_the_table_is_made_of_the_tests():
    assert toolset_rules.TARGET.read_text() == toolset_rules.write_page(), "run `make docs`"


def test_every_test_file_of_a_toolset_is_in_the_table():
    files = {file.name for file in toolset_rules.TESTS.glob("test_*.py")}
    listed = {name for names in toolset_rules.FILES.values() for name in names}
    assert files - listed == {"test_docs.py", "test_by_clients.py"}


def test_every_tool_and_argument_is_on_the_page():
    text = toolset_rules.TARGET.read_text()
    for name in ("agentexec", "engine", "sandbox"):
        section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for tool in TOOLSETS[name]:
            assert f"`{tool.name}`" in section, tool.name
            row = next(line for line in section.split("\n") if line.startswith(f"| `{tool.name}`"))
            for argument in tool.arguments_schema["properties"]:
                assert f"`{argument}`" in row, (tool.name, argument)


def test_the_plan_on_the_page_is_one(tmp_path):
    text = toolset_rules.TARGET.read_text()
    (example,) = re.findall(r"```toml\n(rounds.*?)```", text, re.DOTALL)
    (tmp_path / "plan.toml").write_text(example)
    plan = load_plan(tmp_path / "plan.toml", None)
    assert json.dumps([file.path for file in plan.current.files])
