"""What `exeora upstream list`, `names` and `check` show."""

import sys
from pathlib import Path

import pytest
from exeora_ws.errors import InvalidArguments
from exeora_ws.upstream.reports import check_server, list_names, list_servers

from support.upstream_world import World, program

VARIABLES = {"TOKEN": "hunter22"}


def test_list_starts_nothing_and_shows_no_secret(world: World):
    world.write(
        {
            "a": program("plain", "${TOKEN}"),
            "b": {"url": "https://u:${TOKEN}@h.example:8443/p?k=${TOKEN}"},
            "c": program("plain", enabled=False),
            "d": {"command": "x", "env": {"A": "${UNSET}"}},
        }
    )
    project = world.project()
    (project.root / "exeora.toml").write_text("[mcp.servers.a]\nenabled = false\n")
    mine = list_servers(world.mcp_file, None, VARIABLES)
    assert mine.servers == [
        {"name": "a", "source": "user", "state": "on", "kind": "stdio", "target": Path(sys.executable).name},
        {"name": "b", "source": "user", "state": "on", "kind": "http", "target": "https://h.example:8443"},
        {"name": "c", "source": "user", "state": "off"},
        {
            "name": "d",
            "source": "user",
            "state": "faulty",
            "fault": "server 'd': env.A: the environment variable UNSET is not set",
        },
    ]
    assert mine.warnings == ("server 'd': env.A: the environment variable UNSET is not set",)
    assert list_servers(world.mcp_file, project.root, VARIABLES).servers[0]["state"] == "off"
    assert "hunter22" not in repr(mine)


def test_names_show_published_against_upstream(world: World):
    world.write({"s": program("similar", "get.x", "ok"), "bad": {"command": "no-such-launcher"}})
    found = list_names(world.open(), world.project(), seconds=20)
    assert found.names == [
        {"name": "mcp__s__get_x", "server": "s", "tool": "get.x", "readOnly": True},
        {"name": "mcp__s__ok", "server": "s", "tool": "ok", "readOnly": True},
    ]
    assert [server["name"] for server in found.failed] == ["bad"]


def test_check_of_a_good_server(world: World):
    world.write({"s": program("torture")})
    check = check_server("s", world.mcp_file, world.project().root, world.surroundings, VARIABLES)
    assert check.ok
    assert check.protocol_version == "2025-11-25"
    assert check.server_info == {"name": "raw", "version": "1"}
    assert check.tools[0] == {"name": "mcp__s__empty", "tool": "empty", "readOnly": False}
    assert len(check.warnings) == 13
    assert check.error is None


def test_check_of_a_failing_server(world: World):
    world.write({"s": program("fails", "/nowhere")})
    check = check_server("s", world.mcp_file, world.project().root, world.surroundings, VARIABLES)
    assert not check.ok
    assert check.error["data"] == {
        "server": "s",
        "phase": "initialize",
        "exitCode": 3,
        "stderr": "cannot find the widget",
    }


@pytest.mark.parametrize(
    ("name", "reason"), [("none", "unknown_server"), ("off", "server_disabled"), ("bad", "server_faulty")]
)
def test_what_cannot_be_checked(world: World, name: str, reason: str):
    world.write({"off": {"command": "x", "enabled": False}, "bad": {}})
    with pytest.raises(InvalidArguments) as caught:
        check_server(name, world.mcp_file, world.project().root, world.surroundings, VARIABLES)
    assert caught.value.reason == reason
