"""Which toolsets there are, and how they go together."""

import itertools
import json

import pytest
from exeora_ws.app import open_calls, open_calls_with
from exeora_ws.errors import InvalidArguments
from exeora_ws.toolsets.catalog import TOOLSETS, collect_tools

from support.commandline import CommandLine
from support.trees import picture


def test_the_toolsets():
    """The default one, the workspace tools alone, and the three that agents know from elsewhere."""
    assert list(TOOLSETS) == [
        "exeora",
        "workspaces",
        "agentexec",
        "agentexec-files",
        "agentexec-read",
        "engine",
        "sandbox",
    ]


def test_no_name_within_a_toolset_twice():
    """Every toolset's names are its own."""
    for tools in TOOLSETS.values():
        assert len({tool.name for tool in tools}) == len(tools)


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.permutations(["exeora", "agentexec", "engine", "sandbox"], 2))
)
def test_names_that_collide_are_refused_at_the_start(one, other):
    """Two toolsets with different tools of one name are refused with a sentence; others go together."""
    shared = {t.name for t in TOOLSETS[one]} & {t.name for t in TOOLSETS[other]}
    if not shared:
        assert len(collect_tools([one, other])) == len(TOOLSETS[one]) + len(TOOLSETS[other])
        return
    with pytest.raises(InvalidArguments) as refused:
        collect_tools([one, other])
    assert refused.value.reason == "tool_names_collide"
    assert all(repr(name) in refused.value.message for name in (one, other))
    assert set(refused.value.data["tools"]) == shared


def test_what_is_the_same_tool_does_not_collide():
    """A toolset named twice, or one within another, counts once."""
    assert collect_tools(["exeora", "workspaces", "exeora"]) == collect_tools(["exeora"])
    assert set(collect_tools(["agentexec-read", "agentexec"])) == set(collect_tools(["agentexec"]))


def test_an_unknown_toolset_is_refused_with_those_there_are():
    """There is no toolset of that name: the hint lists the others."""
    with pytest.raises(InvalidArguments) as refused:
        collect_tools(["engines"])
    assert refused.value.reason == "unknown_toolset"
    assert "engine" in refused.value.hint


def test_every_tool_tells_what_its_reasons_mean(app):
    """Every tool has hints, schemas and a description; every argument is described."""
    for name in TOOLSETS:
        for tool in open_calls(app, [name]).catalog.values():
            assert len(tool.description) > 40, tool.name
            for field, schema in tool.input_schema(account=True)["properties"].items():
                described = "description" in schema or any("description" in each for each in schema.get("anyOf", []))
                assert described, (tool.name, field)


def test_a_policy_narrows_every_toolset(offer, top):
    """In a read-only project only the tools that read are offered, whatever the toolset."""
    from exeora_ws.tools.call import Scope

    (top / "exeora.toml").write_text('mode = "read_only"\n')
    reading = {
        "agentexec": {"read", "list", "search"},
        "engine": {"read_file", "search_files", "list_files", "read_logs"},
        "sandbox": set(),
    }
    for name, names in reading.items():
        offered = offer(name)
        assert {t.name for t in offered.calls.offered(Scope(bound=offered.project.id))} == names
        for tool in set(offered.calls.catalog) - names:
            answer = offered(tool, **ARGUMENTS[tool])
            assert answer["structuredContent"]["error"]["code"] == "FORBIDDEN"


ARGUMENTS = {
    "exec_command": {"cmd": "true"},
    "write_stdin": {"session_id": "x"},
    "edit": {"path": "a", "old_text": "", "new_text": "x"},
    "write_file": {"path": "a", "content": "x"},
    "edit_file": {"path": "a", "search": "", "replace": "x"},
    "revert_file": {"path": "a"},
    "run_shell": {"command": "true"},
    "project_fs_edit": {"path": "a", "oldString": "a", "newString": "b"},
    "project_fs_write": {"path": "a", "content": "x"},
    "project_exec": {"command": "true"},
}


def test_a_workspace_that_does_not_resolve_is_never_main(offer, top):
    """No tool of any toolset acts in main when it was told to act elsewhere."""
    before = picture(top)
    for name in ("agentexec", "engine", "sandbox"):
        offered = offer(name)
        for tool in offered.calls.catalog:
            error = offered.refusal(tool, workspace="no-such", **ARGUMENTS.get(tool, {}))
            assert error["code"] == "UNKNOWN_WORKSPACE", tool
    assert picture(top) == before


def test_calls_are_recorded_whatever_the_toolset(offer, app):
    """Every toolset's calls stand in the record, under the tool's own name."""
    offer("sandbox").result("project_exec", command="true")
    rows = app.services.database
    with rows.read() as connection:
        assert [tuple(row) for row in connection.execute("SELECT tool, outcome FROM audit")] == [("project_exec", "OK")]


def test_one_tool_by_name(app):
    """A tool is found in whichever toolset has it; the default one comes first."""
    assert "project_exec" in open_calls_with(app, "project_exec").catalog
    assert open_calls_with(app, "read_file") is app.calls
    assert open_calls_with(app, "no_such_tool") is app.calls


# the command line


@pytest.fixture
def exeora(sealed, top):
    return CommandLine(top, sealed)


def test_the_command_line_lists_a_toolset(exeora):
    """`exeora tools --toolset NAME` lists it; several may be given."""
    listed = exeora.inline("tools", "--toolset", "sandbox", "--toolset", "workspaces", "--json").document["tools"]
    assert {"project_exec", "create_workspace"} <= {tool["name"] for tool in listed}


def test_the_command_line_refuses_what_collides(exeora):
    """`exeora mcp` with toolsets that collide is refused at the start."""
    done = exeora.inline("mcp", "--toolset", "exeora", "--toolset", "engine", "--json")
    assert (done.code, done.error["reason"]) == (2, "tool_names_collide")
    assert exeora.inline("mcp", "--toolset", "none", "--json").error["reason"] == "unknown_toolset"


def test_the_command_line_calls_any_tool_of_any_toolset(exeora):
    """`exeora call` takes any tool of any toolset; where names are shared, --toolset says which."""
    done = exeora.inline("call", "project_exec", '{"command": "echo hi"}', "--json")
    assert done.document["stdout"] == "hi\n"
    assert exeora.inline("call", "read_file", '{"path": "README.md"}', "--json").document["totalLines"] == 3
    engine = exeora.inline("call", "--toolset", "engine", "read_file", '{"path": "README.md"}', "--json")
    assert engine.document == {"schema": 1, "text": "# app\n\nrevision 0\n"}
    assert json.loads(exeora.inline("tools", "--toolset", "engine", "--schema", "edit_file", "--json").out)["name"]
