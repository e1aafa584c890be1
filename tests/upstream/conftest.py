"""Real servers, started as users have them started: an mcp.json, a project, the product's own spawner."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from exeora_ws.processes.piped import spawn_piped
from exeora_ws.upstream.instance import Surroundings

from support.remote_upstream import Remote
from support.upstream_world import World


@pytest.fixture
def surroundings() -> Surroundings:
    return Surroundings(partial(spawn_piped, writable_stdin=True), lambda: dict(os.environ), start_seconds=20)


@pytest.fixture
def world(tmp_path: Path, surroundings: Surroundings) -> Iterator[World]:
    made = World(tmp_path, surroundings)
    yield made
    for upstreams in made.opened:
        upstreams.close()


@pytest.fixture
def remote() -> Iterator[Remote]:
    served = Remote()
    yield served
    served.close()
