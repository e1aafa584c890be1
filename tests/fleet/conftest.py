"""One nats-server for each test that asks for one; nothing of it is left."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from exeora_ws.fleet.buckets import ensure_buckets
from exeora_ws.fleet.credentials import Keys, make_keys
from exeora_ws.fleet.server import NatsServer

from support.fleet import Hand, operating, run_server


@pytest.fixture(scope="session")
def keys() -> Keys:
    return make_keys()


@pytest.fixture
def server(tmp_path: Path, keys: Keys) -> Iterator[NatsServer]:
    with run_server(tmp_path / "nats", keys) as running:
        yield running
    assert not running.running
    assert not os.path.exists(f"/proc/{running.pid}")


@pytest.fixture
def hand(server: NatsServer, keys: Keys) -> Iterator[Hand]:
    """A gateway's side."""
    with operating(keys, (server.url,)) as hand:
        ensure_buckets(hand.state)
        yield hand
