"""One name in several projects: a schema that stands on its own."""

import json
from pathlib import Path
from typing import Any

import pytest
from exeora_ws.upstream.catalog import PublishedTool
from exeora_ws.upstream.merging import merge_catalogs, merge_input_schemas, merge_tool
from exeora_ws.upstream.schema_refs import resolve
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from support.upstream_world import World, program

COMBINATORS = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "dependentSchemas"}
STRING = {"type": "string"}


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [
            found for key, item in value.items() if key not in ("const", "enum") for found in references(item)
        ]
    return [found for item in value for found in references(item)] if isinstance(value, list) else []


def check(schema: dict[str, Any]) -> None:
    assert schema["type"] == "object"
    assert not COMBINATORS & schema.keys()
    for reference in references(schema):
        assert reference.startswith("#/$defs/")
        assert resolve(reference, schema) is not None, reference
    Draft202012Validator.check_schema(schema)
    json.dumps(schema)


def published(name: str, schema: dict, *, read_only: bool = False, **more) -> PublishedTool:
    raw = {"name": name, "inputSchema": schema, **more}
    return PublishedTool(name, "s", name, read_only, "workspace", raw)


def schemas(world: World) -> dict[str, dict]:
    upstreams, project = world.serve({"s": program("torture")})
    return {tool.tool: tool.raw["inputSchema"] for tool in upstreams.tools(project.id)}


def test_every_pair_of_torture_schemas_merges(world: World):
    found = schemas(world)
    for one in found.values():
        for other in found.values():
            before = json.dumps([one, other])
            merged, field = merge_input_schemas([one, other])
            check(merged)
            assert field == "project"
            assert "project" in merged["required"]
            assert json.dumps([one, other]) == before
            assert merged["properties"].keys() >= {*one.get("properties", {}), *other.get("properties", {})}


def test_one_project_keeps_its_schema_whole(world: World):
    for schema in schemas(world).values():
        merged, field = merge_input_schemas([schema])
        properties = dict(merged["properties"])
        assert properties.pop(field)["type"] == "string"
        assert {**merged, "properties": properties} == {**schema, "properties": schema["properties"]}
        assert field not in merged.get("required", [])


def test_the_same_schema_twice_keeps_what_it_requires():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A"}, "b": STRING},
        "definitions": {"A": {"type": "integer", "minimum": 1}},
        "required": ["b"],
        "additionalProperties": False,
    }
    merged, _ = merge_input_schemas([schema, dict(schema)])
    check(merged)
    assert merged["properties"]["a"] == {"$ref": "#/$defs/A"}
    assert merged["$defs"] == {"A": {"type": "integer", "minimum": 1}}
    assert merged["required"] == ["b", "project"]
    assert merged["additionalProperties"] is False
    assert merged["$schema"] == schema["$schema"]


def test_different_schemas_accept_what_each_accepts():
    one = {
        "type": "object",
        "properties": {"a": STRING, "b": STRING},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    other = {"type": "object", "properties": {"a": {"type": "integer"}, "c": STRING}, "required": ["a"]}
    merged, _ = merge_input_schemas([one, other])
    assert merged["properties"]["a"] == {"anyOf": [STRING, {"type": "integer"}]}
    assert merged["properties"]["b"] == STRING
    assert merged["required"] == ["a", "project"]
    validator = Draft202012Validator(merged)
    assert validator.is_valid({"project": "p", "a": "x", "b": "y"})
    assert validator.is_valid({"project": "p", "a": 1, "c": "y"})
    assert not validator.is_valid({"a": 1})


def test_definitions_of_one_name_and_two_meanings_stay_apart():
    def schema(kind: str) -> dict:
        return {
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/N"}, "same": {"$ref": "#/$defs/S"}},
            "$defs": {"N": {"type": kind, "x": {"$ref": "#/$defs/S"}}, "S": {"maxLength": 3}},
        }

    merged, _ = merge_input_schemas([schema("string"), schema("integer")])
    check(merged)
    assert merged["properties"]["same"] == {"$ref": "#/$defs/S"}
    assert merged["properties"]["n"] == {"anyOf": [{"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N_2"}]}
    assert {merged["$defs"][name]["type"] for name in ("N", "N_2")} == {"string", "integer"}


def test_references_that_lead_nowhere_allow_anything():
    one = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/gone"}, "b": {"$ref": "https://elsewhere.example/x"}},
    }
    merged, _ = merge_input_schemas([one, {"type": "object"}])
    assert merged["properties"]["a"] == {}
    assert merged["properties"]["b"] == {}


def test_data_that_looks_like_a_reference_is_data():
    one = {
        "type": "object",
        "properties": {"a": {"const": {"$ref": "#/x"}}, "$ref": STRING, "const": {"$ref": "#/$defs/A"}},
    }
    one["$defs"] = {"A": {"enum": [{"$ref": "#/y"}]}}
    merged, _ = merge_input_schemas([one, {"type": "object"}])
    assert merged["properties"]["a"] == {"const": {"$ref": "#/x"}}
    assert merged["properties"]["$ref"] == STRING
    assert merged["$defs"]["A"] == {"enum": [{"$ref": "#/y"}]}


def test_a_long_chain_of_definitions():
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(2_000)} | {"d2000": STRING}
    merged, _ = merge_input_schemas(
        [{"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": chain}] * 1 + [{"type": "object"}]
    )
    assert len(merged["$defs"]) == 2001
    assert merged["$defs"]["d2000"] == STRING


def test_a_tool_that_owns_project():
    owner = {"type": "object", "properties": {"project": STRING}}
    other = {"type": "object", "properties": {"__exeora_project": STRING}}
    assert merge_input_schemas([owner])[1] == "__exeora_project"
    merged, field = merge_input_schemas([owner, other])
    assert field == "__exeora_project_2"
    assert merged["properties"]["project"] == STRING
    assert merged["required"] == [field]


def test_facts_that_differ_are_left_out():
    output = {"type": "object", "properties": {"n": STRING}}
    one = published(
        "t",
        {"type": "object"},
        read_only=True,
        outputSchema=output,
        title="A",
        description="first",
        annotations={"readOnlyHint": True, "openWorldHint": True},
    )
    two = published(
        "t",
        {"type": "object"},
        title="A",
        description="second",
        annotations={"readOnlyHint": False, "openWorldHint": True},
    )
    merged = merge_tool({"p": one, "q": two})
    assert merged.raw["description"] == "first"
    assert merged.raw["title"] == "A"
    assert "outputSchema" not in merged.raw
    assert merged.raw["annotations"] == {"openWorldHint": True, "readOnlyHint": False}
    assert not merged.read_only
    assert merged.project_required


def test_the_account_tells_the_projects_apart(world: World, tmp_path: Path):
    world.write({"s": program("owns"), "only": program("many")})
    upstreams, one, two = world.open(), world.project("one"), world.project("two")
    (two.root / "exeora.toml").write_text("[mcp.servers.only]\nenabled = false\n")
    for project in (one, two):
        upstreams.start(project)
        assert upstreams.wait_until_settled(project.id, 20)
    tools = {tool.name: tool for tool in upstreams.account_tools([one.id, two.id])}
    both, single, own = tools["mcp__s__plain"], tools["mcp__only__tool_000"], tools["mcp__s__project"]
    assert both.by_project.keys() == {one.id, two.id}
    assert both.raw["inputSchema"]["required"] == ["project"]
    assert single.by_project.keys() == {one.id}
    assert "required" not in single.raw["inputSchema"]
    assert both.take_project({"project": "two", "workspace": "w", "a": 1}) == ("two", {"workspace": "w", "a": 1})
    assert own.project_field == "__exeora_project"
    assert own.take_project({"project": "theirs"}) == (None, {"project": "theirs"})
    for tool in tools.values():
        if tool.project_required:
            check(tool.raw["inputSchema"])


def test_the_order_is_that_of_the_first_project():
    catalogs = {
        "p": [published("b", {"type": "object"}), published("a", {"type": "object"})],
        "q": [published("c", {"type": "object"})],
    }
    assert [tool.name for tool in merge_catalogs(catalogs)] == ["b", "a", "c"]


pointers = st.sampled_from(
    [
        "#",
        "#/$defs/A",
        "#/$defs/B",
        "#/properties/a",
        "#/$defs/none",
        "#anchor",
        "https://x/y",
        "#/$defs/A/properties/z",
    ]
)
leaves = st.sampled_from([{}, STRING, {"type": "integer", "$anchor": "anchor"}, {"const": 1}]) | st.builds(
    lambda p: {"$ref": p}, pointers
)
parts = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(
            lambda p: {"type": "object", "properties": p}, st.dictionaries(st.sampled_from("abz"), inner, max_size=3)
        ),
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        st.builds(
            lambda k, i: {k: i}, st.sampled_from(["anyOf", "allOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)
        ),
    ),
    max_leaves=8,
)
roots = st.builds(
    lambda p, d, extra: {"type": "object", "properties": p, "$defs": d, **extra},
    st.dictionaries(st.sampled_from(["a", "b", "project"]), parts, max_size=3),
    st.dictionaries(st.sampled_from("AB"), parts, max_size=2),
    st.dictionaries(st.sampled_from(["anyOf", "allOf", "oneOf"]), st.lists(parts, min_size=1, max_size=2), max_size=2),
)


@given(st.lists(roots, min_size=2, max_size=3))
@settings(max_examples=80, deadline=None)
def test_any_merge_stands_on_its_own(found: list[dict]):
    merged, field = merge_input_schemas(found)
    check(merged)
    assert field in merged["required"]


@pytest.mark.parametrize("count", [2, 5])
def test_a_merge_does_not_depend_on_how_often(count: int):
    schema = {"type": "object", "properties": {"a": STRING}}
    assert merge_input_schemas([schema] * count) == merge_input_schemas([schema] * 2)
