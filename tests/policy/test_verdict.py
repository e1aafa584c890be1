"""What the policy says to a call: hidden tools, read only, commands, upstream tools, and when a person is asked."""

import pytest
from exeora_ws.errors import Code
from exeora_ws.limits import APPROVAL_PREVIEW_CHARACTERS
from exeora_ws.policy.layer import parse_layer, parse_policy_file
from exeora_ws.policy.question import make_question, make_visible
from exeora_ws.policy.request import Request, Upstream
from exeora_ws.policy.rules import OPEN, Origin, Policy
from exeora_ws.policy.verdict import REASONS, Allowed, MustAsk, Refused, explain, judge, permitted_tools
from hypothesis import given
from hypothesis import strategies as st

TOOLS = (("read_file", True), ("grep", True), ("write_file", False), ("run_command", False))


def policy(**keys) -> Policy:
    return parse_layer(keys, Origin.PROJECT, str).policy


def request(tool: str = "write_file", read_only: bool = False, **changes) -> Request:
    facts = {
        "project_id": "prj_1",
        "project": "app",
        "workspace_id": "wsp_1",
        "workspace": "feature",
        "arguments": {"path": "a", "content": "b"},
        "face": "stdio",
        "client": "test",
        "session": "s",
    }
    return Request(tool=tool, read_only=read_only, **(facts | changes))


def run(command: str, **changes) -> Request:
    return request("run_command", arguments={"command": command}, command=command, **changes)


UPSTREAM = {"upstream": Upstream("github", "create_issue")}


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ({}, {"read_file", "grep", "write_file", "run_command"}),
        ({"mode": "read_only"}, {"read_file", "grep"}),
        ({"tools": ["grep", "run_command", "unheard_of"]}, {"grep", "run_command"}),
        ({"tools": ["grep", "run_command"], "mode": "read_only"}, {"grep"}),
        ({"tools": []}, set()),
        ({"mode": "allow_list"}, {"read_file", "grep", "write_file", "run_command"}),
    ],
)
def test_which_tools_are_on_offer(keys, names):
    assert permitted_tools(policy(**keys), TOOLS) == names


def test_a_call_to_a_hidden_tool_is_forbidden_and_lists_what_is_permitted():
    refused = judge(policy(tools=["grep", "read_file"]), request(), TOOLS)
    assert isinstance(refused, Refused)
    error = refused.error().to_dict()
    assert (error["code"], error["reason"]) == (Code.FORBIDDEN, "tool_not_permitted")
    assert error["data"] == {"permitted": ["grep", "read_file"]}
    assert "grep, read_file" in error["hint"]


def test_a_read_only_project_refuses_what_is_not_read_only():
    refused = judge(policy(mode="read_only"), request(), TOOLS)
    assert (refused.reason, refused.permitted, refused.origin) == ("read_only", ("grep", "read_file"), Origin.PROJECT)
    assert judge(policy(mode="read_only"), request("grep", read_only=True), TOOLS) == Allowed()


def test_a_policy_that_cannot_be_understood_says_so_and_still_lets_reads_through():
    broken = parse_policy_file("mode = 1\n", Origin.PROJECT).policy
    refused = judge(broken, request(), TOOLS)
    assert refused.reason == "policy_invalid"
    assert "line 1" in refused.message
    assert judge(broken, request("grep", read_only=True)) == Allowed()


@pytest.mark.parametrize(
    ("keys", "command", "reason"),
    [
        ({"deny": ["sudo"]}, "sudo ls", "denied"),
        ({"deny": ["sudo"]}, "ls; ls", "shell_syntax"),
        ({"allow": ["git"]}, "ls", "not_allowed"),
        ({"allow": ["git"], "shell": True}, "$X", "command_unclear"),
    ],
)
@pytest.mark.parametrize("tool", ["run_command", "start_command", "exec"])
def test_every_tool_that_runs_a_command_obeys_the_same_lists(tool: str, keys, command: str, reason: str):
    refused = judge(policy(**keys), request(tool, command=command, arguments={"command": command}))
    assert refused.reason == reason
    assert refused.origin is Origin.PROJECT
    assert refused.hint


def test_upstream_tools_know_only_read_only_and_approve():
    strict = policy(tools=["grep"], allow=["git"], deny=["create_issue"])
    assert judge(strict, request("mcp__github__create_issue", **UPSTREAM)) == Allowed()
    assert judge(policy(mode="read_only"), request("x", **UPSTREAM)).reason == "read_only"
    assert judge(policy(mode="read_only"), request("x", read_only=True, **UPSTREAM)) == Allowed()
    asked = judge(policy(approve=True), request("mcp__github__create_issue", **UPSTREAM))
    assert "create_issue of MCP server github" in asked.question.text
    assert judge(policy(approve=True), request("x", read_only=True, **UPSTREAM)) == Allowed()


def test_reads_are_never_asked_about_and_the_rest_always_is():
    assert judge(policy(approve=True), request("grep", read_only=True)) == Allowed()
    assert isinstance(judge(policy(approve=True), request()), MustAsk)
    assert judge(OPEN, request()) == Allowed()
    assert judge(policy(approve=True, deny=["sudo"]), run("sudo ls")).reason == "denied"


def test_the_question_names_project_workspace_tool_and_arguments():
    text = make_question(run("rm -rf build")).text
    for part in ("run_command", "feature", "app", '{"command": "rm -rf build"}', "test"):
        assert part in text


def test_the_preview_is_cut_and_says_so():
    question = make_question(request(arguments={"content": "x" * 5_000}))
    assert len(question.preview) == APPROVAL_PREVIEW_CHARACTERS
    assert question.omitted == 5_000 + len('{"content": ""}') - APPROVAL_PREVIEW_CHARACTERS
    assert f"{question.omitted} characters more" in question.text
    assert make_question(request()).omitted == 0


@given(st.text())
def test_nothing_in_a_question_acts_on_a_terminal(text: str):
    question = make_question(request(arguments={"x": text}, workspace=text, client=text))
    assert all(c.isprintable() or c in "\n " or c.isspace() for c in question.text)
    assert question.text.count("\n") == 1 + bool(question.omitted)


def test_control_characters_are_made_visible():
    assert make_visible("a\x1b[2Jb\u202ec\u200bd\r\n") == "a\\u001b[2Jb\\u202ec\\u200bd\\u000d\\u000a"
    assert make_visible("é ☃ 日本") == "é ☃ 日本"


@pytest.mark.parametrize(
    "changes",
    [
        {"project_id": "prj_2"},
        {"workspace_id": "wsp_2"},
        {"tool": "edit_file"},
        {"arguments": {"path": "a", "content": "c"}},
        {"arguments": {"path": "a"}},
        {"arguments": {"path": "a", "content": ["b"]}},
        {"upstream": Upstream("a", "b")},
        {"command": "ls"},
    ],
)
def test_the_fingerprint_changes_with_everything_that_an_approval_binds(changes):
    assert request(**changes).fingerprint != request().fingerprint


def test_the_fingerprint_knows_no_order_and_no_session():
    same = request(arguments={"content": "b", "path": "a"}, session="t", client="u", face="http")
    assert same.fingerprint == request().fingerprint
    assert request(arguments={"x": "\ud800"}).fingerprint


def test_explain_names_the_rule_and_where_it_came_from():
    found = explain(policy(allow=["git status"], deny=["sudo"], shell=True), "ls; sudo x")
    assert (found.allowed, found.reason, found.rules[0].text) == (False, "denied", "sudo")
    assert found.origin is Origin.PROJECT
    found = explain(policy(allow=["git status"], approve=True), "git status")
    assert (found.allowed, found.asks, found.rules[0].text) == (True, True, "git status")
    assert explain(OPEN, "rm -rf /").text == "no list is in force"
    assert explain(policy(mode="read_only"), "ls").reason == "read_only"
    assert explain(parse_policy_file("x", Origin.PROJECT).policy, "ls").reason == "policy_invalid"


def test_each_reason_has_its_meaning():
    for reason in ("policy_invalid", "read_only", "tool_not_permitted", "denied", "shell_syntax", "not_allowed"):
        assert REASONS[reason]


def test_arguments_do_not_show_in_a_representation():
    assert "secret" not in repr(request(arguments={"content": "secret"}, command="secret"))
