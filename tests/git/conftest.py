"""The contract runs over each way of asking: git alone, libgit2 alone (a machine without git), and both as shipped."""

from collections.abc import Callable
from pathlib import Path

import pytest
from exeora_ws.git.engine import Engine
from exeora_ws.git.executable import ExecutableRepository
from exeora_ws.git.libgit2 import Libgit2Repository
from exeora_ws.git.opening import require_checkout

from support.repositories import git

Opener = Callable[[Path], Engine]
ENGINES = ("git", "libgit2")


def open_with(engine: str, path: Path) -> Engine:
    place = require_checkout(path)
    if engine == "git":
        return ExecutableRepository(place)
    return Libgit2Repository(place, ExecutableRepository(place) if engine == "both" else None)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def opened(engine: str) -> Opener:
    """Open a repository with the engine under test."""
    return lambda path: open_with(engine, path)


@pytest.fixture
def opened_by_git() -> Opener:
    """For what only the git executable can do."""
    return lambda path: open_with("git", path)


@pytest.fixture
def trace() -> Callable[[Path], dict[str, object]]:
    """Everything in a repository that a failed call must leave as it was."""

    def take(top: Path) -> dict[str, object]:
        common = Path(git(top, "rev-parse", "--path-format=absolute", "--git-common-dir"))
        return {
            "refs": git(top, "for-each-ref"),
            "config": (common / "config").read_bytes(),
            "head": (common / "HEAD").read_bytes(),
            "admin": sorted(str(p.relative_to(common)) for p in common.glob("worktrees/**/*")),
            "locks": sorted(str(p) for p in common.rglob("*.lock")),
            "status": git(top, "status", "--porcelain") if not _is_bare(top) else "",
        }

    return take


def _is_bare(top: Path) -> bool:
    return git(top, "rev-parse", "--is-inside-work-tree", check=False) != "true"
