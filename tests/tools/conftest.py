"""The whole way of a call over a real repository and a real database."""

from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.workspaces.place import Project

from support.repositories import RepositoryMaker


@pytest.fixture
def app(sealed: dict[str, str]) -> App:
    return open_app()


@pytest.fixture
def repository(make_repository: RepositoryMaker) -> Path:
    return make_repository("app")


@pytest.fixture
def project(app: App, repository: Path) -> Project:
    return app.inventory.register_project(repository, exact=False)[0]
