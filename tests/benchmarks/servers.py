"""The servers that are compared: how each is started, and how each is asked for the same thing.

The public ones are installed by name, at the versions below, into the cache folder; they are run and not looked into.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench, World, find_exeora, require_program
from benchmarks.benchmark import Unavailable
from benchmarks.client import Client, serving

NPM = {
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@wonderwhy-er/desktop-commander": "0.2.52",
    "mcp-server-commands": "0.5.0",
}
FASTMCP = "4.2.3"
OURS, PLAIN = "exeora", "exeora, by the protocol library alone"
FILESYSTEM, COMMANDER, COMMANDS = "server-filesystem", "desktop-commander", "mcp-server-commands"
FAST, SDK, LOOP = "fastmcp, same tools", "SDK low-level, same tools", "a bare loop, same tools (the limit)"
PUBLIC = (FILESYSTEM, COMMANDER, COMMANDS, FAST, SDK)
NEEDLE = "needle_in_the_hay"
_SAME_TOOLS = str(Path(__file__).with_name("same_tools.py"))

Ask = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Files:
    """What is asked for, in the project that all are started in."""

    top: Path

    def edited(self, label: str) -> str:
        """Name the file that a server edits; each has its own."""
        return f"edited-{''.join(filter(str.isalnum, label))}.txt"

    def write(self, labels: Sequence[str]) -> None:
        """Make them."""
        line = "x" * 63 + "\n"
        (self.top / "small.txt").write_text(line * 16)
        (self.top / "large.txt").write_text(line * (5_000_000 // len(line)))
        (self.top / "found.txt").write_text(f"{NEEDLE}\n")
        for label in labels:
            (self.top / self.edited(label)).write_text("one\n" + "more\n" * 500)


def find_command(bench: Bench, label: str, top: Path) -> list[str]:
    """Give the command line of a server; installs it when it is not there.

    Raises:
        Unavailable: it cannot be had here.
    """
    if label in (OURS, PLAIN):
        return [find_exeora(), "mcp", *(["--plain"] if label == PLAIN else [])]
    if label in (FAST, SDK, LOOP):
        python = _require_fastmcp(bench) if label == FAST else sys.executable
        kind = {FAST: "fastmcp", SDK: "sdk", LOOP: "loop"}[label]
        return [python, _SAME_TOOLS, kind, str(top), require_program("rg")]
    name = {FILESYSTEM: "mcp-server-filesystem"}.get(label, label)
    return [str(_require_npm(bench) / name), *([str(top)] if label == FILESYSTEM else [])]


def _require_npm(bench: Bench) -> Path:
    folder = bench.inputs.cache / "npm-servers"
    programs = folder / "node_modules" / ".bin"
    npm = shutil.which("npm")
    if not programs.exists():
        if npm is None:
            raise Unavailable("npm is not installed: the public servers come from it")
        folder.mkdir(parents=True, exist_ok=True)
        names = [f"{name}@{version}" for name, version in NPM.items()]
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        _install([npm, "install", "--prefix", str(folder), *options, *names])
    return programs


def _require_fastmcp(bench: Bench) -> str:
    folder = bench.inputs.cache / f"fastmcp-{FASTMCP}"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True)
        _install([str(python), "-m", "pip", "install", "--quiet", f"fastmcp=={FASTMCP}"])
        (folder / "installed").touch()
    return str(python)


def _install(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{argv[0]}: {done.stderr.strip().splitlines()[-1:]}")


def find_environment(world: World) -> Mapping[str, str]:
    """Give the environment that all servers get: our own, and the way to Node."""
    return {**world.environment, "PATH": os.environ.get("PATH", os.defpath)}


@contextmanager
def started(bench: Bench, world: World, top: Path, labels: Sequence[str]) -> Iterator[dict[str, Client]]:
    """Give several servers, all running."""
    with ExitStack() as stack:
        commands = {label: find_command(bench, label, top) for label in labels}
        environment = find_environment(world)
        yield {label: stack.enter_context(serving(argv, top, environment)) for label, argv in commands.items()}


def find_ask(label: str, row: str, client: Client, files: Files) -> Ask | None:
    """Give how a server is asked for what a row is about; None where it has no tool for it."""
    tables: dict[str, Callable[[Client, Files, str], dict[str, Ask]]] = {
        OURS: _ask_exeora,
        PLAIN: _ask_exeora,
        FILESYSTEM: _ask_filesystem,
        COMMANDER: _ask_commander,
        FAST: _ask_same,
        SDK: _ask_same,
        LOOP: _ask_same,
    }
    return tables[label](client, files, label).get(row) if label in tables else None


def _ask_exeora(client: Client, files: Files, label: str) -> dict[str, Ask]:
    edit = _Flip(lambda old, new: client.call("edit_file", path=files.edited(label), oldString=old, newString=new))
    return {
        "small": partial(client.call, "read_file", path="small.txt"),
        "large": lambda: _read_whole(client),
        "list": partial(client.call, "list_files", path="."),
        "search": partial(client.call, "grep", pattern=NEEDLE),
        "edit": edit,
        "run": partial(client.call, "run_command", command="true"),
    }


def _read_whole(client: Client) -> None:
    """One read holds 500,000 bytes: go on until there is no more."""
    following: dict[str, int] = {}
    while True:
        got = client.call("read_file", path="large.txt", **following)["structuredContent"]
        if not got["truncated"]:
            return
        following = {"offset": got["nextOffset"]}


def _ask_filesystem(client: Client, files: Files, label: str) -> dict[str, Ask]:
    top, edited = str(files.top), str(files.top / files.edited(label))

    def edit(old: str, new: str) -> None:
        client.call("edit_file", path=edited, edits=[{"oldText": old, "newText": new}])

    return {
        "small": partial(client.call, "read_text_file", path=f"{top}/small.txt"),
        "large": partial(client.call, "read_text_file", path=f"{top}/large.txt"),
        "list": partial(client.call, "list_directory", path=top),
        "search": partial(client.call, "search_files", path=top, pattern="**/found.txt"),
        "edit": _Flip(edit),
    }


def _ask_commander(client: Client, files: Files, label: str) -> dict[str, Ask]:
    top, edited = str(files.top), str(files.top / files.edited(label))

    def edit(old: str, new: str) -> None:
        client.call("edit_block", file_path=edited, old_string=old, new_string=new)

    return {
        "small": partial(client.call, "read_file", path=f"{top}/small.txt"),
        "list": partial(client.call, "list_directory", path=top, depth=1),
        "edit": _Flip(edit),
        "run": partial(client.call, "start_process", command="true", timeout_ms=1_000),
    }


def _ask_same(client: Client, files: Files, label: str) -> dict[str, Ask]:
    return {
        "small": partial(client.call, "read_file", path="small.txt"),
        "large": partial(client.call, "read_file", path="large.txt"),
        "list": partial(client.call, "list_files", path="."),
        "search": partial(client.call, "grep", pattern=NEEDLE),
        "edit": _Flip(lambda old, new: client.call("edit_file", path=files.edited(label), old=old, new=new)),
        "run": partial(client.call, "run_command", command="true"),
    }


class _Flip:
    """Edits a file one way and back in turns."""

    def __init__(self, edit: Callable[[str, str], object]) -> None:
        self._edit = edit
        self._texts = ("one\n", "two\n")

    def __call__(self) -> None:
        self._edit(*self._texts)
        self._texts = self._texts[::-1]
