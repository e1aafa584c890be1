"""What changes while we serve: lists of tools, mcp.json, exeora.toml."""

import threading
import time
from pathlib import Path

from exeora_ws.upstream.upstreams import Timing

from support.upstream_world import World, call, program, text_of, until


def names(upstreams, project) -> list[str]:
    return [tool.name for tool in upstreams.tools(project.id)]


def pid(upstreams, project, server: str) -> str:
    return text_of(call(upstreams, project, f"mcp__{server}__pid"))


def test_an_announced_change_is_told_once(world: World):
    upstreams, project = world.serve({"s": program("changes")}, timing=Timing(watch=5, quiet=0.2))
    until(lambda: not upstreams._announcements._due)
    told: list[str] = []
    upstreams.on_change(told.append)
    call(upstreams, project, "mcp__s__change")
    until(lambda: told)
    threading.Event().wait(0.6)
    assert told == [project.id]
    assert names(upstreams, project) == ["mcp__s__change", "mcp__s__flip", "mcp__s__new_2"]


def test_a_forgotten_listener_is_told_nothing_and_a_failing_one_harms_nobody(world: World):
    upstreams, project = world.serve({"s": program("changes")})
    until(lambda: not upstreams._announcements._due)
    told: list[str] = []
    forget = upstreams.on_change(lambda _: told.append("forgotten"))
    upstreams.on_change(lambda _: 1 / 0)
    upstreams.on_change(told.append)
    forget()
    call(upstreams, project, "mcp__s__change")
    until(lambda: told)
    assert told == [project.id]


def test_a_server_that_cries_wolf_is_asked_ever_more_rarely(world: World):
    count = world.folder / "count"
    _upstreams, _project = world.serve(
        {"s": program("changes", "wolf", str(count))}, timing=Timing(watch=0.02, quiet=0.01)
    )
    threading.Event().wait(1.5)
    assert 2 <= int(count.read_text()) <= 12


def test_a_changed_file_restarts_only_what_it_changes(world: World):
    upstreams, project = world.serve({"a": program("plain"), "b": program("plain"), "c": program("plain")})
    before = {server: pid(upstreams, project, server) for server in "abc"}
    told: list[str] = []
    upstreams.on_change(told.append)
    world.write({"d": program("plain"), "b": program("plain", env={"X": "1"}), "a": program("plain")})
    until(lambda: "mcp__d__pid" in names(upstreams, project) and "mcp__b__pid" in names(upstreams, project))
    assert pid(upstreams, project, "a") == before["a"]
    assert pid(upstreams, project, "b") != before["b"]
    assert not any(name.startswith("mcp__c__") for name in names(upstreams, project))
    until(lambda: told)


def test_switching_off_and_on_in_the_file(world: World):
    upstreams, project = world.serve({"a": program("plain")})
    world.write({"a": program("plain", enabled=False)})
    until(lambda: not names(upstreams, project))
    assert upstreams.status(project.id) == [{"name": "a", "source": "user", "state": "off"}]
    until(lambda: upstreams._pool.find_running() == [])
    world.write({"a": program("plain")})
    until(lambda: names(upstreams, project))


def test_a_stubborn_server_that_is_switched_off_holds_up_nobody(world: World):
    upstreams, project = world.serve({"s": program("stubborn", str(world.folder / "pids")), "a": program("plain")})
    world.write({"a": program("plain")})
    started = time.monotonic()
    assert all(name.startswith("mcp__a__") for name in names(upstreams, project))
    assert time.monotonic() - started < 0.5
    until(lambda: len(upstreams._pool.find_running()) == 1)


def test_a_half_written_file_changes_nothing_and_is_said(world: World):
    upstreams, project = world.serve({"a": program("plain")})
    before = pid(upstreams, project, "a")
    world.mcp_file.write_text('{"mcpServers": {\n "a": {')
    until(lambda: world.reports)
    assert world.reports[0].startswith("mcp.json: line 2: not valid JSON")
    assert upstreams.warnings(project.id)[0] == world.reports[0]
    assert pid(upstreams, project, "a") == before
    world.write({"a": program("plain")})
    until(lambda: upstreams.warnings(project.id) == ())
    assert pid(upstreams, project, "a") == before


def test_no_file_is_no_servers_until_there_is_one(world: World):
    upstreams, project = world.open(), world.project()
    upstreams.start(project)
    assert upstreams.tools(project.id) == ()
    assert upstreams.warnings(project.id) == ()
    world.write({"a": program("plain")})
    until(lambda: names(upstreams, project))


def test_the_projects_file_switches_off_at_once(world: World):
    upstreams, project = world.serve({"a": program("plain")}, timing=Timing(watch=60))
    (project.root / "exeora.toml").write_text("[mcp.servers.a]\nenabled = false\n")
    assert upstreams.tools(project.id) == ()
    (project.root / "exeora.toml").unlink()
    until(lambda: names(upstreams, project))


def test_an_untrusted_definition_is_not_started_and_named(world: World):
    marker = world.folder / "started"
    project = world.project()
    (project.root / "exeora.toml").write_text(f'[mcp.servers.evil]\ncommand = "touch"\nargs = ["{marker}"]\n')
    world.write({"a": program("plain")})
    upstreams = world.open()
    upstreams.start(project)
    assert upstreams.wait_until_settled(project.id, 20)
    assert [s["name"] for s in upstreams.status(project.id)] == ["a"]
    (warning,) = world.reports
    assert "'evil'" in warning
    assert "trustProjectServers" in warning
    assert not marker.exists()


def test_a_trusted_definition_runs_and_replaces_the_users(world: World, monkeypatch):
    monkeypatch.setenv("SECRET", "very-secret-value")
    project = world.project()
    entry = program("leaky", "${SECRET}")
    lines = [f'command = "{entry["command"]}"', f"args = {entry['args']!r}"]
    (project.root / "exeora.toml").write_text("\n".join(["[mcp.servers.a]", *lines]))
    world.write({"a": program("plain"), "b": program("plain")}, trustProjectServers=True)
    upstreams = world.open()
    upstreams.start(project)
    assert upstreams.wait_until_settled(project.id, 20)
    assert upstreams.status(project.id)[0]["source"] == "project"
    shown = text_of(call(upstreams, project, "mcp__a__show"))
    assert shown.startswith("${SECRET} ")
    assert "very-secret-value" not in shown
    assert any("${SECRET} stays as written" in line for line in world.reports)
    other = world.project("other")
    upstreams.start(other)
    assert upstreams.wait_until_settled(other.id, 20)
    assert upstreams.find(other.id, "mcp__a__show") is None
    assert upstreams.find(other.id, "mcp__a__where") is not None


def test_stopping_a_project_ends_its_servers_only(world: World):
    upstreams, project = world.serve({"a": program("plain")})
    other = world.project("other")
    upstreams.start(other)
    assert upstreams.wait_until_settled(other.id, 20)
    kept = pid(upstreams, other, "a")
    upstreams.stop(project.id)
    assert upstreams.tools(project.id) == ()
    assert [i.directory for i in upstreams._pool.find_running()] == [other.root]
    upstreams.start(project)
    assert upstreams.wait_until_settled(project.id, 20)
    assert names(upstreams, project)
    assert pid(upstreams, other, "a") == kept
    assert isinstance(project.root, Path)
