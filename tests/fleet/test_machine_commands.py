"""exeora machine add, list, revoke, where the keys are; credentials as text; what is said without the extra."""

import json
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from exeora_ws.app import open_app
from exeora_ws.errors import ExecutorOffline, InvalidArguments, ToolFailed
from exeora_ws.fleet.buckets import MACHINES_BUCKET, Bucket
from exeora_ws.fleet.credentials import Credential, Keys, load_credential, parse_credential
from exeora_ws.fleet.home import FleetAddress, FleetHome, operate
from exeora_ws.settings import Places, find_places

from support.commandline import CommandLine
from support.fleet import connected
from support.processes import eventually

SECRETS = ("seed", "jwt")


@pytest.fixture
def places(sealed) -> Places:
    return find_places()


@pytest.fixture
def fleet_home(places: Places) -> FleetHome:
    fleet_home = FleetHome(places)
    fleet_home.store_address(FleetAddress(port=0))
    return fleet_home


@pytest.fixture
def exeora(tmp_path: Path, sealed, fleet_home: FleetHome) -> CommandLine:
    return CommandLine(tmp_path, sealed)


@pytest.fixture
def machine_app(tmp_path: Path):
    where = {"EXEORA_DATA_DIR": str(tmp_path / "m"), "EXEORA_CONFIG_PATH": str(tmp_path / "c" / "config.json")}
    return open_app(find_places(where))


def test_add_list_revoke_without_a_gateway(exeora: CommandLine, tmp_path: Path, places: Places):
    """One command is enough: a server of its own runs for as long as the command does."""
    assert exeora.inline("machine", "list").code == 1
    added = exeora.inline("machine", "add", "laptop", "--json").document
    credential = parse_credential(added["credential"], "machine")
    assert added["machine"] == {"id": credential.identity, "name": "laptop"}
    assert credential.state is None
    (row,) = exeora.inline("machine", "list", "--json").document["machines"]
    assert (row["id"], row["state"], row["seen"], row["projects"]) == (credential.identity, "offline", None, [])
    taken = exeora.inline("machine", "add", "laptop", "--json")
    assert (taken.code, taken.error["reason"]) == (2, "machine_exists")
    written = exeora.inline("machine", "add", "build", "--out", "build.exeora")
    assert written.out == "build.exeora\n"
    assert "exf_" not in written.err
    assert stat.S_IMODE((tmp_path / "build.exeora").stat().st_mode) == 0o600
    assert load_credential(tmp_path / "build.exeora", "machine").name == "build"
    revoked = exeora.inline("machine", "revoke", "laptop", "--json").document["machine"]
    assert (revoked["state"], revoked["id"]) == ("revoked", credential.identity)
    states = {m["name"]: m["state"] for m in exeora.inline("machine", "list", "--json").document["machines"]}
    assert states == {"laptop": "revoked", "build": "offline"}
    unknown = exeora.inline("machine", "revoke", "nobody", "--json")
    assert unknown.error["reason"] == "unknown_machine"
    keys = places.data / "fleet" / "keys.json"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert not any(secret in json.dumps(states) for secret in SECRETS)


def test_a_person_reads_rows(exeora: CommandLine):
    added = exeora.inline("machine", "add", "laptop")
    assert added.out.startswith("exf_")
    assert added.out.count("\n") == 1
    assert added.err == "exeora: on that machine: exeora connect - and paste this line; it is shown only now\n"
    listed = exeora.inline("machine", "list")
    assert listed.out.split()[1:] == ["laptop", "offline", "never", "seen"]
    assert exeora.inline("machine", "revoke", "laptop").out.split()[::2] == ["revoked", "laptop"]
    for words in (["-w", "x", "list"], ["--project", "x", "list"]):
        assert exeora.inline("machine", *words).code == 2


@pytest.fixture
def running(fleet_home: FleetHome) -> Iterator[Keys]:
    """A gateway's server runs."""
    keys = fleet_home.ensure_keys()
    address = fleet_home.load_address()
    assert address is not None
    with closing(fleet_home.start_embedded(keys, address)):
        yield keys


def test_what_is_there_is_online_with_its_projects(exeora: CommandLine, running, machine_app, make_repository):
    project = machine_app.inventory.register_project(make_repository("app"), exact=False)[0]
    text = exeora.inline("machine", "add", "laptop", "--json").document["credential"]
    with connected(machine_app, parse_credential(text, "machine")):

        def row():
            return exeora.inline("machine", "list", "--json").document["machines"][0]

        assert eventually(lambda: row()["projects"], 5)
        found = row()
        assert found["state"] == "online"
        assert found["projects"] == [{"id": project.id, "slug": "app"}]
        assert found["version"]
        assert found["platform"]
        assert found["seen"].endswith("+00:00")
    assert row()["state"] == "offline"
    assert row()["projects"] == [{"id": project.id, "slug": "app"}]


def test_replacing_cuts_off_what_uses_the_old_one(exeora: CommandLine, running, machine_app):
    first = parse_credential(exeora.inline("machine", "add", "laptop", "--json").document["credential"], "machine")
    with connected(machine_app, first) as machine:
        done = exeora.inline("machine", "add", "laptop", "--replace", "--json")
        second = parse_credential(done.document["credential"], "machine")
        machine.join(5)
        assert machine.error is not None
        assert machine.error.reason == "credential_refused"
    assert second.identity == first.identity
    assert second.line.seed != first.line.seed
    with connected(machine_app, second):
        assert exeora.inline("machine", "list", "--json").document["machines"][0]["state"] == "online"


def test_a_revocation_that_was_cut_short_is_completed_by_the_next_command(exeora: CommandLine, running, machine_app):
    """Killed between writing it down and telling the servers."""
    credential = parse_credential(exeora.inline("machine", "add", "laptop", "--json").document["credential"], "machine")
    with connected(machine_app, credential) as machine:
        home = FleetHome(find_places())
        with operate(home, running) as operation:
            bucket = Bucket(operation.state, MACHINES_BUCKET)
            entry = bucket.list()[credential.identity]
            record = json.loads(entry.value or b"")
            bucket.put(credential.identity, json.dumps({**record, "revoked": time.time()}).encode(), entry.revision)
        assert machine.error is None
        exeora.inline("machine", "list")
        machine.join(5)
        assert machine.error is not None
        assert machine.error.reason == "credential_refused"


def test_the_port_is_kept_and_the_address_can_be_said(fleet_home: FleetHome, exeora: CommandLine):
    exeora.inline("machine", "add", "laptop")
    address = fleet_home.load_address()
    assert address is not None
    assert address.port > 0
    urls = parse_credential(exeora.inline("machine", "add", "b", "--json").document["credential"], "machine").urls
    assert urls == (f"nats://127.0.0.1:{address.port}",)
    done = exeora.inline("machine", "add", "c", "--url", "tls://fleet.example.com:7374", "--json").document
    assert parse_credential(done["credential"], "machine").urls == ("tls://fleet.example.com:7374",)
    assert exeora.inline("machine", "add", "d", "--url", "http://x", "--json").error["reason"] == "wrong_value"


def test_servers_of_others_are_not_started_here(fleet_home: FleetHome, monkeypatch):
    monkeypatch.setattr("exeora_ws.fleet.home._CONNECT_SECONDS", 0.5)
    keys = fleet_home.ensure_keys()
    fleet_home.store_address(FleetAddress(urls=("nats://127.0.0.1:1",)))
    with pytest.raises(ExecutorOffline) as told, operate(fleet_home, keys):
        pass
    assert told.value.reason == "fleet_unreachable"
    assert not (fleet_home.folder / "nats").exists()


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\nb", "\x1b[2J"])
def test_a_name_that_is_none_is_refused(exeora: CommandLine, name: str):
    assert exeora.inline("machine", "add", name, "--json").error["reason"] == "wrong_value"


def make_text(keys: Keys) -> str:
    from exeora_ws.fleet.wire import new_machine_id

    return keys.make_machine(new_machine_id(), "laptop", ("nats://127.0.0.1:1",)).to_text()


def test_a_credential_is_one_line_and_reads_back(keys: Keys):
    text = make_text(keys)
    assert text.isascii()
    assert len(text.split()) == 1
    credential = parse_credential(f"  {text}\n", "machine")
    assert isinstance(credential, Credential)
    assert credential.to_text() == text


@pytest.mark.parametrize("broken", ["", "exf_", "exf_!!!", "exo_abc", "exf_e30", "exf_W10", "half"])
def test_what_is_no_credential_is_refused_and_not_repeated(keys: Keys, exeora: CommandLine, broken: str):
    text = make_text(keys)
    given = text[: len(text) // 2] if broken == "half" else broken
    with pytest.raises(InvalidArguments) as refused:
        parse_credential(given, "machine")
    assert refused.value.reason == "bad_credential"
    done = exeora.inline("connect", given or "exf_", "--json")
    assert done.code == 2
    assert "eyJ" not in done.err


def test_a_gateways_credential_is_no_machines(keys: Keys):
    text = keys.make_gateway("g", ("nats://127.0.0.1:1",)).to_text()
    with pytest.raises(InvalidArguments):
        parse_credential(text, "machine")
    assert parse_credential(text, "gateway").state is not None


def test_connect_says_what_it_needs(exeora: CommandLine, tmp_path: Path):
    assert exeora.inline("connect", "--json").error["reason"] == "missing_credential"
    assert exeora.inline("connect", "--credential", "none", "--json").error["reason"] == "missing_credential"
    (tmp_path / "f").write_text("exf_x")
    assert exeora.inline("connect", "exf_x", "--credential", "f", "--json").error["reason"] == "usage"
    assert exeora.inline("connect", "-", "--json", stdin="exf_nothing\n").error["reason"] == "bad_credential"


@pytest.mark.parametrize("words", ["connect", "machine list", "machine add x", "machine revoke x"])
def test_without_the_extra_the_line_that_installs_it_is_said(exeora: CommandLine, monkeypatch, words: str):
    monkeypatch.setattr("exeora_ws.fleet.find_spec", lambda name: None if name == "nats" else object())
    done = exeora.inline(*words.split())
    assert done.code == 1
    assert done.err.splitlines() == [
        "exeora: several machines need more than is installed here (nats)",
        "hint: pip install 'exeora-ws[fleet]'",
    ]


def test_keys_that_cannot_be_read_are_not_made_anew(fleet_home: FleetHome):
    fleet_home.ensure_keys()
    (fleet_home.folder / "keys.json").write_text("{")
    with pytest.raises(ToolFailed) as refused:
        fleet_home.ensure_keys()
    assert refused.value.reason == "keys_unusable"
    assert (fleet_home.folder / "keys.json").read_text() == "{"
