"""Writing `exeora.toml`: what was there stays, comments too."""

import tomllib

import pytest
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.policy.document import PolicyDraft, compose_document
from exeora_ws.policy.layer import parse_policy_file
from exeora_ws.policy.rules import Mode, Origin
from hypothesis import given
from hypothesis import strategies as st

FILE = """\
# ours since 2019
mode = "read_only" # until the audit is over
allow = [ # agreed on
  "git", # of course
  "npm", # hm
]

[workspace] # made ready by ours
copy = [".env"]

[mcp.servers.github]
enabled = false
"""


def test_a_new_file_says_what_it_was_told_and_reads_back():
    draft = PolicyDraft(Mode.ALLOW_LIST, ["git", "npm run *"], ["sudo"], shell=True, approve=False, tools=["grep"])
    text = compose_document(None, draft)
    assert tomllib.loads(text) == {
        "mode": "allow_list",
        "allow": ["git", "npm run *"],
        "deny": ["sudo"],
        "shell": True,
        "approve": False,
        "tools": ["grep"],
    }
    layer = parse_policy_file(text, Origin.PROJECT)
    assert (layer.warnings, layer.policy.faults) == ((), ())
    assert text.startswith("#")


def test_a_new_file_without_wishes_allows_all():
    assert tomllib.loads(compose_document(None, PolicyDraft())) == {"mode": "allow_all"}


def test_new_keys_go_in_front_of_the_tables_and_every_comment_stays():
    text = compose_document(FILE, PolicyDraft(deny=["sudo"], approve=True))
    assert tomllib.loads(text) == tomllib.loads(FILE) | {"deny": ["sudo"], "approve": True}
    for comment in (line[line.index("#") :] for line in FILE.splitlines() if "#" in line):
        assert comment in text


def test_a_key_that_says_something_else_needs_force():
    with pytest.raises(InvalidArguments) as caught:
        compose_document(FILE, PolicyDraft(mode=Mode.ALLOW_ALL, allow=["git"], deny=["x"]))
    assert caught.value.reason == "policy_exists"
    assert "mode" in caught.value.message
    assert "allow" in caught.value.message
    assert "--force" in caught.value.hint


def test_force_changes_these_keys_and_nothing_else():
    text = compose_document(FILE, PolicyDraft(mode=Mode.ALLOW_LIST, allow=["git", "make"]), force=True)
    assert tomllib.loads(text) == tomllib.loads(FILE) | {"mode": "allow_list", "allow": ["git", "make"]}
    for comment in (
        "# ours since 2019",
        "# until the audit is over",
        "# agreed on",
        "# of course",
        "# made ready by ours",
    ):
        assert comment in text


def test_what_is_said_already_changes_no_byte():
    same = PolicyDraft(mode=Mode.READ_ONLY, allow=["npm", "git"])
    assert compose_document(FILE, same) == FILE
    assert compose_document(FILE, PolicyDraft()) == FILE
    assert compose_document("", PolicyDraft()) == ""


def test_a_file_that_is_not_toml_is_not_touched():
    with pytest.raises(ToolFailed) as caught:
        compose_document('mode = "allow_all"\nallow = [\n', PolicyDraft(mode=Mode.READ_ONLY), force=True)
    assert caught.value.reason == "policy_invalid"
    assert "line" in caught.value.message


def test_a_rule_that_says_nothing_is_not_written():
    with pytest.raises(InvalidArguments) as caught:
        compose_document(None, PolicyDraft(deny=["git '"]))
    assert caught.value.reason == "invalid_rule"


def test_true_is_not_one():
    assert "shell = true" in compose_document("shell = 1\n", PolicyDraft(shell=True), force=True)


@given(
    allow=st.lists(
        st.text("abc \"'\\#é\n\t*", min_size=1).map(lambda t: "x" + t.replace("'", "").replace('"', "")), max_size=3
    ),
    mode=st.sampled_from(list(Mode)),
    existing=st.sampled_from([None, "", FILE, "[workspace]\n", "# only a comment", "allow = []\n"]),
)
def test_what_is_written_is_what_is_read(allow, mode, existing):
    allow = [rule for rule in dict.fromkeys(allow) if not rule.endswith("\\")]
    text = compose_document(existing, PolicyDraft(mode=mode, allow=allow), force=True)
    document = tomllib.loads(text)
    assert (document["mode"], sorted(document["allow"])) == (mode, sorted(allow))
    assert document.get("workspace") == tomllib.loads(existing or "").get("workspace")
