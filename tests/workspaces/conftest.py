"""A core over a real repository, sealed off."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.tools.call import Caller, Face, Outcome, RawCall, Scope
from exeora_ws.workspaces.place import Project

from support.killed import Forker
from support.repositories import RepositoryMaker

Caller_ = Callable[..., Outcome]


@pytest.fixture
def app(sealed: dict[str, str]) -> App:
    return open_app()


@pytest.fixture
def repository(make_repository: RepositoryMaker) -> Path:
    return make_repository("app", commits=3)


@pytest.fixture
def project(app: App, repository: Path) -> Project:
    return app.inventory.register_project(repository, exact=False)[0]


@pytest.fixture
def call(app: App, project: Project) -> Caller_:
    """Call a tool on the project, as the command line would."""

    def make(tool: str, **arguments: object) -> Outcome:
        if "from_" in arguments:
            arguments["from"] = arguments.pop("from_")
        caller = Caller(Face.CLI, "test", "session", Scope(bound=project.id))
        return app.calls.make(RawCall(tool, arguments), caller)

    return make


@pytest.fixture
def result(call: Caller_) -> Callable[..., dict]:
    """Call a tool that must succeed; gives its result."""

    def make(tool: str, **arguments: object) -> dict:
        outcome = call(tool, **arguments)
        assert outcome.error is None, outcome.error.to_dict()
        return outcome.to_dict()

    return make


@pytest.fixture
def refusal(call: Caller_) -> Callable[..., dict]:
    """Call a tool that must fail; gives its error."""

    def make(tool: str, **arguments: object) -> dict:
        outcome = call(tool, **arguments)
        assert outcome.error is not None, outcome.to_dict()
        assert outcome.error.code != "INTERNAL_ERROR"
        return outcome.error.to_dict()

    return make


@pytest.fixture
def run(sealed: dict[str, str]) -> Iterator[Forker]:
    forker = Forker(sealed)
    yield forker
    forker.close()
