"""Real servers, in this process and as processes of their own, and real clients."""

import logging
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from exeora_ws.app import open_app
from exeora_ws.serve.conversation import Conversation, Visitor
from exeora_ws.serve.log import keep_log
from exeora_ws.tools.call import Face
from mcp import Client, StdioServerParameters

from support import mcp_server

PROGRAM = Path(mcp_server.__file__)
TOP = PROGRAM.parents[2]
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


@pytest.fixture
def program(environment):
    """The command line of a server."""
    return lambda *arguments: [sys.executable, str(PROGRAM), *arguments]


def _mode(era):
    """The later era as a client would come to it: `auto` asks for the server's description first."""
    return "auto" if era == "2026-07-28" else era


@pytest.fixture
def connect(sealed):
    """Connect the SDK's client to a conversation in this process."""

    @asynccontextmanager
    async def connected(era, scope="all", **options):
        app = mcp_server.open_fixture()
        visitor = Visitor(Face.STDIO, mcp_server.find_scope(app, scope), "session-1")
        conversation = Conversation(app.calls, lambda _ctx: visitor, manual=mcp_server.MANUAL)
        forget = app.news.subscribe(conversation.notify_tools_changed)
        async with anyio.create_task_group() as beside:
            beside.start_soon(conversation.announce)
            async with Client(conversation.server, mode=_mode(era), cache=None, **options) as client:
                assert client.protocol_version == ("2025-11-25" if era == "legacy" else era)
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
def connect_stdio(program, environment):
    """Start a server on stdio and connect the SDK's client to it."""

    @asynccontextmanager
    async def connected(era, scope="all", **options):
        command, *arguments = program("stdio", scope)
        server = StdioServerParameters(command=command, args=arguments, env=environment)
        async with Client(server, mode=_mode(era), cache=None, **options) as client:
            assert client.protocol_version == ("2025-11-25" if era == "legacy" else era)
            yield client

    return connected
