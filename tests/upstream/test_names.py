"""Published names: distinct, stable, within bounds, whatever servers call themselves and their tools."""

import random
import re

import pytest
from exeora_ws.upstream.names import MIN_BUDGET, publish_names
from hypothesis import given, settings
from hypothesis import strategies as st

from support.upstream_world import World, call, program, text_of

words = st.text(st.sampled_from("aA_-./é日 x"), min_size=1, max_size=8) | st.text(min_size=1, max_size=90)
tools = st.dictionaries(words, st.lists(words, unique=True, max_size=6), max_size=5)


def names(tools: dict[str, list[str]], budget: int = 64) -> dict[tuple[str, str], str]:
    return publish_names(tools, servers=tools, budget=budget)


@given(tools, st.integers(1, 100))
@settings(max_examples=120)
def test_names_are_distinct_and_within_bounds(tools: dict[str, list[str]], budget: int):
    published = names(tools, budget)
    assert published.keys() == {(server, tool) for server, found in tools.items() for tool in found}
    assert len(set(published.values())) == len(published)
    for name in published.values():
        assert re.fullmatch(r"mcp__[A-Za-z0-9_-]+", name)
        assert len(name) <= max(budget, MIN_BUDGET)


@given(tools, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_names_do_not_depend_on_order(tools: dict[str, list[str]], chance: random.Random):
    shuffled = list(tools.items())
    chance.shuffle(shuffled)
    other = {server: chance.sample(found, len(found)) for server, found in shuffled}
    assert names(other) == names(tools)


@given(tools)
@settings(max_examples=60)
def test_names_do_not_depend_on_which_servers_run(tools: dict[str, list[str]]):
    everything = names(tools)
    for server, found in tools.items():
        alone = publish_names({server: found}, servers=tools, budget=64)
        assert alone == {identity: name for identity, name in everything.items() if identity[0] == server}


def test_plain_names_stay_plain():
    assert names({"github": ["create_issue", "get.x"], "a-b": ["c"]}) == {
        ("github", "create_issue"): "mcp__github__create_issue",
        ("github", "get.x"): "mcp__github__get_x",
        ("a-b", "c"): "mcp__a-b__c",
    }


def test_what_would_collide_gets_a_hash_all_of_it():
    published = names({"s": ["get/x", "get.x", "get x", "get_x", "other"], "t": ["get_x"]})
    assert published["s", "other"] == "mcp__s__other"
    assert published["t", "get_x"] == "mcp__t__get_x"
    hashed = [published["s", tool] for tool in ("get/x", "get.x", "get x", "get_x")]
    assert len(set(hashed)) == 4
    assert all(re.fullmatch(r"mcp__s__get_x_[a-z2-7]{10}", name) for name in hashed)


def test_names_are_the_same_after_a_restart_for_ever():
    published = names({"s": ["get/x", "get.x", "create" + "_" * 80]})
    assert published == {
        ("s", "get/x"): "mcp__s__get_x_y6jt43422a",
        ("s", "get.x"): "mcp__s__get_x_subchkrkje",
        ("s", "create" + "_" * 80): "mcp__s__create_njxlt4q7uv",
    }


def test_a_server_whose_name_reads_as_another_with_a_tool():
    published = names({"a": ["b__c", "x"], "a__b": ["c"], "a_": ["y"], "a b": ["z"], "a.b": ["z"]})
    assert len(set(published.values())) == 6
    assert published["a__b", "c"] == "mcp__a__b__c"
    assert published["a", "x"] == "mcp__a__x"
    assert published["a", "b__c"].startswith("mcp__a__b__c_")


def test_a_tool_named_like_anothers_hash():
    (first, _) = names({"s": ["get.x", "get/x"]}).values()
    published = names({"s": ["get.x", "get/x", first.removeprefix("mcp__s__")]})
    assert len(set(published.values())) == 3
    assert published["s", "get.x"] == first


@pytest.mark.parametrize("budget", [64, 40, 30])
def test_tools_that_differ_late_are_never_swapped(world: World, budget: int):
    stem = "a_tool_with_a_very_long_name_that_only_differs_at_its_very_end_"
    own = [stem + "create", stem + "delete", "get/x", "get.x", "get x"]
    upstreams, project = world.serve({"s": program("similar", *own), "t": program("similar", "get_x")}, budget=budget)
    published = upstreams.tools(project.id)
    assert len(published) == 6
    for tool in published:
        assert text_of(call(upstreams, project, tool.name)) == tool.tool
    first = {(t.server, t.tool): t.name for t in published}
    upstreams.close()
    again, project = world.serve({"t": program("similar", "get_x"), "s": program("similar", *own[::-1])}, budget=budget)
    assert {(t.server, t.tool): t.name for t in again.tools(project.id)} == first
