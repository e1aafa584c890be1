"""`exeora mcp` answers its client before there is a core: only what is sure, and with next to nothing imported."""

import json
import os
import select
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from exeora_ws.app import open_app
from exeora_ws.serve import protocol, reception
from exeora_ws.serve.reception import find_listing
from exeora_ws.settings import find_places
from hypothesis import given
from hypothesis import strategies as st
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from exeora_cli.data_folder import find_config_file
from support.commandline import COMMAND, CommandLine, child_environment
from support.tools_listing import render

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEAVY = {
    "anyio", "asyncio", "contextlib", "dataclasses", "enum", "json", "logging", "mcp", "msgspec", "pathlib", "pydantic",
    "pygit2", "re", "sqlite3", "threading", "typer", "typing", "exeora_ws.app", "exeora_ws.serve.dialogue",
}  # fmt: skip
PROBE = """
import sys
sys.argv = ["exeora", "mcp"]
from exeora_ws.serve import reception
receive = reception.Reception.receive
def probe(self):
    receive(self)
    print(*sys.modules, sep=chr(10), file=sys.stderr)
    raise OSError
reception.Reception.receive = probe
from exeora_cli.main import main
sys.exit(main())
"""


class Wire:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def send(self, *messages: object) -> None:
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()

    def receive(self, seconds: float = 20.0) -> dict:
        assert select.select([self.process.stdout], [], [], seconds)[0], "nothing came"
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[int, str]:
        _out, err = self.process.communicate(timeout=20)
        return self.process.returncode, err.decode()


@pytest.fixture
def serve(exeora: CommandLine, repository: Path):
    """Start `exeora mcp` with pipes that the test holds, in a project that is registered."""
    exeora.inline("project", "add", ".")

    @contextmanager
    def started(*words: str, folder: Path = repository, argv: tuple[str, ...] = COMMAND):
        pipe = subprocess.PIPE
        environment = child_environment(exeora.environment)
        with subprocess.Popen(
            [*argv, *(words or ("mcp",))], cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
        ) as process:
            try:
                yield Wire(process)
            finally:
                process.kill()
                with suppress(OSError):
                    process.stdin.close()

    return started


def test_nothing_heavy_is_imported_before_the_first_answers(serve):
    with serve(argv=(sys.executable, "-c", PROBE)) as wire:
        wire.send(HELLO, READY, LIST, {"jsonrpc": "2.0", "id": 2, "method": "prompts/list"})
        assert [wire.receive()["id"] for _ in range(3)] == [0, 1, 2]
        code, imported = wire.end()
    assert code == 0
    assert set(imported.split()) & HEAVY == set()


def test_the_kept_listing_is_what_the_core_says():
    with open(reception.LISTING, "rb") as stream:
        assert stream.read() == render(), "python -m support.tools_listing writes it anew"


def test_the_words_of_the_protocol_are_the_librarys():
    import mcp_types
    from mcp_types import version

    assert protocol.HANDSHAKE_VERSIONS == version.HANDSHAKE_PROTOCOL_VERSIONS
    assert (protocol.MODERN_VERSION,) == version.MODERN_PROTOCOL_VERSIONS
    assert protocol.VERSION_KEY == mcp_types.PROTOCOL_VERSION_META_KEY
    assert protocol.CLIENT_KEY == mcp_types.CLIENT_INFO_META_KEY
    assert protocol.CAPABILITIES_KEY == mcp_types.CLIENT_CAPABILITIES_META_KEY
    assert protocol.SERVER_KEY == mcp_types.SERVER_INFO_META_KEY
    for name in ("INVALID_REQUEST", "INVALID_PARAMS", "INTERNAL_ERROR", "CONNECTION_CLOSED"):
        assert getattr(protocol, name) == getattr(mcp_types, name)


def test_a_project_without_rules_has_the_listing(tmp_path: Path):
    assert find_listing(str(tmp_path), str(tmp_path / "none.json")) == render().rstrip()
    (tmp_path / "config.json").write_text('{"worktreeRoot": "/x"}')
    assert find_listing(str(tmp_path), str(tmp_path / "config.json")) is not None


def test_where_anything_may_rule_the_core_is_asked(tmp_path: Path):
    root, config = tmp_path / "app", tmp_path / "config.json"
    assert find_listing(str(root), str(config)) is None, "no folder"
    root.mkdir()
    for text in ('{"policies": {}}', '{"polic\\u0069es": {}}', "nonsense", "[]", "\ufeff{}", '{"a": 1, "a": 2}'):
        config.write_text(text)
        assert find_listing(str(root), str(config)) is None, text
    config.unlink()
    os.mkfifo(config)
    assert find_listing(str(root), str(config)) is None
    config.unlink()
    (root / "exeora.toml").symlink_to("nowhere")
    assert find_listing(str(root), str(config)) is None


@given(st.sampled_from(["linux", "darwin"]), st.sampled_from([None, "", "/etc/xdg", "relative", "~/x", " /x", "/x/"]))
def test_the_settings_are_where_platformdirs_puts_them(platform: str, chosen: str | None):
    environment = {"HOME": "/home/ada", **({} if chosen is None else {"XDG_CONFIG_HOME": chosen})}
    kind = Unix if platform == "linux" else MacOS
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        expected = kind("exeora").user_config_path / "config.json"
    found = find_config_file(environment, platform)
    assert found is None or found == str(expected)
    assert found is not None or chosen is not None, "the plain case must be answered"


def test_the_settings_are_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for chosen in (str(tmp_path / "x.json"), "relative/x.json"):
        monkeypatch.setenv("EXEORA_CONFIG_PATH", chosen)
        assert find_config_file(os.environ) == str(find_places().config_file)
    monkeypatch.setenv("EXEORA_CONFIG_PATH", "~/x.json")
    assert find_config_file(os.environ) is None


def test_a_rule_that_comes_after_the_listing_is_told(serve, repository: Path):
    with serve() as wire:
        wire.send(HELLO, READY, LIST)
        wire.receive()
        before = {tool["name"] for tool in wire.receive()["result"]["tools"]}
        # Once this is answered there is a core, which knows what was listed before it.
        wire.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_workspaces"}})
        wire.receive()
        (repository / "exeora.toml").write_text('mode = "read_only"\n')
        assert wire.receive() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        wire.send({**LIST, "id": 3})
        after = {tool["name"] for tool in wire.receive()["result"]["tools"]}
    assert after < before


def test_a_core_that_cannot_be_opened_is_told_as_ever(serve):
    database = open_app().places.database
    for name in database.parent.glob("exeora.db*"):
        name.unlink()
    database.write_bytes(b"this is no database at all" * 100)
    with serve() as wire:
        wire.send(HELLO)
        assert wire.receive()["id"] == 0
        code, err = wire.end()
    assert code == 1
    assert err.startswith("exeora: ")
    assert "exeora.db cannot be used" in err


def test_a_client_that_says_nothing_and_goes_is_served_to_its_end(serve):
    with serve() as wire:
        wire.process.stdin.close()
        assert wire.process.wait(20) == 0
        assert wire.process.stdout.read() == b""


def test_a_client_that_does_not_read_ends_the_server(serve):
    with serve() as wire:
        wire.process.stdout.close()
        wire.send(HELLO)
        assert wire.process.wait(20) == 0


def test_another_folders_project_is_served_by_name(serve, tmp_path: Path):
    with serve("--project", "app", "mcp", folder=tmp_path, argv=COMMAND) as wire:
        wire.send({"jsonrpc": "2.0", "id": 5, "method": "ping"}, HELLO)
        assert [wire.receive()["id"] for _ in range(2)] == [5, 0]


WORKING = """
import sys
sys.argv = ["exeora", "mcp"]
from exeora_cli.main import main
code = main()
print(*sys.modules, sep=chr(10), file=sys.stderr)
sys.exit(code)
"""


def test_a_usual_conversation_never_loads_the_protocol_library(serve):
    with serve(argv=(sys.executable, "-c", WORKING)) as wire:
        calls = [("list_files", {}), ("read_file", {"path": "README.md"}), ("run_command", {"command": "true"})]
        wire.send(HELLO, READY, LIST)
        wire.send(
            *(
                {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": given}}
                for number, (name, given) in enumerate(calls, 2)
            )
        )
        assert {wire.receive()["id"] for _ in range(5)} == {0, 1, 2, 3, 4}
        code, imported = wire.end()
    assert code == 0
    assert set(imported.split()) & {"anyio", "asyncio", "mcp", "mcp_types", "pydantic", "typer"} == set()
