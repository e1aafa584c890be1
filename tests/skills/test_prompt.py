"""The agent prompt: every limit is the real one, every tool it names is one, and both forms say what must be said."""

import re

import pytest
from exeora_ws import limits
from exeora_ws.skills.prompt import agent_prompt, handshake_instructions
from exeora_ws.tools.guidance import GET_AGENT_PROMPT, GUIDANCE_TOOLS, LIST_SKILLS
from exeora_ws.tools.spec import Needs, Routing

TOOLS = [
    "read_file",
    "list_files",
    "grep",
    "edit_file",
    "write_file",
    "apply_patch",
    "list_git_workspaces",
    "create_workspace",
    "attach_workspace",
    "detach_workspace",
    "remove_workspace",
    "run_command",
    "start_command",
    "get_command_output",
    "send_command_input",
    "kill_command",
    "list_workspaces",
    "list_projects",
    "list_skills",
    "get_agent_prompt",
]


@pytest.mark.parametrize("account", [True, False, None])
def test_the_text_is_filled_in_and_names_only_tools_that_exist(account):
    text = agent_prompt(account=account)
    assert "{" not in text
    assert set(re.findall(r"`([a-z]+_[a-z_]+)`", text)) <= set(TOOLS)
    for code in ("FORBIDDEN", "APPROVAL_DECLINED", "APPROVAL_TIMEOUT"):
        assert code in text
    assert ("list_projects" in text) == (account is not False)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("READ_BYTES", 123_000, "123,000 bytes a read"),
        ("LIST_ENTRIES", 77, "77 entries"),
        ("GREP_MATCHES", 55, "55 matches"),
        ("RUN_OUTPUT_BYTES", 1_234, "1,234 bytes of output"),
        ("RUN_TIMEOUT_MAX_MS", 11_000, "11 s at most"),
        ("RUN_TIMEOUT_DEFAULT_MS", 7_000, "7 s by default"),
        ("LIVE_PROCESSES", 3, "At most 3 run"),
        ("PATCH_OPERATIONS", 19, "most 19 operations"),
        ("APPROVAL_WAIT_SECONDS", 31, "31 s"),
    ],
)
def test_a_limit_that_changes_changes_the_text(monkeypatch: pytest.MonkeyPatch, name: str, value: int, shown: str):
    monkeypatch.setattr(limits, name, value)
    assert shown in " ".join(agent_prompt().split())


def test_the_handshake_has_a_short_form():
    for account in (True, False):
        text = handshake_instructions(account=account)
        assert len(text) < 800
        assert "{" not in text
        assert ("list_projects" in text) is account
        for word in ("workspace", "FORBIDDEN", "get_agent_prompt"):
            assert word in text


def test_the_tools_are_read_only_and_routed_as_the_contract_says():
    assert [tool.name for tool in GUIDANCE_TOOLS] == ["list_skills", "get_agent_prompt"]
    assert all(tool.hints.read_only for tool in GUIDANCE_TOOLS)
    assert (LIST_SKILLS.routing, LIST_SKILLS.needs) == (Routing.OPTIONAL, Needs.CHECKOUT)
    assert (GET_AGENT_PROMPT.routing, GET_AGENT_PROMPT.needs) == (Routing.NONE, Needs.NOTHING)
    assert set(LIST_SKILLS.output_schema["properties"]) == {"skills", "problems"}
    assert LIST_SKILLS.output_schema["required"] == ["skills"]
    assert GET_AGENT_PROMPT.input_schema(account=True)["properties"] == {}
