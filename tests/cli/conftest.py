"""The command line over a real repository, sealed off."""

from pathlib import Path

import pytest

from support.commandline import CommandLine
from support.repositories import RepositoryMaker


@pytest.fixture
def repository(make_repository: RepositoryMaker) -> Path:
    return make_repository("app", commits=2)


@pytest.fixture
def exeora(repository: Path, sealed: dict[str, str]) -> CommandLine:
    """`exeora`, run in the repository's main worktree unless told otherwise."""
    return CommandLine(repository, sealed)


@pytest.fixture
def feature(exeora: CommandLine) -> Path:
    """The folder of a workspace `feat-x` on branch `feat/x`."""
    done = exeora.inline("create", "feat/x")
    assert done.code == 0, done.err
    return Path(done.out.removesuffix("\n"))
