"""What is published of a list: faithful, complete, without what would spoil it for everybody."""

import json

import pytest
from exeora_ws.upstream.catalog import measure, publish_catalog
from exeora_ws.upstream.listing import MAX_PAGES, Listing, list_tools
from exeora_ws.upstream.peer import ProtocolError
from exeora_ws.upstream.server import Program, Server, Source

from support.upstream_world import World, call, program, text_of


def server(name: str = "s", *secrets: str) -> Server:
    return Server(name, Source.USER, Program("x"), frozenset(secrets))


def entry(name: str, **more) -> dict:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def publish(*tools: object, **more):
    return publish_catalog([(server(), Listing(tools))], servers=["s"], **more)


def test_an_entry_is_kept_as_its_server_wrote_it(world: World):
    upstreams, project = world.serve({"s": program("plain")})
    raw = upstreams.find(project.id, "mcp__s__rich").raw
    field = raw["inputSchema"]["properties"].pop("workspace")
    assert field["type"] == "string"
    assert raw == {
        "name": "mcp__s__rich",
        "description": "Test tool rich.",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "$defs": {"A": {"type": "string", "x-vendor": 1}},
            "properties": {"a": {"$ref": "#/$defs/A"}, "n": {"type": "number", "default": 1.0}},
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "x-foo": 1, "title": "Ünï"},
        "vendorField": {"deep": [None, 1, "é"]},
        "_meta": {"m": 1},
    }
    assert list(raw["inputSchema"]) == ["$schema", "type", "$defs", "properties", "additionalProperties"]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": False}, False),
        ({}, False),
        (None, False),
        ({"readOnlyHint": None}, False),
    ],
)
def test_only_a_mark_makes_a_tool_read_only(annotations: dict | None, expected: bool):
    (tool,) = publish(entry("a", annotations=annotations)).tools
    assert tool.read_only is expected


def test_one_bad_tool_is_left_out_alone(world: World):
    upstreams, project = world.serve({"s": program("torture")})
    published = [tool.tool for tool in upstreams.tools(project.id)]
    good = ["empty", "no_type", "recursive", "defs", "combined", "closed", "anchored", "booleans", "nulls"]
    assert published == good
    warnings = upstreams.warnings(project.id)
    assert len(warnings) == 13
    assert "server 's': tool 'bad_hint' is left out: annotations.readOnlyHint is not true or false" in warnings
    assert "server 's': tool 'no_schema' is left out: it has no inputSchema" in warnings
    for name in good:
        assert text_of(call(upstreams, project, f"mcp__s__{name}")) == name


def test_what_makes_clients_refuse_a_list_is_mended(world: World):
    upstreams, project = world.serve({"s": program("torture")})
    nulls = upstreams.find(project.id, "mcp__s__nulls").raw
    assert list(nulls) == ["name", "inputSchema"]
    booleans = upstreams.find(project.id, "mcp__s__booleans").raw["inputSchema"]["properties"]
    assert booleans["any"] == {}
    assert booleans["none"] == {"not": {}}
    assert upstreams.find(project.id, "mcp__s__empty").raw["inputSchema"]["type"] == "object"
    json.dumps([t.raw for t in upstreams.tools(project.id)]).encode()


@pytest.mark.parametrize(
    ("tool", "field", "sent"),
    [
        ("plain", "workspace", {"a": "1"}),
        ("own", "__exeora_workspace", {"workspace": "theirs"}),
        ("both", "__exeora_workspace_2", {"workspace": "w", "__exeora_workspace": "x"}),
        ("hidden", "__exeora_workspace", {"workspace": "theirs"}),
    ],
)
def test_the_routing_field_is_never_the_tools_own(world: World, tool: str, field: str, sent: dict):
    upstreams, project = world.serve({"s": program("owns")})
    found = upstreams.find(project.id, f"mcp__s__{tool}")
    assert found.workspace_field == field
    assert list(found.raw["inputSchema"]["properties"])[-1] == field
    selector, rest = found.take_workspace({**sent, field: "w1"})
    assert (selector, rest) == ("w1", sent)
    assert found.take_workspace(sent) == (None, sent)
    assert json.loads(text_of(call(upstreams, project, found.name, rest))) == sent


def test_three_hundred_tools_are_two_hundred_and_fifty_six(world: World):
    upstreams, project = world.serve({"many": program("many"), "plain": program("plain")})
    tools = upstreams.tools(project.id)
    assert [t.tool for t in tools] == [f"tool_{n:03}" for n in range(256)]
    left = [w for w in upstreams.warnings(project.id) if "left out" in w]
    assert len(left) == 2
    assert left[0].startswith("server 'many': 44 of its tools are left out (256 tools and 1500000 bytes a project)")
    assert "tool_256" in left[0]
    assert "and 34 more" in left[0]


def test_a_catalog_has_a_size(world: World):
    upstreams, project = world.serve({"many": program("many", "10000")})
    tools = upstreams.tools(project.id)
    assert 140 < len(tools) < 150
    assert sum(measure(tool.raw) for tool in tools) <= 1_500_000


def test_a_tool_that_does_not_fit_leaves_room_for_smaller_ones():
    catalog = publish(entry("a"), entry("big", description="x" * 5000), entry("b"), max_bytes=2_000)
    assert [tool.tool for tool in catalog.tools] == ["a", "b"]
    assert catalog.size == sum(measure(tool.raw) for tool in catalog.tools)


def test_expanded_values_are_scrubbed_and_a_name_with_one_left_out():
    listing = Listing((entry("a", description="uses hunter22"), entry("b_hunter22"), entry("c", title="plain")))
    catalog = publish_catalog([(server("s", "hunter22"), listing)], servers=["s"])
    assert [tool.tool for tool in catalog.tools] == ["a", "c"]
    assert catalog.tools[0].raw["description"] == "uses [redacted]"
    assert "hunter22" not in repr(catalog)


def test_half_a_character_is_left_out():
    catalog = publish(entry("a", description="\ud800"), entry("b"))
    assert [tool.tool for tool in catalog.tools] == ["b"]


def pages(*found: object):
    asked: list[object] = []

    def ask(_method: str, params):
        asked.append(params.get("cursor"))
        return found[len(asked) - 1]

    return ask, asked


def test_seven_pages_and_a_circle(world: World):
    upstreams, project = world.serve({"s": program("pages")})
    assert [t.tool for t in upstreams.tools(project.id)] == ["page_0", "again", *(f"page_{n}" for n in range(1, 7))]
    assert upstreams.warnings(project.id) == ("server 's': its list of tools runs in a circle; it was cut there",)


def test_pages_for_ever_end(world: World):
    upstreams, project = world.serve({"s": program("pages", "ever"), "t": program("pages", "empty")})
    assert len(upstreams.tools(project.id)) == 256
    told = upstreams.warnings(project.id)
    assert "server 's': its list of tools does not end; it was cut after 5000" in told
    assert f"server 't': its list of tools has more than {MAX_PAGES} pages; the rest was left out" in told


def test_cursors_are_sent_back_as_they_came():
    ask, asked = pages({"tools": [], "nextCursor": "a b"}, {"tools": [entry("x")], "nextCursor": None})
    assert list_tools(ask) == Listing((entry("x"),))
    assert asked == [None, "a b"]


def test_a_tool_listed_twice_and_differently():
    ask, _ = pages({"tools": [entry("x"), entry("x"), entry("x", title="t"), entry("x", title="u")]})
    found = list_tools(ask)
    assert found.tools == (entry("x"),)
    assert found.warnings == ("it lists 'x' more than once and differently; the first is taken",)


@pytest.mark.parametrize("page", [{}, {"tools": None}, {"tools": {}}])
def test_a_page_without_a_list(page: dict):
    with pytest.raises(ProtocolError):
        list_tools(pages(page)[0])
