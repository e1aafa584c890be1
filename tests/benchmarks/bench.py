"""Where a benchmark is measured: a sealed folder on a known file system, its inputs, its `exeora`."""

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from benchmarks.client import Client, serving
from benchmarks.command import Command, capture
from benchmarks.inputs import Inputs

T = TypeVar("T")
_ROOM_BYTES = 6_000_000_000
_GIT_CONFIG = "[user]\n\tname = Bench\n\temail = bench@example.invalid\n[init]\n\tdefaultBranch = main\n"


@dataclass(frozen=True, slots=True)
class World:
    """A person's home: configuration, data and managed workspaces of its own."""

    home: Path
    environment: Mapping[str, str]

    def exeora(self, *words: str, folder: Path) -> Command:
        """The command line as it is installed."""
        return Command((find_exeora(), *words), folder, self.environment)

    def git(self, *words: str, folder: Path) -> Command:
        """Git with its default configuration."""
        return Command((require_program("git"), *words), folder, self.environment)

    def program(self, *argv: str, folder: Path | None = None) -> Command:
        """Any other program, by path or by name."""
        return Command((require_program(argv[0]), *argv[1:]), folder or self.home, self.environment)

    @contextmanager
    def server(self, folder: Path, *words: str) -> Iterator[Client]:
        """Give `exeora mcp` for the project around a folder, warm."""
        with serving((find_exeora(), *words, "mcp"), folder, self.environment) as client:
            yield client

    @property
    def data(self) -> Path:
        """Where the registry is."""
        return Path(self.environment["EXEORA_DATA_DIR"])


@dataclass(slots=True)
class Bench:
    """One run.

    Args:
        folder: where everything measured lies; on the file system that the page names.
        quick: whether small inputs will do.
    """

    folder: Path
    quick: bool = False
    inputs: Inputs = field(init=False)
    _worlds: int = 0

    def __post_init__(self) -> None:
        self.inputs = Inputs()

    def size(self, whole: T, quick: T) -> T:
        """Choose a size."""
        return quick if self.quick else whole

    @contextmanager
    def world(self) -> Iterator[World]:
        """Give a new home; gone afterwards."""
        self._worlds += 1
        home = self.folder / f"world-{self._worlds}"
        for name in ("config", "data", "cache", "run"):
            (home / name).mkdir(parents=True, mode=0o700)
        (home / ".gitconfig").write_text(_GIT_CONFIG)
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "EXEORA_DATA_DIR": str(home / "data" / "exeora"),
            "TMPDIR": str(home / "cache"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        try:
            yield World(home, environment)
        finally:
            shutil.rmtree(home, ignore_errors=True)

    @contextmanager
    def checkout(self, world: World, files: int) -> Iterator[Path]:
        """Give a fresh clone of a generated repository, registered as a project."""
        with self.clone(world, files, f"app-{files}") as top:
            world.exeora("project", "add", ".", folder=top).check()
            yield top

    @contextmanager
    def clone(self, world: World, files: int, name: str) -> Iterator[Path]:
        """Give a fresh clone of a generated repository."""
        yield self.inputs.clone(files, world.home / name, world.environment)


@contextmanager
def open_bench(folder: Path | None, *, quick: bool) -> Iterator[Bench]:
    """Give a run its folder: `folder`, else memory where there is room, else the folder for temporary files."""
    parent = folder or _choose_folder()
    made = Path(tempfile.mkdtemp(prefix="exeora-bench-", dir=parent))
    try:
        yield Bench(made.resolve(), quick=quick)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _choose_folder() -> Path:
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM_BYTES:
        return memory
    return Path(tempfile.gettempdir())


def find_exeora() -> str:
    """Give the command that stands beside this Python, as pip installed it."""
    path = os.path.join(sysconfig.get_path("scripts"), "exeora")
    if not os.access(path, os.X_OK):
        sys.exit("exeora is not installed beside this Python: use `make bench`")
    return path


def require_program(name: str) -> str:
    """Give the path of a program; one of ours comes before those of the machine."""
    own = os.path.join(sysconfig.get_path("scripts"), name)
    found = name if "/" in name else own if os.access(own, os.X_OK) else shutil.which(name)
    if found is None:
        raise FileNotFoundError(name)
    return found


def read_version(argv: Sequence[str]) -> str:
    """Give the first line that a program says of its version; what is missing where there is none."""
    try:
        return capture((require_program(argv[0]), *argv[1:])).splitlines()[0]
    except (OSError, IndexError):
        return "not installed"
