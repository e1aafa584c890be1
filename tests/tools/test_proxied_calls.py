"""Tools of upstream servers on the way of every call: routed, judged, recorded, run where they were told to."""

import json
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.cancellation import Cancellation
from exeora_ws.policy.gate import Answer
from exeora_ws.tools.call import Asking, Caller, Face, Outcome, RawCall, Scope
from exeora_ws.workspaces.place import Project

from support.repositories import RepositoryMaker

UPSTREAMS = Path(__file__).parents[2] / "fixtures" / "upstreams"


def server(name: str) -> dict[str, object]:
    return {"command": sys.executable, "args": [str(UPSTREAMS / f"{name}.py")]}


@pytest.fixture
def served(app: App, project: Project) -> Iterator[App]:
    app.places.mcp_file.parent.mkdir(parents=True, exist_ok=True)
    app.places.mcp_file.write_text(json.dumps({"mcpServers": {"plain": server("plain"), "owns": server("owns")}}))
    yield app
    app.close()


def call(app: App, scope: Scope, tool: str, asking: Asking | None = None, **arguments: object) -> Outcome:
    caller = Caller(Face.STDIO, "test", "s", scope, asking=asking or Asking())
    return app.calls.make(RawCall(tool, arguments), caller)


def text(outcome: Outcome) -> str:
    assert outcome.error is None, outcome.error.to_dict()
    return outcome.result.raw["content"][0]["text"]


def code(outcome: Outcome) -> tuple[str, str | None]:
    assert outcome.error is not None, outcome
    return str(outcome.error.code), outcome.error.reason


def test_case_47_each_call_acts_in_the_directory_it_names(served: App, project: Project, repository: Path):
    scope = Scope(bound=project.id)
    places = {"main": str(repository)}
    for branch in ("one", "two"):
        made = call(served, scope, "create_workspace", branch=branch).to_dict()
        places[branch] = made["workspace"]["path"]
    with ThreadPoolExecutor(3) as pool:
        found = pool.map(lambda w: text(call(served, scope, "mcp__plain__where", workspace=w)), places)
    assert list(found) == list(places.values())
    assert text(call(served, scope, "mcp__plain__where")) == str(repository)


def test_a_server_that_never_answers_holds_up_no_tool_of_another(app: App, project: Project):
    app.places.mcp_file.parent.mkdir(parents=True, exist_ok=True)
    app.places.mcp_file.write_text(json.dumps({"mcpServers": {"plain": server("plain"), "hangs": server("hangs")}}))
    try:
        began = time.monotonic()
        assert text(call(app, Scope(bound=project.id), "mcp__plain__echo", x=1)) == '{"x": 1}'
        assert time.monotonic() - began < 15
        cancellation = Cancellation()
        caller = Caller(Face.STDIO, "test", "s", Scope(bound=project.id), cancellation)
        threading.Timer(0.3, cancellation.cancel).start()
        assert code(app.calls.make(RawCall("mcp__hangs__x", {}), caller))[0] == "CANCELLED"
        assert time.monotonic() - began < 20
    finally:
        app.close()


@pytest.mark.parametrize("selector", ["nope", "", "Main", "@", "-"])
def test_a_selector_that_does_not_resolve_reaches_no_server(served: App, project: Project, repository, selector):
    outcome = call(served, Scope(bound=project.id), "mcp__plain__echo", workspace=selector)
    assert code(outcome)[0] == "UNKNOWN_WORKSPACE"


def test_the_routing_field_never_reaches_the_server(served: App, project: Project):
    scope = Scope(bound=project.id)
    assert text(call(served, scope, "mcp__plain__echo", workspace="main", x=1)) == '{"x": 1}'
    owned = call(served, scope, "mcp__owns__own", workspace="theirs", __exeora_workspace="main")
    assert text(owned) == '{"workspace": "theirs"}'
    assert code(call(served, scope, "mcp__owns__own", workspace="x", __exeora_workspace="no"))[0] == "UNKNOWN_WORKSPACE"


def test_results_leave_as_they_came(served: App, project: Project):
    outcome = call(served, Scope(bound=project.id), "mcp__plain__rich")
    assert outcome.result.raw["structuredContent"] == {"a": None, "big": 2**70, "f": 1.0, "e": [], "t": True}
    assert outcome.result.raw["content"][2] == {"type": "hologram", "beam": [1, 2.5, None]}
    wrong = call(served, Scope(bound=project.id), "mcp__plain__wrong")
    assert wrong.result.raw == {"content": [], "structuredContent": {"n": "no integer"}, "isError": True}


def test_a_read_only_project_runs_only_what_is_marked_so(served: App, project: Project, repository: Path):
    scope = Scope(bound=project.id)
    call(served, scope, "mcp__plain__where")
    (repository / "exeora.toml").write_text('mode = "read_only"\n')
    assert code(call(served, scope, "mcp__plain__echo")) == ("FORBIDDEN", "read_only")
    assert text(call(served, scope, "mcp__plain__where")) == str(repository)
    names = {entry["name"] for entry in served.calls.offered_proxied(scope)}
    assert "mcp__plain__where" in names
    assert "mcp__plain__echo" not in names


def test_the_lists_of_tools_and_commands_do_not_apply(served: App, project: Project, repository: Path):
    (repository / "exeora.toml").write_text('tools = ["read_file"]\nallow = ["git status"]\n')
    assert text(call(served, Scope(bound=project.id), "mcp__plain__echo", a=1)) == '{"a": 1}'


def test_a_person_is_asked_with_server_and_tool_named(served: App, project: Project, repository: Path):
    (repository / "exeora.toml").write_text("approve = true\n")
    asked: list[str] = []

    class Person:
        way = "terminal"

        def ask(self, question, seconds, withdrawn) -> Answer:
            asked.append(question.text)
            return Answer.ALLOW

    outcome = call(served, Scope(bound=project.id), "mcp__plain__echo", Asking(Person()), a="shown")
    assert text(outcome) == '{"a": "shown"}'
    assert "plain" in asked[0]
    assert "echo" in asked[0]
    assert "shown" in asked[0]
    assert code(call(served, Scope(bound=project.id), "mcp__plain__echo")) == ("FORBIDDEN", "nobody_to_ask")
    assert text(call(served, Scope(bound=project.id), "mcp__plain__where")) == str(repository)


def test_a_call_is_recorded_under_its_published_name(served: App, project: Project):
    call(served, Scope(bound=project.id), "mcp__plain__echo", secret="hunter2")
    with sqlite3.connect(served.places.database) as connection:
        rows = connection.execute("SELECT workspace, tool, outcome FROM audit").fetchall()
    assert rows == [("main", "mcp__plain__echo", "OK")]


def test_an_account_names_the_project_when_there_are_several(
    served: App, project: Project, repository: Path, make_repository: RepositoryMaker
):
    everything = Scope()
    assert text(call(served, everything, "mcp__plain__where")) == str(repository)
    other = served.inventory.register_project(make_repository("other"), exact=False)[0]
    assert code(call(served, everything, "mcp__plain__where")) == ("INVALID_ARGUMENTS", "missing_field")
    assert text(call(served, everything, "mcp__plain__where", project="other")) == str(other.root)
    assert text(call(served, everything, "mcp__plain__where", project=project.id)) == str(repository)
    only = Scope(granted=frozenset({project.id}))
    assert code(call(served, only, "mcp__plain__where", project="other"))[0] == "UNKNOWN_PROJECT"
    entries = {e["name"]: e for e in served.calls.offered_proxied(everything)}
    assert "project" in entries["mcp__plain__echo"]["inputSchema"]["required"]


def test_an_unknown_tool_is_unknown(served: App, project: Project):
    for name in ("mcp__plain__absent", "mcp__absent__x", "plain", "mcp__"):
        assert code(call(served, Scope(bound=project.id), name))[0] == "UNKNOWN_TOOL"


def test_what_runs_in_a_workspace_ends_with_it(served: App, project: Project):
    scope = Scope(bound=project.id)
    call(served, scope, "create_workspace", branch="x")
    pid = int(text(call(served, scope, "mcp__plain__pid", workspace="x")))
    assert Path(f"/proc/{pid}").exists()
    removed = call(served, scope, "remove_workspace", workspace="x").to_dict()
    assert removed["stoppedProcesses"] == ["plain"]
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_ends_in_the_middle_is_an_error_with_its_last_words(served: App, project: Project):
    outcome = call(served, Scope(bound=project.id), "mcp__plain__die")
    assert code(outcome) == ("TOOL_FAILED", "upstream_lost")
    assert outcome.error.data["exitCode"] == 7
