"""`exeora connect` as a process: lost, back, killed, cut, sent away. No call runs twice, none late; nothing is left."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from exeora_ws.app import open_app
from exeora_ws.errors import ExecutorOffline
from exeora_ws.fleet.buckets import ensure_buckets
from exeora_ws.fleet.credentials import Credential, Keys, store_credential
from exeora_ws.fleet.server import NatsServer

from support.commandline import CommandLine
from support.fleet import Connect, Hand, Wire, find_record, kill, make_credential, operating, run_server
from support.processes import all_gone, eventually


@pytest.fixture
def exeora(tmp_path: Path, sealed: dict[str, str]) -> CommandLine:
    return CommandLine(tmp_path, sealed)


@pytest.fixture
def project(sealed, make_repository):
    """The one project of the machine, whose data folder is this test's own."""
    return open_app().inventory.register_project(make_repository("app"), exact=False)[0]


@contextmanager
def connecting(exeora: CommandLine, credential: Credential | None, *words: str) -> Iterator[Connect]:
    given: list[str] = []
    if credential is not None:
        store_credential(exeora.folder / "machine.exeora", credential)
        given = ["--credential", "machine.exeora"]
    running = Connect(exeora.start("connect", "--json", *given, *words))
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait()


class Counted:
    """A command that notes each of its runs."""

    def __init__(self, root: Path) -> None:
        self._file = root / "runs"

    def command(self, name: str, rest: str = "true") -> dict[str, str]:
        return {"command": f"echo {name} >> runs; {rest}"}

    def runs(self, name: str) -> int:
        return self._file.read_text().split().count(name) if self._file.exists() else 0


def start_sleep(hand: Hand, machine: str, project) -> int:
    heard = hand.call(machine, project.id, "start_command", {"command": "sleep 300"})
    return int(heard.done()["structured"]["pid"])


def is_running(pid: int) -> bool:
    return not all_gone([pid])


@pytest.fixture
def away(tmp_path: Path, keys: Keys) -> Iterator[tuple[NatsServer, Hand]]:
    """A server that a test may kill, and a gateway's side."""
    with run_server(tmp_path / "nats", keys) as server, operating(keys, (server.url,)) as hand:
        ensure_buckets(hand.state)
        yield server, hand


def test_a_server_that_is_killed_and_comes_back(exeora: CommandLine, away, keys: Keys, project, tmp_path: Path):
    server, hand = away
    credential, counted = make_credential(hand), Counted(project.root)
    with connecting(exeora, credential) as running:
        running.wait("connected")
        hand.live()
        heard = hand.call(credential.identity, project.id, "run_command", counted.command("before", "sleep 1"))
        heard.wait("taken")
        assert eventually(lambda: counted.runs("before") == 1)
        kill(server)
        running.wait("lost")
        assert eventually(lambda: not hand.line.connected)
        with pytest.raises(ExecutorOffline) as told:
            hand.call(credential.identity, project.id, "run_command", counted.command("meanwhile"))
        assert told.value.reason == "not_connected"
        port = server.port
        server.close()
        with run_server(tmp_path / "nats", keys, port):
            running.wait("back")
            assert eventually(lambda: hand.line.connected and hand.state.connected, 10)
            # What ran on meanwhile is answered over the new connection.
            assert heard.done()["structured"]["exitCode"] == 0
            after = hand.call(credential.identity, project.id, "run_command", counted.command("after"))
            assert after.done()["structured"]["exitCode"] == 0
            assert eventually(lambda: find_record(hand, credential.identity, project.id), 5)
            code, seconds, _ = running.end()
    assert (code, seconds < 5) == (0, True)
    assert [counted.runs(name) for name in ("before", "meanwhile", "after")] == [1, 0, 1]


def test_a_cut_cable(exeora: CommandLine, hand: Hand, project):
    """Neither end is told. What is sent meanwhile is late when it comes; what runs is taken back."""
    cable = Wire(int(hand.urls[0].rpartition(":")[2]))
    credential, counted = make_credential(hand, port=cable.port), Counted(project.root)
    machine = credential.identity
    with connecting(exeora, credential, "--lost-after", "30") as running:
        running.wait("connected")
        hand.live()
        kept = start_sleep(hand, machine, project)
        heard = hand.call(machine, project.id, "run_command", counted.command("running", "sleep 60; echo x >> runs"))
        heard.wait("taken")
        assert eventually(lambda: counted.runs("running") == 1)
        cable.cut()
        # The server does not know yet: it passes this on into a cable that carries nothing.
        late = hand.call(machine, project.id, "run_command", counted.command("late"), start_by=hand.now() + 1_000)
        running.wait("lost")
        cable.mend()
        running.wait("back")
        after = hand.call(machine, project.id, "run_command", counted.command("after"))
        assert after.done()["structured"]["exitCode"] == 0
        assert late.said == [] or late.error()["reason"] == "past_deadline"
        assert is_running(kept)  # the connection was not gone for good
        time.sleep(0.5)
        assert [counted.runs(name) for name in ("running", "late", "after")] == [1, 0, 1]
        running.end()
    assert not is_running(kept)
    cable.close()


def test_a_connection_that_is_gone_for_good_ends_what_was_started(
    exeora: CommandLine, away, keys: Keys, project, tmp_path: Path
):
    server, hand = away
    credential = make_credential(hand)
    with connecting(exeora, credential, "--lost-after", "1.5") as running:
        running.wait("connected")
        hand.live()
        kept = start_sleep(hand, credential.identity, project)
        kill(server)
        running.wait("lost")
        assert is_running(kept)
        assert running.wait("given_up")["seconds"] == 1.5
        assert eventually(lambda: not is_running(kept), 5)
        server.close()
        with run_server(tmp_path / "nats", keys, server.port):
            running.wait("back")
            assert eventually(lambda: hand.line.connected, 15)
            again = start_sleep(hand, credential.identity, project)
            assert is_running(again)
            running.end()
    assert not is_running(again)


def test_a_killed_machine_is_known_at_once_and_its_next_start_clears_up(exeora: CommandLine, hand: Hand, project):
    credential, counted = make_credential(hand), Counted(project.root)
    with connecting(exeora, credential) as running:
        running.wait("connected")
        hand.live()
        kept = start_sleep(hand, credential.identity, project)
        heard = hand.call(credential.identity, project.id, "run_command", counted.command("cut", "sleep 60"))
        assert eventually(lambda: counted.runs("cut") == 1)
        running.process.kill()
        running.process.wait()
        assert eventually(lambda: hand.call(credential.identity, project.id, "list_files").nobody, 2)
        assert is_running(kept)
    with connecting(exeora, None) as running:
        running.wait("connected")
        assert eventually(lambda: not is_running(kept), 5)
        assert hand.call(credential.identity, project.id, "list_files").done()["structured"]
        assert "done" not in heard.kinds()
        assert counted.runs("cut") == 1
        running.end()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_its_end_leaves_nothing(exeora: CommandLine, hand: Hand, project, number: signal.Signals):
    credential = make_credential(hand)
    with connecting(exeora, credential) as running:
        running.wait("connected")
        hand.live()
        kept = start_sleep(hand, credential.identity, project)
        stubborn = hand.call(
            credential.identity,
            project.id,
            "run_command",
            {"command": "trap '' TERM; echo up; while :; do sleep 1; done"},
        )
        stubborn.wait("progress")
        code, seconds, err = running.end(number)
    assert (code, err) == (0, "")
    assert seconds < 8
    assert not is_running(kept)
    assert stubborn.error()["code"] == "CANCELLED"
    assert eventually(lambda: hand.call(credential.identity, project.id, "list_files").nobody, 1)


def test_a_second_one_is_refused_with_a_sentence(exeora: CommandLine, hand: Hand, project):
    credential = make_credential(hand)
    with connecting(exeora, credential) as running:
        running.wait("connected")
        refused = exeora("connect", "--json")
        assert refused.code == 1
        assert refused.error["reason"] == "already_connected"
        assert hand.call(credential.identity, project.id, "list_files").done()["structured"]
        running.end()


def test_one_that_is_sent_away_is_gone_at_once_and_for_good(exeora: CommandLine, hand: Hand, project):
    credential = make_credential(hand)
    with connecting(exeora, credential) as running:
        running.wait("connected")
        hand.live()
        kept = start_sleep(hand, credential.identity, project)
        began = time.monotonic()
        hand.roster.revoke("laptop")
        assert eventually(lambda: hand.call(credential.identity, project.id, "list_files").nobody, 1)
        assert time.monotonic() - began < 1
        code = running.process.wait(10)
        assert code == 4
        error = json.loads(running.process.stderr.read().splitlines()[-1])["error"]
        assert (error["code"], error["reason"]) == ("FORBIDDEN", "credential_refused")
        assert not is_running(kept)
    assert find_record(hand, credential.identity, project.id) is None
    again = exeora("connect", "--json")
    assert (again.code, again.error["reason"]) == (4, "credential_refused")
    fresh = hand.roster.add("laptop", hand.urls)
    assert fresh.identity == credential.identity
    with connecting(exeora, fresh) as running:
        running.wait("connected")
        assert hand.call(credential.identity, project.id, "list_files").done()["structured"]
        running.end()


def test_it_waits_for_a_server_that_is_not_there_yet(exeora: CommandLine, keys: Keys, project, tmp_path: Path):
    with run_server(tmp_path / "nats", keys) as server, operating(keys, (server.url,)) as hand:
        ensure_buckets(hand.state)
        credential, port = make_credential(hand), server.port
    with connecting(exeora, credential) as running:
        assert running.wait("waiting")["urls"] == [f"nats://127.0.0.1:{port}"]
        with run_server(tmp_path / "nats", keys, port):
            running.wait("connected")
            running.end()


def test_what_a_person_reads(exeora: CommandLine, hand: Hand, project):
    credential = make_credential(hand)
    done = subprocess.Popen.communicate
    process = exeora.start("connect", credential.to_text())
    assert eventually(lambda: find_record(hand, credential.identity, project.id), 10)
    process.send_signal(signal.SIGINT)
    out, err = done(process, timeout=10)
    assert out == b""
    assert err.decode().splitlines() == [
        f"exeora: connected as laptop ({credential.identity})",
        "exeora: ending what was started here",
    ]
    kept = Path(os.environ["XDG_DATA_HOME"]) / "exeora" / "fleet" / "credential"
    assert kept.stat().st_mode & 0o777 == 0o600
