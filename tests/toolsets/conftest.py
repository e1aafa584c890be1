"""Each toolset three ways: over the core, and by the official client through the real command."""

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from exeora_ws.app import App, open_app, open_calls
from exeora_ws.cancellation import Cancellation
from exeora_ws.policy.verdict import REASONS
from exeora_ws.serve.results import show_outcome
from exeora_ws.tools.call import Caller, Calls, Face, RawCall, Scope
from exeora_ws.toolsets.engine.turn import TURN_REASONS
from exeora_ws.workspaces.place import Project
from mcp import Client, StdioServerParameters

from support.commandline import COMMAND, child_environment

_PARSING = {"missing_field", "unknown_field", "wrong_value"}


@dataclass
class Offer:
    """What a client would see of one toolset: calls go the whole way, answers are as MCP shows them."""

    app: App
    calls: Calls
    project: Project
    session: str = "session-1"
    defaults: dict[str, Any] = field(default_factory=dict)

    def __call__(self, tool: str, *, cancellation: Cancellation | None = None, **arguments: Any) -> dict[str, Any]:
        """The whole `CallToolResult`; its structured content is checked against the schema that was published."""
        caller = Caller(Face.STDIO, "test", self.session, Scope(bound=self.project.id), cancellation or Cancellation())
        outcome = self.calls.make(RawCall(tool, {**self.defaults, **arguments}), caller)
        answer = show_outcome(outcome)
        if not answer["isError"]:
            jsonschema.validate(answer["structuredContent"], self.calls.catalog[tool].output_schema)
        else:
            reason = answer["structuredContent"]["error"].get("reason")
            common = {"missing_field", "unknown_field", "wrong_value"}
            assert reason is None or reason in {*self.calls.catalog[tool].reasons, *common, *REASONS, *TURN_REASONS}, (
                reason
            )
        return answer

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self(tool, **arguments)
        assert not answer["isError"], answer["content"][0]["text"]
        return answer["structuredContent"]

    def text(self, tool: str, **arguments: Any) -> str:
        answer = self(tool, **arguments)
        assert not answer["isError"], answer["content"][0]["text"]
        return answer["content"][0]["text"]

    def refusal(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self(tool, **arguments)
        assert answer["isError"], answer
        return answer["structuredContent"]["error"]

    def as_session(self, session: str) -> "Offer":
        return Offer(self.app, self.calls, self.project, session, self.defaults)

    def within(self, **defaults: Any) -> "Offer":
        return Offer(self.app, self.calls, self.project, self.session, defaults)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def app(sealed) -> App:
    app = open_app()
    yield app
    app.close()


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository("app")


@pytest.fixture
def project(app: App, top: Path) -> Project:
    return app.inventory.register_project(top, exact=False)[0]


@pytest.fixture
def offer(app: App, project: Project):
    """Offer toolsets by name."""
    return lambda *names: Offer(app, open_calls(app, names), project)


@pytest.fixture
def connect(sealed, top: Path):
    """Start `exeora …` in the repository and connect the official client to it over stdio."""

    @asynccontextmanager
    async def connected(*words: str, folder: Path | None = None, **options: Any):
        server = StdioServerParameters(
            command=sys.executable,
            args=[*COMMAND[1:], *words],
            env=child_environment(sealed),
            cwd=folder or top,
        )
        async with Client(server, cache=None, **options) as client:
            yield client

    return connected
