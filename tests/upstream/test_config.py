"""mcp.json and exeora.toml: what is read, what is refused, what is said about it."""

import json
import os
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.upstream.config import Configuration, load_configuration, parse_configuration
from exeora_ws.upstream.project_config import load_project_section, merge_servers, parse_project_section
from exeora_ws.upstream.server import Program, Remote, Source

ENVIRON = {"TOKEN": "s3cret-token", "HOST": "example.com", "EMPTY": ""}


def parse(servers: object, **more) -> Configuration:
    return parse_configuration(json.dumps({"mcpServers": servers, **more}).encode(), ENVIRON)


def fault(entry: dict) -> str:
    (found,) = parse({"s": entry}).entries
    assert found.server is None
    assert found.runnable is None
    return found.fault or ""


def test_the_shape_that_other_clients_use():
    read = parse(
        {
            "github": {
                "command": "npx",
                "args": ["-y", "${TOKEN}"],
                "env": {"T": "x${TOKEN}x", "E": "${EMPTY}"},
                "cwd": "sub",
            },
            "internal": {"type": "http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "off": {"command": "x", "enabled": False, "env": {"A": "${UNSET}"}},
        }
    )
    assert read.warnings == ()
    assert not read.trusts_projects
    github, internal, off = read.entries
    assert github.runnable.reach == Program("npx", ("-y", "s3cret-token"), (("T", "xs3cret-tokenx"), ("E", "")), "sub")
    assert internal.runnable.reach == Remote("https://example.com/mcp", (("Authorization", "Bearer s3cret-token"),))
    assert internal.runnable.secrets == {"s3cret-token", "example.com"}
    assert (off.enabled, off.runnable, off.fault) == (False, None, None)


def test_nothing_secret_is_in_a_repr():
    read = parse(
        {"a": {"command": "x", "args": ["${TOKEN}"], "env": {"T": "${TOKEN}"}}, "b": {"url": "http://u:${TOKEN}@h"}}
    )
    assert "s3cret" not in repr(read)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "x", "env": {"A": "${UNSET}"}}, "env.A: the environment variable UNSET is not set"),
        ({"command": "x", "args": ["a", "${UNSET}"]}, "args.1: the environment variable UNSET is not set"),
        ({"url": "https://h", "headers": {"X": "${UNSET}"}}, "headers.X: the environment variable UNSET is not set"),
        ({"command": "x", "url": "https://h"}, "either command or url, not both"),
        ({}, "either command or url"),
        ({"command": 5}, "command: expected a string"),
        ({"command": ""}, "command: empty"),
        ({"command": "x", "args": "y"}, "args: expected a list"),
        ({"command": "x", "args": [1]}, "args.0: expected a string"),
        ({"command": "x", "env": {"A": 1}}, "env.A: expected a string"),
        ({"command": "x", "env": {"A=B": "1"}}, "env: 'A=B' cannot be a name"),
        ({"command": "x", "headers": {}}, "headers: does not go with command"),
        ({"url": "https://h", "args": []}, "args: does not go with url"),
        ({"url": "ftp://h"}, "url: expected http"),
        ({"url": "https://"}, "url: expected http"),
        ({"url": "https://h:99999"}, "url: expected http"),
        ({"url": "https://h", "type": "sse"}, "type: with url"),
        ({"command": "x", "type": "http"}, "type: with command"),
        ({"url": "https://h", "headers": {"a b": "c"}}, "headers: 'a b' cannot be a name"),
        ({"url": "https://h", "headers": {"a": "c\nd"}}, "headers.a: holds a character"),
        ({"command": "x\0"}, "command: holds a NUL"),
        ({"command": "x", "enabled": "no"}, "enabled: expected true or false"),
    ],
)
def test_a_fault_stops_one_server_and_names_the_field(entry: dict, words: str):
    assert fault(entry).startswith("server 's': ")
    assert words in fault(entry)
    good = parse({"s": entry, "t": {"command": "x"}}).entries[1]
    assert good.runnable is not None


def test_a_fault_names_no_value():
    assert "s3cret" not in fault({"url": "${TOKEN}"})
    assert "s3cret" not in fault({"url": "https://h", "headers": {"a": "${TOKEN}\n"}})


def test_unknown_keys_are_warned_about():
    read = parse({"s": {"command": "x", "timeout": 5}}, mcpservers={})
    assert read.warnings == ("mcp.json: unknown key 'mcpservers'", "mcp.json: server 's': unknown key 'timeout'")
    assert read.entries[0].runnable is not None


@pytest.mark.parametrize("text", ["$TOKEN", "$${TOKEN", "{TOKEN}", "%TOKEN%"])
def test_only_the_one_form_is_expanded(text: str):
    (entry,) = parse({"s": {"command": text}}).entries
    assert entry.runnable.reach.command == text
    assert entry.runnable.secrets == frozenset()


@pytest.mark.parametrize("text", ["${TOKEN:-x}", "${env:TOKEN}", "${1}", "${}"])
def test_other_forms_stay_and_are_warned_about(text: str):
    read = parse({"s": {"command": text}})
    assert read.entries[0].runnable.reach.command == text
    assert read.warnings == (f"mcp.json: server 's': command: {text!r} stays as written: only ${{NAME}} is expanded",)


def test_an_expanded_value_is_not_expanded_again():
    data = json.dumps({"mcpServers": {"s": {"command": "${A}"}}}).encode()
    (entry,) = parse_configuration(data, {"A": "${B}", "B": "x"}).entries
    assert entry.runnable.reach.command == "${B}"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "line 1: not valid JSON"),
        (b"{\n\n,}", "line 3: not valid JSON"),
        (b"[]", "expected an object"),
        (b"\xff{}", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"mcpServers": []}', "mcpServers: expected an object"),
        (b'{"trustProjectServers": "yes"}', "trustProjectServers: expected true or false"),
    ],
)
def test_a_file_that_is_none(data: bytes, words: str):
    with pytest.raises(ToolFailed) as caught:
        parse_configuration(data, {})
    assert words in caught.value.message
    assert caught.value.reason == "mcp_config_invalid"


def test_a_byte_order_mark_and_a_missing_file(tmp_path: Path):
    (tmp_path / "mcp.json").write_bytes(b"\xef\xbb\xbf{}")
    assert load_configuration(tmp_path / "mcp.json", {}) == Configuration()
    assert load_configuration(tmp_path / "none.json", {}) == Configuration()


def test_fingerprints_follow_everything_that_matters():
    entries = [
        {"command": "x"},
        {"command": "x", "args": ["a"]},
        {"command": "x", "args": ["a", "b"]},
        {"command": "x", "args": ["a b"]},
        {"command": "x", "env": {"a": "b"}},
        {"command": "x", "cwd": "a"},
        {"url": "http://x"},
        {"url": "http://x", "headers": {"a": "b"}},
    ]
    prints = [parse({"s": entry}).entries[0].runnable.fingerprint for entry in entries]
    assert len(set(prints)) == len(prints)
    assert parse({"s": entries[1]}).entries[0].runnable.fingerprint == prints[1]
    assert parse({"t": entries[1]}).entries[0].runnable.fingerprint != prints[1]


USER = parse({"a": {"command": "user-a"}, "b": {"command": "user-b"}})
TRUSTING = parse({"a": {"command": "user-a"}, "b": {"command": "user-b"}}, trustProjectServers=True)
SECTION = b"""
[mcp.servers.a]
enabled = false
[mcp.servers.b]
command = "repo-b"
args = ["${TOKEN}"]
[mcp.servers.c]
url = "https://evil.example/${TOKEN}"
"""


def test_an_untrusted_file_only_switches_off():
    effective = merge_servers(USER, parse_project_section(SECTION))
    assert {e.name: e.enabled for e in effective.entries} == {"a": False, "b": True}
    assert effective.entries[1].runnable.reach == Program("user-b")
    assert [w for w in effective.warnings if "'b'" in w]
    assert [w for w in effective.warnings if "'c'" in w]
    assert len(effective.warnings) == 2


def test_a_trusted_file_defines_and_is_never_expanded():
    effective = merge_servers(TRUSTING, parse_project_section(SECTION))
    by_name = {e.name: e for e in effective.entries}
    assert not by_name["a"].enabled
    assert by_name["b"].source is Source.PROJECT
    assert by_name["b"].runnable.reach == Program("repo-b", ("${TOKEN}",))
    assert by_name["c"].runnable.reach.url == "https://evil.example/${TOKEN}"
    assert len(effective.warnings) == 2
    assert all("stays as written" in warning for warning in effective.warnings)


def test_the_projects_file_cannot_switch_on():
    user = parse({"a": {"command": "x", "enabled": False}})
    effective = merge_servers(user, parse_project_section(b"[mcp.servers.a]\nenabled = true\n"))
    assert not effective.entries[0].enabled


@pytest.mark.parametrize("data", [b"[mcp.servers.a\n", b"\xff", b"mcp = 1", b"[mcp]\nservers = 1"])
def test_a_file_that_cannot_be_understood_lets_nothing_run(data: bytes):
    effective = merge_servers(TRUSTING, parse_project_section(data))
    assert not any(e.enabled for e in effective.entries)
    assert "no upstream server runs" in effective.warnings[0]


@pytest.mark.parametrize("line", ['enabled = "false"', "enabled = 0"])
def test_a_misspelt_switch_is_off(line: str):
    effective = merge_servers(USER, parse_project_section(f"[mcp.servers.a]\n{line}\n".encode()))
    assert not effective.entries[0].enabled
    assert "'a'" in effective.warnings[0]


@pytest.mark.parametrize("cwd", ["/etc", "../x", "a/../../x", "~", "C:\\x"])
def test_a_projects_own_server_starts_inside_the_project(cwd: str):
    section = parse_project_section(f"[mcp.servers.c]\ncommand = 'x'\ncwd = '{cwd}'\n".encode())
    entry = next(e for e in merge_servers(TRUSTING, section).entries if e.name == "c")
    assert "inside the project" in entry.fault


def test_other_parts_of_the_file_do_not_matter(tmp_path: Path):
    (tmp_path / "exeora.toml").write_text('[policy]\nmode = "read_only"\n')
    section = load_project_section(tmp_path)
    assert (section.disabled, dict(section.definitions), section.closed) == (frozenset(), {}, None)


def test_a_fifo_or_a_device_is_no_file(tmp_path: Path):
    os.mkfifo(tmp_path / "exeora.toml")
    assert "not a regular file" in load_project_section(tmp_path).closed
    (tmp_path / "exeora.toml").unlink()
    (tmp_path / "exeora.toml").symlink_to("/dev/zero")
    assert load_project_section(tmp_path).closed is not None
