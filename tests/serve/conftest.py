"""Real servers, in this process and as processes of their own, and real clients."""

import json
import logging
import os
import signal
import subprocess
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
import pytest
from exeora_ws.app import App, open_app
from exeora_ws.serve.conversation import Conversation, Visitor
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.service import Service
from exeora_ws.serve.tokens import TokenBook
from exeora_ws.settings import find_places
from exeora_ws.tools.call import Face
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from conftest import sealed_environment
from support import mcp_server
from support.mcp_server import command_line
from support.repositories import RepositoryMaker

TOP = Path(mcp_server.__file__).parents[2]
ERAS = ("legacy", "2026-07-28")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture
def environment(sealed):
    return {**sealed, "PYTHONPATH": str(TOP)}


@pytest.fixture
def app(sealed):
    return open_app()


@pytest.fixture
def project(app, make_repository):
    """A registered project, `app`."""
    return app.inventory.register_project(make_repository("app"), exact=False)[0]


def _mode(era):
    """The later era as a client would come to it: `auto` asks for the server's description first."""
    return "auto" if era == "2026-07-28" else era


@asynccontextmanager
async def connect_to(target, era, **options):
    """Connect the SDK's client, in the era that was asked for."""
    async with Client(target, mode=_mode(era), cache=None, **options) as client:
        assert client.protocol_version == ("2025-11-25" if era == "legacy" else era)
        yield client


@pytest.fixture
def connect(sealed):
    """Connect the SDK's client to a conversation in this process."""

    @asynccontextmanager
    async def connected(era, scope="all", **options):
        app = mcp_server.open_fixture()
        visitor = Visitor(Face.STDIO, mcp_server.find_scope(app, scope), "session-1")
        conversation = Conversation(Service(app.calls, mcp_server.MANUAL), lambda _ctx: visitor)
        forget = app.news.subscribe(conversation.notify_tools_changed)
        async with anyio.create_task_group() as beside:
            beside.start_soon(conversation.announce)
            async with connect_to(conversation.server, era, **options) as client:
                yield client
            beside.cancel_scope.cancel()
        forget()

    before = list(logging.getLogger().handlers)
    keep_log(open_app().places)
    yield connected
    for handler in set(logging.getLogger().handlers) - set(before):
        logging.getLogger().removeHandler(handler)
        handler.close()


@pytest.fixture
def connect_stdio(environment):
    """Start a server on stdio and connect the SDK's client to it."""

    @asynccontextmanager
    async def connected(era, scope="all", **options):
        command, *arguments = command_line("stdio", scope)
        server = StdioServerParameters(command=command, args=arguments, env=environment)
        async with connect_to(server, era, **options) as client:
            yield client

    return connected


@dataclass
class Site:
    """A server over HTTP, and the same user's core in this process."""

    process: subprocess.Popen
    url: str
    app: App
    book: TokenBook

    def make_token(self, **options):
        return self.book.create("test", **options)[1]

    def headers(self, secret):
        return {"Authorization": f"Bearer {secret}"}

    @asynccontextmanager
    async def connect(self, era, secret, path="/mcp", **options):
        async with httpx2.AsyncClient(headers=self.headers(secret), timeout=30) as http:
            target = streamable_http_client(self.url + path, http_client=http)
            async with connect_to(target, era, **options) as client:
                yield client

    def closed_sessions(self):
        record = self.app.places.data / "closed.txt"
        return record.read_text().split() if record.exists() else []

    def events(self):
        """Whatever it has told since it was ready; only when it has ended."""
        return [json.loads(line) for line in self.process.stdout.read().splitlines()]


@contextmanager
def run_site(environment, *arguments):
    """Start a server over HTTP on a free port."""
    places = find_places(environment)
    app = open_app(places)
    command = command_line("http", "0", *arguments)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            ready = json.loads(process.stdout.readline())
            assert ready["event"] == "ready"
            yield Site(process, ready["url"], app, TokenBook(places))
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(8)
                except subprocess.TimeoutExpired:
                    process.kill()


@pytest.fixture
def start_site(environment):
    """Start a server of this test's own."""
    return lambda *arguments: run_site(environment, *arguments)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """One server for the tests of a file, with two projects, `alpha` and `beta`."""
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\n\tname = Ada Test\n\temail = ada@example.invalid\n")
    environment = {
        **sealed_environment(home),
        "PYTHONPATH": str(TOP),
        "EXEORA_DATA_DIR": str(home / "data" / "exeora"),
        "EXEORA_CONFIG_PATH": str(home / "config" / "config.json"),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        make = RepositoryMaker(home / "repositories")
        app = open_app(find_places(environment))
        for name in ("alpha", "beta"):
            app.inventory.register_project(make(name), exact=False)
    with run_site(environment) as running:
        yield running
