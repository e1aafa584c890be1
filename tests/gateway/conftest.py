"""One fleet for all tests here: two gateways, machines `one` (projects `app`, `web`) and `two` (another `app`)."""

import pytest

from support.gateway import ERAS, run_world
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
