"""One layer: what a file says, and what happens when it says it wrong."""

import pytest
from exeora_ws.policy.commands import judge_command
from exeora_ws.policy.layer import parse_policy_file, parse_user_policy
from exeora_ws.policy.rules import OPEN, Mode, Origin
from exeora_ws.settings import Settings

FULL = """\
# who may do what
mode = "allow_list"
allow = ["git status", "npm"]
deny = ["sudo"]
shell = true
approve = true
tools = ["read_file", "run_command"]

[workspace]
copy = [".env"]

[mcp.servers.github]
enabled = false
"""


def read(text: str):
    return parse_policy_file(text, Origin.PROJECT)


def test_every_key_is_read_and_the_tables_of_others_are_left_alone():
    layer = read(FULL)
    policy = layer.policy
    assert layer.warnings == ()
    assert policy.mode is Mode.ALLOW_LIST
    assert [rule.text for rule in policy.allow] == ["git status", "npm"]
    assert [rule.text for rule in policy.deny] == ["sudo"]
    assert (policy.shell, policy.approve, policy.tools) == (True, True, {"read_file", "run_command"})


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "[workspace]\n"])
def test_a_file_without_policy_is_open(text: str):
    assert read(text).policy == OPEN


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mode = \n", 1),
        ('mode = "allow_all"\nallow = [\n', 3),
        ('mode = "allow_all"\nmode = "read_only"\n', 2),
        ("\n\n}\n", 3),
        ('mode = "open"\n', 1),
        ("# x\nmode = 3\n", 2),
        ('\nallow = "git"\n', 2),
        ("allow = [1]\n", 1),
        ("# a\n# b\ndeny = ['git \"']\n", 3),
        ('deny = [""]\n', 1),
        ('shell = "yes"\n', 1),
        ("approve = 1\n", 1),
        ('approve = true\n  tools = {"read_file" = true}\n', 2),
        ('mode = "read_only"\n"shell" = 0\n', 2),
        ("[[allow]]\nx = 1\n", 1),
        ('mode = "allow_list"\n[deny]\n', 2),
    ],
)
def test_a_file_that_cannot_be_understood_closes_to_read_only_and_names_the_line(text: str, line: int):
    policy = read(text).policy
    assert policy.mode is Mode.READ_ONLY
    assert policy.allow == ()
    (fault,) = policy.faults
    assert f"exeora.toml in the project root, line {line}:" in fault
    assert judge_command(policy, "ls").reason == "not_allowed"


def test_deep_nesting_closes_too():
    assert read("x = " + "[" * 5000 + "]" * 5000).policy.mode is Mode.READ_ONLY


def test_unknown_keys_are_warned_about_with_their_line():
    warnings = read('mode = "read_only"\ndenny = ["sudo"]\n\n[policy]\nmode = "x"\n').warnings
    assert [w.split(": ", 1) for w in warnings] == [
        ["exeora.toml in the project root, line 2", "unknown key 'denny'"],
        ["exeora.toml in the project root, line 4", "unknown key 'policy'"],
    ]


def test_a_list_that_is_not_in_force_and_a_star_that_means_nothing_are_warned_about():
    warnings = read('mode = "allow_all"\nallow = ["git"]\ndeny = ["rm * /", "git *"]\n').warnings
    assert len(warnings) == 2
    assert "not in force" in warnings[0]
    assert "'rm * /'" in warnings[1]


def test_an_allow_list_without_a_mode_brings_its_mode():
    assert read('allow = ["git"]\n').policy.mode is Mode.ALLOW_LIST
    assert read('mode = "allow_all"\nallow = ["git"]\n').policy.allow is None
    assert read('mode = "allow_list"\n').policy.allow == ()


def test_the_users_own_policy_has_the_same_keys_and_closes_the_same_way():
    assert parse_user_policy({"mode": "read_only"}).policy.mode is Mode.READ_ONLY
    assert parse_user_policy({}).policy == OPEN
    for wrong in ([], "read_only", None, 3):
        assert parse_user_policy(wrong).policy.mode is Mode.READ_ONLY
    (fault,) = parse_user_policy({"mode": "closed"}).policy.faults
    assert "config.json" in fault
    assert "'mode'" in fault
    assert parse_user_policy({"workspace": {}}).warnings


def test_a_policy_of_the_wrong_type_in_config_json_never_opens_a_project():
    for policies in ([], "read_only", {"app": "read_only"}, {"app": ["x"]}, {"app": None}):
        raw = Settings({"policies": policies}).project_policy("app")
        assert parse_user_policy(raw).policy.mode is Mode.READ_ONLY
    for document in ({}, {"policies": {}}, {"policies": {"other": {"mode": "read_only"}}}):
        assert parse_user_policy(Settings(document).project_policy("app")).policy == OPEN
