"""One fleet for all tests here: two gateways, machines `one` (projects `app`, `web`) and `two` (another `app`)."""

import pytest
from exeora_ws.fleet.dispatch import Machines

from support.gateway import ERAS, Fleet, run_world
from support.scripted import Script
from support.upstream_world import program


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture(scope="package")
def world(tmp_path_factory):
    """The fleet; it ends before the next folder's tests, some of which look at all processes of this one."""
    servers = {"one": {"plain": program("plain")}, "two": {"plain": program("plain")}}
    with run_world(tmp_path_factory.mktemp("fleet"), servers=servers) as running:
        yield running


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A nats-server without gateways or machines."""
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    yield fleet
    fleet.close()


@pytest.fixture
def script(fleet):
    with fleet.connected() as (lines, _):
        yield Script(lines.calls)


@pytest.fixture
def machines(fleet):
    with fleet.connected() as (lines, now_ms):
        made = Machines(lines.calls, fleet.gateway_id, now_ms, lambda: None)
        made.open()
        yield made
        made.close()
