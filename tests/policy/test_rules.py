"""Narrowing: a table for every field and every pair, and that no layer ever widens another."""

import itertools

import pytest
from exeora_ws.errors import InvalidArguments
from exeora_ws.policy.commands import judge_command, matches
from exeora_ws.policy.layer import parse_layer
from exeora_ws.policy.rules import OPEN, Mode, Origin, Policy, narrow, narrow_all, parse_rule
from hypothesis import given, settings
from hypothesis import strategies as st

MODES = list(Mode)


def policy(origin: Origin = Origin.PROJECT, **keys) -> Policy:
    layer = parse_layer(keys, origin, str)
    assert not layer.policy.faults
    return layer.policy


def texts(rules) -> set[str] | None:
    return None if rules is None else {" ".join((*rule.words, *("*" if rule.star else ""))) for rule in rules}


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(MODES, MODES)))
def test_the_stricter_mode_wins(outer: Mode, inner: Mode):
    result = narrow(policy(mode=outer), policy(mode=inner))
    assert result.mode == MODES[max(MODES.index(outer), MODES.index(inner))]


@pytest.mark.parametrize(
    ("outer", "inner", "result"),
    [
        (None, None, None),
        (None, [], set()),
        (None, ["git"], {"git *"}),
        ([], ["git"], set()),
        (["git"], ["git"], {"git *"}),
        (["git"], ["npm"], set()),
        (["git"], ["git status"], {"git status"}),
        (["git status"], ["git"], {"git status"}),
        (["git *"], ["git status *"], {"git status *"}),
        (["git status"], ["git status"], {"git status"}),
        (["git status"], ["git status *"], {"git status"}),
        (["git status"], ["git log"], set()),
        (["git status *"], ["git log *"], set()),
        (["*"], ["git", "npm test"], {"git *", "npm test"}),
        (["git", "npm"], ["npm test", "git status", "make"], {"npm test", "git status"}),
        (["git status", "git log"], ["git"], {"git status", "git log"}),
        (["/usr/bin/git"], ["git"], {"git *"}),
    ],
)
def test_allow_lists_intersect_rule_by_rule(outer, inner, result):
    layers = [OPEN if rules is None else policy(mode="allow_list", allow=rules) for rules in (outer, inner)]
    assert texts(narrow(*layers).allow) == result
    assert texts(narrow(*reversed(layers)).allow) == result


@pytest.mark.parametrize(
    ("outer", "inner", "result"),
    [
        ([], [], []),
        (["a"], [], ["a"]),
        ([], ["a"], ["a"]),
        (["a"], ["b"], ["a", "b"]),
        (["a", "b"], ["b *"], ["a", "b"]),
    ],
)
def test_deny_lists_unite(outer, inner, result):
    assert [rule.text for rule in narrow(policy(deny=outer), policy(deny=inner)).deny] == result


@pytest.mark.parametrize(
    ("outer", "inner", "result"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)]
    + [(None, value, value) for value in (True, False)]
    + [(value, None, value) for value in (True, False)],
)
def test_shell_needs_both(outer, inner, result):
    layers = [policy(**({} if value is None else {"shell": value})) for value in (outer, inner)]
    assert narrow(*layers).shell is result


@pytest.mark.parametrize(
    ("keys", "shell"),
    [
        ({}, True),
        ({"approve": True}, True),
        ({"tools": ["grep"]}, True),
        ({"deny": []}, True),
        ({"deny": ["x"]}, False),
        ({"mode": "allow_list"}, False),
        ({"allow": ["x"]}, False),
        ({"deny": ["x"], "shell": True}, True),
    ],
)
def test_a_layer_that_says_nothing_about_shell_syntax_refuses_it_only_with_a_list(keys, shell):
    assert policy(**keys).shell is shell


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product([True, False, None], repeat=2)))
def test_approve_needs_either(outer, inner):
    layers = [policy(**({} if value is None else {"approve": value})) for value in (outer, inner)]
    assert narrow(*layers).approve is bool(outer or inner)


@pytest.mark.parametrize(
    ("outer", "inner", "result"),
    [
        (None, None, None),
        (None, ["a"], {"a"}),
        (["a"], None, {"a"}),
        (["a", "b"], ["b", "c"], {"b"}),
        (["a"], ["b"], set()),
        ([], ["a"], set()),
    ],
)
def test_tools_intersect(outer, inner, result):
    layers = [policy(**({} if value is None else {"tools": value})) for value in (outer, inner)]
    assert narrow(*layers).tools == result


def test_a_fault_of_any_layer_closes_the_whole():
    broken = parse_layer({"mode": "open"}, Origin.WORKSPACE, lambda key: "line 1").policy
    result = narrow_all([policy(allow=["git"]), broken])
    assert (result.mode, texts(result.allow), len(result.faults)) == (Mode.READ_ONLY, set(), 1)


def test_origins_name_the_layer_that_decided():
    outer = policy(Origin.USER, mode="allow_list", allow=["git"], approve=True)
    inner = policy(Origin.PROJECT, mode="read_only", allow=["git status"], tools=["grep"])
    result = narrow(outer, inner)
    assert result.origin_of("mode") is Origin.PROJECT
    assert result.origin_of("approve") is Origin.USER
    assert result.origin_of("tools") is Origin.PROJECT
    assert result.origin_of("shell") is Origin.USER
    assert [rule.origin for rule in result.allow] == [Origin.PROJECT]
    assert narrow(OPEN, OPEN).origin_of("mode") is Origin.DEFAULT


WORDS = ["git", "status", "push", "npm", "run", "x"]
RULES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).flatmap(
    lambda words: st.sampled_from([" ".join(words), " ".join(words) + " *"])
) | st.just("*")
LISTS = st.lists(RULES, max_size=4)
LAYERS = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from([str(mode) for mode in Mode]),
        "allow": LISTS,
        "deny": LISTS,
        "shell": st.booleans(),
        "approve": st.booleans(),
        "tools": st.lists(st.sampled_from(["a", "b", "c"])),
    },
)
PLAIN = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
COMMANDS = st.one_of(
    PLAIN,
    PLAIN.map("timeout 5 {}".format),
    PLAIN.map("sudo {}".format),
    PLAIN.map("sh -c '{}'".format),
    st.tuples(PLAIN, PLAIN).map(" && ".join),
    PLAIN.map("{} $X".format),
)


@settings(max_examples=200, deadline=None)
@given(outer=LAYERS, inner=LAYERS, command=COMMANDS)
def test_narrowing_never_widens(outer, inner, command):
    layers = (policy(**outer), policy(**inner))
    result = narrow(*layers)
    for layer in layers:
        assert MODES.index(result.mode) >= MODES.index(layer.mode)
        assert result.approve or not layer.approve
        assert layer.tools is None or (result.tools is not None and result.tools <= layer.tools)
        assert set(result.deny) >= set(layer.deny)
        if judge_command(result, command).reason is None:
            assert judge_command(layer, command).reason is None


@settings(max_examples=200, deadline=None)
@given(outer=LISTS, inner=LISTS, words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
def test_the_intersection_is_exact(outer, inner, words):
    result = narrow(policy(mode="allow_list", allow=outer), policy(mode="allow_list", allow=inner)).allow
    both = all(any(matches(parse_rule(text), words) for text in side) for side in (outer, inner))
    assert any(matches(rule, words) for rule in result) is both


@given(layer=LAYERS)
def test_no_policy_narrows_nothing(layer):
    own = policy(**layer)
    assert narrow(OPEN, own) == narrow(own, OPEN)
    assert set(narrow(OPEN, own).allow or ()) == set(own.allow or ())


@given(a=LAYERS, b=LAYERS, c=LAYERS)
def test_the_order_of_layers_changes_nothing_that_counts(a, b, c):
    one, two, three = policy(**a), policy(**b), policy(**c)

    def facts(p: Policy):
        return (p.mode, p.shell, p.approve, p.tools, set(p.deny), None if p.allow is None else set(p.allow))

    assert facts(narrow(narrow(one, two), three)) == facts(narrow(one, narrow(two, three)))
    assert facts(narrow(one, two)) == facts(narrow(two, one))


@pytest.mark.parametrize("text", ["", "   ", "'", '"git', "git '", '""', "'' x"])
def test_a_rule_that_says_nothing_is_refused(text: str):
    with pytest.raises(InvalidArguments) as caught:
        parse_rule(text)
    assert caught.value.reason == "invalid_rule"


@pytest.mark.parametrize(
    ("text", "words", "star"),
    [
        ("git", ("git",), True),
        ("git *", ("git",), True),
        ("git status", ("git", "status"), False),
        ("git status *", ("git", "status"), True),
        ("git commit -m 'a b'", ("git", "commit", "-m", "a b"), False),
        ("/usr/bin/git  status", ("git", "status"), False),
        ("*", (), True),
        ("git * main", ("git", "*", "main"), False),
        ("npm-*", ("npm-*",), True),
    ],
)
def test_how_a_rule_is_read(text: str, words: tuple[str, ...], star: bool):
    rule = parse_rule(text)
    assert (rule.words, rule.star, rule.text) == (words, star, text)
