"""A whole fleet on loopback, as processes: a nats-server, gateways, machines with projects, clients of both eras."""

import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from exeora_ws.app import App, open_app
from exeora_ws.errors import ExeoraError
from exeora_ws.fleet.buckets import SLUGS_BUCKET, TOKENS_BUCKET, Bucket, ensure_buckets
from exeora_ws.fleet.clock import FleetClock
from exeora_ws.fleet.gateway import Lines, connect_lines
from exeora_ws.fleet.home import FleetAddress, FleetHome, operate
from exeora_ws.fleet.server import NatsServer, start_server
from exeora_ws.fleet.server_config import Cluster, ServerOptions
from exeora_ws.fleet.slugs import list_slugs
from exeora_ws.fleet.tokens import TokenStore
from exeora_ws.fleet.wire import AUDIT_STREAM, new_gateway_id
from exeora_ws.settings import find_places
from exeora_ws.workspaces.place import Project
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from nats.aio.client import Client as NatsClient

from conftest import sealed_environment
from support.commandline import COMMAND, CommandLine, Done, child_environment
from support.repositories import RepositoryMaker

ERAS = ("legacy", "2026-07-28")
_IDENTITY = "[user]\n\tname = Ada Test\n\temail = ada@example.invalid\n"


def find_free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


class Host:
    """One user's places on one computer."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True)
        (home / ".gitconfig").write_text(_IDENTITY)
        self.home = home
        self.environment = {
            **sealed_environment(home),
            "EXEORA_DATA_DIR": str(home / "data" / "exeora"),
            "EXEORA_CONFIG_PATH": str(home / "config" / "config.json"),
        }
        self.places = find_places(self.environment)
        self.exeora = CommandLine(home, self.environment)

    def write_servers(self, servers: dict[str, Any]) -> None:
        """Set the user's upstream servers."""
        self.places.mcp_file.write_text(json.dumps({"mcpServers": servers}))

    def open_app(self) -> App:
        return open_app(self.places)


class Running:
    """A process of ours that tells events, one document a line."""

    def __init__(self, host: Host, *words: str, stdin: bytes = b"") -> None:
        self.words = words
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=host.home,
            env=child_environment(host.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(stdin)
        self.process.stdin.close()
        self.events: list[dict[str, Any]] = []
        self._fresh: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._fresh.put(json.loads(line))
        self._fresh.put(None)

    def wait(self, kind: str, seconds: float = 20.0) -> dict[str, Any]:
        """Wait for an event of a kind; gives it."""
        end = time.monotonic() + seconds
        while True:
            event = self._fresh.get(timeout=max(0.01, end - time.monotonic()))
            if event is None:
                assert self.process.stderr is not None
                raise AssertionError(f"{self.words} has ended: {self.process.stderr.read().decode()}")
            self.events.append(event)
            if event["event"] == kind:
                return event

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, seconds: float = 10.0) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None and stream is self.process.stderr:
                stream.close()
        return code

    def discard(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Gateway(Running):
    """A running `exeora gateway`."""

    def __init__(self, host: Host, *words: str) -> None:
        super().__init__(host, "gateway", "--port", "0", "--json", *words)
        self.ready = self.wait("ready")
        self.url: str = self.ready["url"]

    @asynccontextmanager
    async def connect(self, era: str, secret: str, path: str = "/mcp", **options: Any) -> AsyncIterator[Client]:
        mode = "auto" if era == "2026-07-28" else era
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            target = streamable_http_client(self.url + path, http_client=http)
            async with Client(target, mode=mode, cache=None, **options) as client:
                assert client.protocol_version == ("2025-11-25" if era == "legacy" else era)
                yield client


class Machine(Running):
    """A running `exeora connect`."""

    def __init__(self, host: Host, credential: str | None) -> None:
        words = ("connect", "--json") if credential is None else ("connect", "-", "--json")
        super().__init__(host, *words, stdin=b"" if credential is None else credential.encode() + b"\n")
        self.id: str = self.wait("connected")["machine"]


class Fleet:
    """A fleet in a folder: `hub` has the keys, beside it stand the nats-servers; every machine is a host of its own."""

    def __init__(self, folder: Path, servers: int = 1) -> None:
        self.folder = folder
        self.hub = Host(folder / "hub")
        self.home = FleetHome(self.hub.places)
        self.keys = self.home.ensure_keys()
        self.ports = [find_free_port() for _ in range(servers)]
        self._routes = tuple(f"127.0.0.1:{find_free_port()}" for _ in range(servers if servers > 1 else 0))
        self.servers: dict[int, NatsServer] = {}
        self.hosts: dict[str, Host] = {}
        self._leaving = ExitStack()
        self.home.store_address(FleetAddress(urls=self.urls))
        for number in range(servers):
            self.start_server(number)
        self._ensure_buckets()

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"nats://127.0.0.1:{port}" for port in self.ports)

    def start_server(self, number: int = 0) -> None:
        cluster = None
        if self._routes:
            cluster = Cluster("fleet", int(self._routes[number].rpartition(":")[2]), self._routes)
        options = ServerOptions(
            self.folder / f"nats-{number}", port=self.ports[number], name=f"n{number}", cluster=cluster
        )
        self.servers[number] = start_server(self.keys, options)

    def kill_server(self, number: int = 0) -> None:
        server = self.servers.pop(number)
        os.kill(server.pid, signal.SIGKILL)
        assert server.wait_for_end(5)
        server.close()

    def _ensure_buckets(self) -> None:
        """Make the buckets, as soon as the servers have found each other."""

        def ensure() -> bool:
            with suppress(ExeoraError), self.connected() as (lines, _):
                ensure_buckets(lines.state, replicas=len(self.ports))
                return True
            return False

        eventually(ensure, 30)

    def find_leader(self) -> int:
        """Which server leads the stream of the audit."""

        async def ask(client: NatsClient) -> str:
            group = (await client.jetstream(timeout=2).stream_info(AUDIT_STREAM)).cluster
            return str(group.leader) if group is not None else ""

        with self.connected() as (lines, _):
            return int(lines.state.run(ask, 5).removeprefix("n"))

    def start_gateway(self, *words: str) -> Gateway:
        gateway = Gateway(self.hub, *(words or self.name_servers()))
        self._leaving.callback(gateway.discard)
        return gateway

    def name_servers(self) -> tuple[str, ...]:
        """Give the options of `exeora gateway` that name the servers."""
        return tuple(word for url in self.urls for word in ("--nats", url))

    def make_host(self, name: str) -> Host:
        self.hosts[name] = Host(self.folder / name)
        return self.hosts[name]

    def add_machine(self, name: str) -> str:
        """Give a new machine's credential."""
        with self.operating() as roster:
            return roster.add(name, self.urls).to_text()

    @contextmanager
    def operating(self) -> Iterator[Any]:
        with operate(self.home, self.keys) as operation:
            yield operation.roster

    def add_own_project(self, host: str, name: str) -> Project:
        """Register a new repository on a host."""
        return add_project(self.hosts[host], name)

    def start_again(self, name: str) -> Machine:
        """Start a machine that has been connected before: it has kept its credential."""
        machine = Machine(self.hosts[name], None)
        self._leaving.callback(machine.discard)
        return machine

    def start_machine(self, name: str, credential: str) -> Machine:
        machine = Machine(self.hosts[name], credential)
        self._leaving.callback(machine.discard)
        return machine

    @contextmanager
    def connected(self) -> "Iterator[tuple[Lines, Callable[[], int]]]":
        """Be a gateway; gives its connections and its clock."""
        clock = FleetClock()
        self.gateway_id = new_gateway_id()
        lines = connect_lines(self.keys.make_gateway("test", self.urls), self.gateway_id)
        try:
            lines.calls.accompany(clock.keep)
            clock.await_known(10)
            yield lines, clock.now_ms
        finally:
            lines.close()

    def run(self, *words: str, stdin: str = "") -> Done:
        """Run a command where the keys are."""
        return self.hub.exeora(*words, stdin=stdin)

    def make_token(self, **options: Any) -> str:
        lines = connect_lines(self.keys.make_gateway("test", self.urls), new_gateway_id())
        try:
            return TokenStore(Bucket(lines.state, TOKENS_BUCKET)).create("test", **options)[1]
        finally:
            lines.close()

    def close(self) -> None:
        self._leaving.close()
        for server in self.servers.values():
            server.close()


def add_project(host: Host, name: str) -> Project:
    """Make a repository and register it."""
    folder = RepositoryMaker(host.home / "repositories")(name)
    return host.open_app().inventory.register_project(folder, exact=False)[0]


def eventually(look: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Look until it is so; gives what was seen."""
    end = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


async def until(look: Callable[[], Any], seconds: float = 10.0) -> None:
    """As `eventually`, while the event loop goes on."""
    with anyio.fail_after(seconds):
        while not look():  # noqa: ASYNC110 - in another process
            await anyio.sleep(0.02)


async def until_true(ask: Callable[[], Awaitable[bool]], seconds: float = 15.0) -> None:
    """Ask until the answer is yes."""
    with anyio.fail_after(seconds):
        while not await ask():  # noqa: ASYNC110 - in another process
            await anyio.sleep(0.05)


def find_result(answer: Any) -> Any:
    """Give the structured content of a call that did not fail."""
    assert not answer.is_error, answer.structured_content
    return answer.structured_content


def find_error(answer: Any) -> Any:
    """Give the error of a call that failed."""
    assert answer.is_error, answer.structured_content
    return answer.structured_content["error"]


@contextmanager
def own_environment(environment: dict[str, str]) -> Iterator[None]:
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
    projects: dict[str, dict[str, Project]]

    @property
    def gateway(self) -> Gateway:
        return self.gateways[0]

    def host(self, name: str) -> Host:
        return self.fleet.hosts[name]


@contextmanager
def run_world(folder: Path, *, servers: dict[str, Any] | None = None) -> Iterator["World"]:
    """Run a fleet of two gateways and two machines: `one` with projects `app` and `web`, `two` with another `app`."""
    fleet = Fleet(folder)
    try:
        with own_environment(fleet.hub.environment):
            projects = {}
            for name, slugs in (("one", ("app", "web")), ("two", ("app",))):
                host = fleet.make_host(name)
                if servers and name in servers:
                    host.write_servers(servers[name])
                projects[name] = {slug: add_project(host, slug) for slug in slugs}
        running = [fleet.start_gateway(*fleet.name_servers(), *options) for options in ((), ("--toolset", "sandbox"))]
        credentials = {name: fleet.add_machine(name) for name in ("one", "two")}
        one = fleet.start_machine("one", credentials["one"])
        eventually(lambda: "app" in list_fleet_slugs(fleet))
        two = fleet.start_machine("two", credentials["two"])
        eventually(lambda: len(list_fleet_slugs(fleet)) == 3)
        yield World(fleet, one, two, running, fleet.make_token(), projects)
    finally:
        fleet.close()


def list_fleet_slugs(fleet: Fleet) -> dict[str, Any]:
    with operate(fleet.home, fleet.keys) as operation:
        return list_slugs(Bucket(operation.state, SLUGS_BUCKET))
