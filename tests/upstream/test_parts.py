"""The small parts: lines, messages, launchers."""

import json

import pytest
from exeora_ws.upstream.launcher import find_launcher, find_working_directory, make_environment
from exeora_ws.upstream.messages import Unreadable, format_message, parse_message
from exeora_ws.upstream.server import Program, Server, Source
from exeora_ws.upstream.transport_stdio import _Lines
from hypothesis import given
from hypothesis import strategies as st

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_a_message_survives_the_wire(body: dict):
    message = {**body, "jsonrpc": "2.0"}
    line = format_message(message)
    assert b"\n" not in line
    assert parse_message(line) == message
    assert parse_message(json.dumps(message, ensure_ascii=False).encode()) == message


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_lines_are_cut_at_newlines_only(blocks: list[bytes]):
    lines = _Lines()
    found = [line for block in blocks for line in lines.feed(block)]
    assert found == b"".join(blocks).split(b"\n")[:-1]


@pytest.mark.parametrize("line", [b"", b"\r", b"hello", b"{}", b'{"jsonrpc":"1.0"}', b"[1]", b'{"jsonrpc":', b"\xff{"])
def test_noise(line: bytes):
    assert parse_message(line) is None


def test_an_answer_that_cannot_be_read_is_told_apart_from_noise():
    assert parse_message(b'{"jsonrpc":"2.0","id":7,"result":NaN}') == Unreadable(7)
    assert parse_message(b'{"jsonrpc":"2.0", "result":{"x":-Infinity}, "id" : 7}') == Unreadable(7)
    assert parse_message(b'{"id":7,"result":NaN}') is None
    assert parse_message(b'{"jsonrpc":"2.0","id":7,"result":{"id":8},NaN}') is None
    assert parse_message(b'{"jsonrpc":"2.0","x":1e308,"y":1E-999}') == {"jsonrpc": "2.0", "x": 1e308, "y": 0.0}


FILES = {r"C:\node\npx.cmd", r"C:\node\npx", r"C:\tools\npx.EXE", r"C:\tools\uvx.exe", r"D:\own\server.bat"}
WINDOWS = {"Path": r"C:\none;C:\node;C:\tools", "PATHEXT": ".COM;.EXE;.BAT;.cmd"}


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("npx", r"C:\node\npx.cmd"),
        ("uvx", r"C:\tools\uvx.EXE"),
        ("uvx.exe", r"C:\tools\uvx.exe"),
        (r"D:\own\server", r"D:\own\server.BAT"),
        ("missing", "missing"),
    ],
)
def test_launchers_on_windows_are_found_through_pathext(command: str, found: str):
    def is_file(path: str) -> bool:
        return path.lower() in {f.lower() for f in FILES}

    assert find_launcher(command, WINDOWS, windows=True, is_file=is_file) == found


def test_elsewhere_the_system_looks():
    assert find_launcher("npx", {"PATH": "/x"}, windows=False) == "npx"


def test_a_projects_own_server_is_not_told_the_users_environment():
    user = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "GITHUB_TOKEN": "t", "AWS_SECRET": "s", "GIT_DIR": "/x"}
    program = Program("x", env=(("OWN", "1"),))
    own = make_environment(Server("s", Source.USER, program), program, user)
    projects = make_environment(Server("s", Source.PROJECT, program), program, user)
    assert own == {k: v for k, v in user.items() if k != "GIT_DIR"} | {"OWN": "1"}
    assert projects == {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "OWN": "1"}


def test_where_a_server_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/h")
    assert find_working_directory(Program("x"), tmp_path) == tmp_path
    assert find_working_directory(Program("x", cwd="a/./b"), tmp_path) == tmp_path / "a" / "b"
    assert str(find_working_directory(Program("x", cwd="/abs"), tmp_path)) == "/abs"
    assert str(find_working_directory(Program("x", cwd="~/t"), tmp_path)) == "/h/t"
