"""Every test runs sealed off: its own HOME and XDG folders, its own Git identity, nothing from the machine's user."""

import compileall
import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.repositories import RepositoryMaker

_PASSED_ON = ("PATH", "LANG", "TERM", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT", "PYTEST_XDIST_WORKER", "CI")


TOP = Path(__file__).parents[1]
COMPILED = ("exeora_ws", "cli/exeora_cli", "tests/support")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the code under test, once for all workers: its sealed children would else compile it at every start."""
    if not hasattr(config, "workerinput"):
        for folder in COMPILED:
            compileall.compile_dir(TOP / folder, quiet=2)


def pytest_collection_finish() -> None:
    """Leave what was loaded to collect thousands of tests out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def sealed_environment(home: Path) -> dict[str, str]:
    """The whole environment of a test and of every process it starts."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    for folder in ("config", "data", "state", "cache", "run"):
        (home / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    environment |= {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "TMPDIR": str(home / "cache"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return environment


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The sealed HOME of this test."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (folder / ".gitconfig").write_text(
        "[user]\n\tname = Ada Test\n\temail = ada@example.invalid\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n'
    )
    return folder


@pytest.fixture(autouse=True)
def sealed(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Seal this process off as well; gives the environment for children."""
    environment = sealed_environment(home)
    for name in list(os.environ):
        if name not in environment and name not in ("PYTEST_CURRENT_TEST", "PYTEST_VERSION"):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A server in this process keeps a log of its own; the next test's server shall not write into this one's."""
    yield
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, logging.FileHandler) and h.baseFilename != os.devnull]:
        root.removeHandler(handler)
        handler.close()


@pytest.fixture
def make_repository(tmp_path: Path, sealed: dict[str, str]) -> RepositoryMaker:
    """Make real repositories under this test's folder."""
    return RepositoryMaker(tmp_path / "repositories")
