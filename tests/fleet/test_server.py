"""A nats-server of our own: ready when it says so, alone in its folder, gone with us, its store whole after a kill."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exeora_ws.errors import ExecutorOffline, ToolFailed
from exeora_ws.fleet.buckets import TOKENS_BUCKET, Bucket, ensure_buckets
from exeora_ws.fleet.credentials import Keys
from exeora_ws.fleet.home import FleetAddress, FleetHome, operate
from exeora_ws.fleet.line import Line
from exeora_ws.fleet.server import start_server
from exeora_ws.fleet.server_config import ServerOptions, describe_trust
from exeora_ws.fleet.wire import new_machine_id
from exeora_ws.settings import find_places

from support.commandline import child_environment
from support.fleet import kill, operating, run_server
from support.processes import eventually

OWNER = """
import sys, time
from pathlib import Path
from exeora_ws.fleet.credentials import find_keys
from exeora_ws.fleet.home import FleetAddress, FleetHome, operate
from exeora_ws.fleet.line import Line
from exeora_ws.fleet.server import start_server
from exeora_ws.fleet.server_config import ServerOptions
folder = Path(sys.argv[1])
server = start_server(find_keys(folder / "keys.json"), ServerOptions(folder / "nats", port=int(sys.argv[2])))
print(server.pid, server.port, flush=True)
time.sleep(600)
"""


def start_owner(folder: Path, keys: Keys, sealed: dict[str, str], port: int = 0):
    """Another process that has a server; gives it, and the server's pid and port."""
    from exeora_ws.fleet.credentials import store_keys

    store_keys(folder / "keys.json", keys)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder), str(port)], env=child_environment(sealed), stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    pid, port = map(int, owner.stdout.readline().split())
    return owner, pid, port


def is_gone(pid: int) -> bool:
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]
    except FileNotFoundError:
        return True


def test_its_files_are_for_nobody_else(tmp_path: Path, keys: Keys):
    with run_server(tmp_path / "nats", keys) as server:
        folder = server.options.folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for name in ("nats.json", "nats.log", "nats.lock", "nats.pid"):
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
        assert server.url.startswith("nats://127.0.0.1:")
    config = (folder / "nats.json").read_text()
    for secret in (keys.operator, keys.system, keys.state, keys.line):
        assert secret not in config


def test_a_taken_port_is_told(tmp_path: Path, keys: Keys):
    with run_server(tmp_path / "one", keys) as server, pytest.raises(ToolFailed) as refused:
        start_server(keys, ServerOptions(tmp_path / "two", port=server.port))
    assert refused.value.reason == "port_taken"


def test_a_second_one_over_the_same_store_is_refused(tmp_path: Path, keys: Keys):
    with run_server(tmp_path / "nats", keys) as server:
        with pytest.raises(ToolFailed) as refused:
            start_server(keys, ServerOptions(tmp_path / "nats"))
        assert refused.value.reason == "server_running"
        assert server.running
    with run_server(tmp_path / "nats", keys):
        pass


def test_no_server_is_told_with_the_line_that_installs_one(tmp_path: Path, keys: Keys, monkeypatch):
    monkeypatch.setattr("exeora_ws.fleet.server.find_program", lambda: None)
    with pytest.raises(ToolFailed) as refused:
        start_server(keys, ServerOptions(tmp_path / "nats"))
    assert refused.value.reason == "missing_extra"
    assert refused.value.hint == "pip install 'exeora-ws[fleet]'"


def test_one_that_cannot_start_says_why(tmp_path: Path, keys: Keys):
    with pytest.raises(ToolFailed) as refused:
        start_server(keys, ServerOptions(tmp_path / "nats", host="192.0.2.1"))
    assert refused.value.reason == "server_failed"
    assert "bind" in refused.value.message


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_is_gone_with_the_process_that_had_it(tmp_path: Path, keys: Keys, sealed, number: signal.Signals):
    owner, pid, port = start_owner(tmp_path, keys, sealed)
    assert not is_gone(pid)
    owner.send_signal(number)
    owner.communicate()
    assert eventually(lambda: is_gone(pid), 5)
    with run_server(tmp_path / "nats", keys, port) as server:
        assert server.port == port


def test_one_that_was_left_is_ended_by_the_next_start(tmp_path: Path, keys: Keys, sealed):
    """As on systems where the kernel does not end it: it is made deaf to what would."""
    owner, pid, port = start_owner(tmp_path, keys, sealed)
    os.kill(pid, signal.SIGSTOP)  # what the kernel sends it now waits
    owner.kill()
    owner.communicate()
    assert not is_gone(pid)
    began = time.monotonic()
    with run_server(tmp_path / "nats", keys, port) as server:
        assert is_gone(pid)
        assert server.port == port
    assert time.monotonic() - began < 8


def test_what_was_written_is_there_after_a_kill(tmp_path: Path, keys: Keys):
    with run_server(tmp_path / "nats", keys) as server:
        with operating(keys, (server.url,)) as hand:
            ensure_buckets(hand.state)
            for number in range(50):
                Bucket(hand.state, TOKENS_BUCKET).put(f"tok_{number}", b"v" * 500, 0)
        kill(server)
        assert not server.running
    with run_server(tmp_path / "nats", keys) as server, operating(keys, (server.url,)) as hand:
        ensure_buckets(hand.state)
        assert len(Bucket(hand.state, TOKENS_BUCKET).list()) == 50


def test_the_snippet_for_servers_of_others_holds_no_secret(keys: Keys):
    text = str(describe_trust(keys))
    assert keys.system_account in text
    for secret in (keys.operator, keys.system, keys.state, keys.line):
        assert secret not in text


def test_over_tls_only_who_was_named_is_taken_for_the_server(tmp_path: Path, sealed):
    """Its own host takes its very certificate; a machine judges by the authority that its credential names."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*make, *subject, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    home = FleetHome(find_places())
    keys = home.ensure_keys()
    home.store_address(FleetAddress(port=0, certificate=str(certificate), key=str(key)))
    with operate(home, keys) as operation:
        (url,) = operation.urls
        assert url.startswith("tls://127.0.0.1:")
        named = (url.replace("127.0.0.1", "localhost"),)
        known = operation.roster.add("known", named, authority=certificate.read_text())
        strange = operation.roster.add("strange", named)
        elsewhere = operation.roster.add("elsewhere", (url,), authority=certificate.read_text())
        plain = operation.roster.add("plain", (url.replace("tls:", "nats:"),))
        for credential, welcome in ((known, True), (strange, False), (elsewhere, False), (plain, False)):
            line = Line(credential.urls, credential.line, "_INBOX.x", name="m", trust=credential.trust)
            try:
                line.open(0.8)
                taken = True
            except ExecutorOffline:
                taken = False
            finally:
                line.close()
            assert taken is welcome, credential.name
        operation.roster.revoke("known")


def test_nothing_is_signed_for_a_server_that_says_it_has_no_tls(tmp_path: Path, keys: Keys):
    """Somebody in between could say so, and have a machine run what they like."""
    with run_server(tmp_path / "nats", keys) as server:
        credential = keys.make_machine(new_machine_id(), "m", (server.url.replace("nats:", "tls:"),))
        line = Line(credential.urls, credential.line, f"_INBOX.{credential.identity}", name="m")
        with pytest.raises(ExecutorOffline):
            line.open(1.5)
        # The same without that wish is welcome: nothing else was wrong.
        plain = Line((server.url,), credential.line, f"_INBOX.{credential.identity}", name="m")
        plain.open(1.5)
        plain.close()
