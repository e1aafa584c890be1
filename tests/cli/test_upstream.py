"""`exeora upstream`: what is configured, under which names it is published, and what is wrong with a server."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from exeora_ws.settings import find_places

from support.commandline import TOP, CommandLine
from support.upstream_world import is_running, program, until

ON = {"source": "user", "state": "on", "kind": "stdio", "target": Path(sys.executable).name}


@pytest.fixture
def write(sealed: dict[str, str]):
    def written(servers: dict[str, Any], **more: Any) -> None:
        file = find_places().mcp_file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"mcpServers": servers, **more}))

    return written


def test_list_shows_what_is_configured_and_starts_nothing(exeora: CommandLine, write, tmp_path: Path, repository: Path):
    log = tmp_path / "log"
    write(
        {
            "plain": program("plain", str(log)),
            "off": program("plain", enabled=False),
            "faulty": {"command": "x", "env": {"A": "${UNSET}"}},
            "far": {"url": "https://u:hunter2@h.example/p?k=hunter2", "colour": "red"},
        }
    )
    (repository / "exeora.toml").write_text("[mcp.servers.plain]\nenabled = false\n")
    elsewhere = exeora.inline("upstream", "list", "--json", folder=tmp_path)
    assert elsewhere.code == 0
    document = elsewhere.document
    assert document["servers"][0] == {"name": "plain", **ON}
    assert [server["state"] for server in document["servers"]] == ["on", "off", "faulty", "on"]
    assert "UNSET is not set" in document["servers"][2]["fault"]
    assert any("colour" in warning for warning in document["warnings"])
    exeora.inline("project", "add", ".")
    here = exeora.inline("upstream", "list")
    assert here.code == 0
    assert re.match(r"plain +off ", here.out)
    assert here.err.count("UNSET") == 0, "said in its row"
    assert "colour" in here.err
    assert "hunter2" not in elsewhere.out + here.out + here.err
    assert not log.exists()


def test_list_of_nothing_says_how_to_begin(exeora: CommandLine):
    done = exeora.inline("upstream", "list")
    assert (done.code, done.out) == (0, "")
    assert "docs/upstreams.md" in done.err
    assert exeora.inline("upstream", "list", "--json").document == {"schema": 1, "servers": [], "warnings": []}


def test_a_file_that_cannot_be_read_is_said(exeora: CommandLine):
    file = find_places().mcp_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{")
    for words in (("list",), ("check", "x")):
        done = exeora.inline("upstream", *words, "--json")
        assert (done.code, done.out, done.error["reason"]) == (1, "", "mcp_config_invalid")


def test_names_show_published_against_upstream_and_who_is_missing(exeora: CommandLine, write, tmp_path: Path):
    write(
        {"s": program("similar", "get.x", "ok"), "bad": program("fails", str(tmp_path / "no")), "w": program("hangs")}
    )
    done = exeora("upstream", "names", "--wait", "3", "--json")
    document = done.document
    assert done.code == 0
    assert document["names"] == [
        {"name": "mcp__s__get_x", "server": "s", "tool": "get.x", "readOnly": True},
        {"name": "mcp__s__ok", "server": "s", "tool": "ok", "readOnly": True},
    ]
    assert [(server["name"], server["state"]) for server in document["failed"]] == [
        ("bad", "failed"),
        ("w", "starting"),
    ]
    assert document["failed"][0]["failure"]["data"]["exitCode"] == 3
    text = exeora("upstream", "names", "--wait", "3")
    assert [re.split(r"  +", line) for line in text.out.splitlines()] == [
        ["mcp__s__get_x", "s", "get.x", "reads"],
        ["mcp__s__ok", "s", "ok", "reads"],
    ]
    assert "'w' has not answered yet" in text.err
    assert not running("hangs.py")


def running(program_name: str) -> list[int]:
    """Processes of this user whose command line names a fixture of this copy of the sources."""
    wanted = str(TOP / "fixtures" / "upstreams" / program_name).encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                wanted in (folder / "cmdline").read_bytes()
                and str(os.environ["HOME"]).encode() in (folder / "environ").read_bytes()
            ):
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if is_running(pid)]


def test_check_of_a_good_server(exeora: CommandLine, write, tmp_path: Path):
    write({"plain": program("plain")})
    done = exeora("upstream", "check", "plain")
    assert done.code == 0
    assert re.search(r"plain: raw 1 answered in \d+ ms, 10 tools, protocol 2025-11-25", done.err)
    assert re.search(r"^mcp__plain__echo +echo +changes$", done.out, re.MULTILINE)
    document = exeora("upstream", "check", "plain", "--json").document
    assert set(document) == {
        "schema",
        "server",
        "milliseconds",
        "protocolVersion",
        "serverInfo",
        "tools",
        "warnings",
    }
    assert document["tools"][0] == {"name": "mcp__plain__rich", "tool": "rich", "readOnly": True}
    assert not running("plain.py")


def test_check_says_phase_exit_code_and_last_words_without_secrets(exeora: CommandLine, write):
    write({"leaky": program("leaky", "early", env={"TOKEN": "${SECRET}", "OTHER": "hunter2-literal"})})
    for words in ((), ("--json",)):
        done = exeora("upstream", "check", "leaky", *words, SECRET="hunter2-expanded")
        assert (done.code, done.out) == (1, "")
        assert "hunter2" not in done.err
        assert "starting with" in done.err
        assert "exit code 4" in done.err
    assert done.error["data"] | {"stderr": ""} == {
        "server": "leaky",
        "phase": "initialize",
        "exitCode": 4,
        "stderr": "",
    }


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("absent", 2, "unknown_server"),
        ("off", 2, "server_disabled"),
        ("faulty", 2, "server_faulty"),
        ("nowhere", 1, "upstream_failed"),
        ("", 2, "unknown_server"),
    ],
)
def test_check_of_what_cannot_run(exeora: CommandLine, write, name: str, code: int, reason: str):
    write(
        {
            "off": program("plain", enabled=False),
            "faulty": {"command": "x", "env": {"A": "${UNSET}"}},
            "nowhere": {"command": "no-such-launcher"},
        }
    )
    done = exeora.inline("upstream", "check", name, "--json")
    assert (done.code, done.out, done.error["reason"]) == (code, "", reason)


@pytest.mark.parametrize(("words", "number"), [(("check", "s"), signal.SIGINT), (("names",), signal.SIGTERM)])
def test_an_interrupted_start_leaves_nothing(exeora: CommandLine, write, tmp_path: Path, words, number):
    pids = tmp_path / "pids"
    write({"s": program("waits", str(pids))})
    process = exeora.start("upstream", *words)
    until(pids.exists)
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (128 + number, b"")
    assert b"interrupted" in err
    assert not any(is_running(int(pid)) for pid in pids.read_text().split())


def test_neither_takes_a_workspace_nor_guesses_a_project(exeora: CommandLine, write, tmp_path: Path):
    write({"plain": program("plain")})
    for words in (("list",), ("names",), ("check", "plain")):
        assert exeora.inline("-w", "main", "upstream", *words, "--json").error["reason"] == "no_workspace_taken"
    for words in (("names",), ("check", "plain")):
        done = exeora.inline("upstream", *words, "--json", folder=tmp_path)
        assert (done.code, done.error["reason"]) == (2, "no_project")
    assert exeora.inline("--project", "no-such", "upstream", "list").code == 1
