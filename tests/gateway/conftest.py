"""One fleet for the tests of a file: two gateways, machines `one` (projects `app`, `web`) and `two` (another `app`)."""

import os
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from support.gateway import ERAS, Fleet, Gateway, Machine, add_project, eventually
from support.upstream_world import program


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@contextmanager
def own_environment(environment):
    """Have this process run with one host's environment: whatever is made in it is that host's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


@dataclass
class World:
    """A running fleet."""

    fleet: Fleet
    one: Machine
    two: Machine
    gateways: list[Gateway]
    secret: str
    projects: dict

    @property
    def gateway(self):
        return self.gateways[0]

    def host(self, name):
        return self.fleet.hosts[name]


@contextmanager
def run_world(folder, *, gateways=2, servers=()):
    fleet = Fleet(folder)
    try:
        with own_environment(fleet.hub.environment):
            projects = {}
            for name, slugs in (("one", ("app", "web")), ("two", ("app",))):
                host = fleet.make_host(name)
                if name in servers:
                    host.write_servers(servers[name])
                projects[name] = {slug: add_project(host, slug) for slug in slugs}
        running = [fleet.start_gateway() for _ in range(gateways)]
        credentials = {name: fleet.add_machine(name) for name in ("one", "two")}
        one = fleet.start_machine("one", credentials["one"])
        eventually(lambda: "app" in list_slugs(fleet))
        two = fleet.start_machine("two", credentials["two"])
        eventually(lambda: len(list_slugs(fleet)) == 3)
        yield World(fleet, one, two, running, fleet.make_token(), projects)
    finally:
        fleet.close()


def list_slugs(fleet):
    from exeora_ws.fleet.buckets import SLUGS_BUCKET, Bucket
    from exeora_ws.fleet.home import operate
    from exeora_ws.fleet.slugs import list_slugs as read

    with operate(fleet.home, fleet.keys) as operation:
        return read(Bucket(operation.state, SLUGS_BUCKET))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    servers = {"one": {"plain": program("plain")}, "two": {"plain": program("plain")}}
    with run_world(tmp_path_factory.mktemp("fleet"), servers=servers) as running:
        yield running
