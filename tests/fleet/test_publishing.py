"""What a machine has, as the fleet knows it: at once, also when another process changes it, also while it sleeps."""

import json
import time
from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.fleet.buckets import Bucket
from exeora_ws.fleet.permissions import INVENTORY_BUCKET
from exeora_ws.settings import find_places

from support.fleet import Hand, connected, find_record, make_credential
from support.processes import eventually


@pytest.fixture
def places(tmp_path: Path):
    return find_places(
        {"EXEORA_DATA_DIR": str(tmp_path / "machine"), "EXEORA_CONFIG_PATH": str(tmp_path / "conf" / "config.json")}
    )


@pytest.fixture
def app(places, sealed) -> App:
    return open_app(places)


@pytest.fixture
def project(app: App, make_repository):
    return app.inventory.register_project(make_repository("app"), exact=False)[0]


def test_projects_workspaces_and_policy_are_there_and_stay_when_it_sleeps(hand: Hand, app: App, project):
    (project.root / "exeora.toml").write_text('deny = ["rm"]\n')
    credential = make_credential(hand)
    with connected(app, credential) as machine:
        assert eventually(lambda: find_record(hand, machine.id, project.id), 5)
    record = find_record(hand, credential.identity, project.id)
    assert record is not None
    assert (record.machine, record.slug, record.name) == (credential.identity, "app", "app")
    (main,) = record.workspaces
    assert (main.slug, main.branch, main.available, main.path) == ("main", "main", True, str(project.root))
    assert record.policy.deny == ["rm"]
    assert abs(record.at - time.time() * 1000) < 60_000
    (known,) = hand.roster.list(hand.line)
    assert known.online is False
    assert known.presence is not None
    assert known.presence.gone is True
    assert known.projects == ((project.id, "app"),)


def test_changes_of_other_processes_are_published_within_a_second(
    hand: Hand, places, app: App, project, make_repository
):
    other = open_app(places)
    with connected(app, make_credential(hand)) as machine:
        assert eventually(lambda: find_record(hand, machine.id, project.id), 5)
        began = time.monotonic()
        second = other.inventory.register_project(make_repository("second"), exact=False)[0]
        assert eventually(lambda: find_record(hand, machine.id, second.id), 5)
        assert time.monotonic() - began < 2
        (project.root / "exeora.toml").write_text('mode = "read_only"\n')

        def mode():
            record = find_record(hand, machine.id, project.id)
            return record is not None and record.policy.mode == "read_only"

        began = time.monotonic()
        assert eventually(mode, 5)
        assert time.monotonic() - began < 2
        other.inventory.remove_project(second, force=True)
        assert eventually(lambda: find_record(hand, machine.id, second.id) is None, 5)
        assert find_record(hand, machine.id, project.id) is not None


def test_a_workspace_made_by_a_call_is_there_when_the_call_has_ended(hand: Hand, app: App, project):
    with connected(app, make_credential(hand)) as machine:
        hand.live()
        heard = hand.call(machine.id, project.id, "create_workspace", {"branch": "feature"})
        assert heard.done(20)["structured"]["created"] is True

        def slugs():
            record = find_record(hand, machine.id, project.id)
            return record is not None and [workspace.slug for workspace in record.workspaces] == ["main", "feature"]

        assert eventually(slugs, 2)


def test_what_was_removed_while_it_slept_is_taken_back(hand: Hand, places, app: App, project, make_repository):
    credential = make_credential(hand)
    second = app.inventory.register_project(make_repository("second"), exact=False)[0]
    with connected(app, credential) as machine:
        assert eventually(lambda: find_record(hand, machine.id, second.id), 5)
    app.inventory.remove_project(second, force=True)
    with connected(open_app(places), credential) as machine:
        assert eventually(lambda: find_record(hand, machine.id, second.id) is None, 5)
        assert find_record(hand, machine.id, project.id) is not None
    noted = json.loads((places.data / "fleet" / "published.json").read_text())
    assert noted == {"machine": credential.identity, "projects": [project.id]}


def test_nothing_is_written_while_nothing_changes(hand: Hand, app: App, project):
    with connected(app, make_credential(hand)) as machine:
        assert eventually(lambda: find_record(hand, machine.id, project.id), 5)
        bucket, key = Bucket(hand.state, INVENTORY_BUCKET), f"{machine.id}.{project.id}"
        before = bucket.find(key)
        time.sleep(1.2)
        assert bucket.find(key) == before
