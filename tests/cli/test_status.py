"""`exeora status`: which servers run, where each project is served, and the upstream servers as configured."""

import json
import os
import re
import signal
from datetime import datetime

import pytest
from exeora_ws import __version__
from exeora_ws.app import open_app
from exeora_ws.settings import find_places

from support.commandline import CommandLine
from support.repositories import RepositoryMaker
from support.served import serving
from support.upstream_world import program


def test_running_servers_and_where_they_serve_each_project(exeora: CommandLine, make_repository: RepositoryMaker):
    open_app().inventory.register_project(make_repository("api"), exact=False)
    assert exeora.inline("status", "--json").document["servers"] == []
    assert re.search(r"^server +none runs$", exeora.inline("status").out, re.MULTILINE)
    with serving(exeora) as served:
        document = exeora.inline("status", "--json").document
        (server,) = document["servers"]
        assert {k: server[k] for k in ("pid", "face", "url", "version")} == {
            "pid": served.process.pid,
            "face": "http",
            "url": served.ready["url"],
            "version": __version__,
        }
        assert datetime.fromisoformat(server["started"]).tzinfo is not None
        urls = {project["slug"]: project["urls"] for project in document["projects"]}
        assert urls == {name: [f"{served.ready['url']}/p/{name}/mcp"] for name in ("api", "app")}
        text = exeora.inline("status").out
        assert f"{served.ready['url']}/mcp  since {server['started']}" in text
        assert re.search(rf"^url +{re.escape(urls['app'][0])}$", text, re.MULTILINE)
        assert urls["api"][0] not in text
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait(5)
        assert exeora.inline("status", "--json").document["servers"] == [], "a dead one is none"


def test_upstream_servers_as_configured_without_starting_one(exeora: CommandLine, tmp_path):
    nothing = exeora.inline("status", "--json").document
    assert nothing["upstreams"] == {"servers": [], "warnings": []}
    places = find_places()
    places.mcp_file.parent.mkdir(parents=True, exist_ok=True)
    log = tmp_path / "log"
    servers = {"plain": program("plain", str(log)), "odd": {"command": "x", "args": "y"}}
    places.mcp_file.write_text(json.dumps({"mcpServers": servers}))
    document = exeora.inline("status", "--json").document
    assert document["paths"]["mcp"] == str(places.mcp_file)
    assert [(s["name"], s["state"]) for s in document["upstreams"]["servers"]] == [("plain", "on"), ("odd", "faulty")]
    assert "plain (on), odd (faulty)" in exeora.inline("status").out
    assert not log.exists()


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_broken_mcp_json_hides_nothing_else(exeora: CommandLine, content: str):
    places = find_places()
    places.mcp_file.parent.mkdir(parents=True, exist_ok=True)
    places.mcp_file.write_text(content)
    done = exeora.inline("status", "--json")
    assert done.code == 0
    assert "mcp.json" in done.document["upstreams"]["fault"]
    assert "mcp.json" in exeora.inline("status").out
