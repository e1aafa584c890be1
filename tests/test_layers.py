"""The arrows point one way (docs/architecture.md): the table of layers, read off the imports."""

import ast
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
WORDS = {"errors", "names", "limits", "settings", "cancellation", "environment", "locks", "storage", "database", "late"}
ROOMS: dict[str, set[str]] = {
    **dict.fromkeys(WORDS, WORDS),
    "git": WORDS,
    "files": WORDS,
    "processes": WORDS,
    "workspaces": WORDS | {"git", "files", "processes"},
    "policy": WORDS | {"git", "files", "processes"},
    "skills": WORDS | {"git", "files", "processes"},
}
BELOW_TOOLS = set(ROOMS)
ROOMS["tools"] = BELOW_TOOLS
ROOMS["toolsets"] = BELOW_TOOLS | {"tools"}
ROOMS["upstream"] = WORDS | {"tools.spec"}
ROOMS["app"] = BELOW_TOOLS | {"tools", "toolsets", "upstream"}
ROOMS["fleet"] = ROOMS["app"] | {"app"}
ROOMS["serve"] = WORDS | {"app", "tools.spec", "tools.call", "tools.services", "tools.core", "tools.tokens"}
# The words of a question that a client's person is asked, and the texts that go out with the handshake.
ROOMS["serve"] |= {"policy.gate", "policy.question", "skills.prompt"}
ROOMS["exeora_cli"] = WORDS | {
    "app",
    "tools.spec",
    "tools.call",
    "tools.services",
    "tools.tokens",
    "serve",
    "fleet",
    "workspaces.place",
}
# The tools as a shell has them and what they list, what a person does with policy, and the text for agents.
ROOMS["exeora_cli"] |= {"tools.shell", "processes.everywhere", "policy", "skills.prompt"}
# What there is to say of upstream servers without a server of ours.
ROOMS["exeora_cli"] |= {"upstream.reports"}
# What answers the hot commands before anything else is loaded: modules that import `os` alone.
ROOMS["exeora_cli"] |= {"workspaces.inventory_file", "git.links", "git.gitfiles"}
ONLY = {
    "pygit2": {"git"},
    "mcp": {"serve"},
    "mcp_types": {"serve"},
    "typer": {"exeora_cli"},
    "prompt_toolkit": {"exeora_cli"},
    "subprocess": {"git", "processes"},
    "multiprocessing": set(),
    "nats": {"fleet"},
    "nkeys": {"fleet"},
}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def modules() -> list[tuple[str, Path]]:
    core = TOP / "exeora_ws"
    rooms = [(room_of(p, core), p) for p in core.rglob("*.py") if p != core / "__init__.py"]
    return rooms + [("exeora_cli", p) for p in (TOP / "cli" / "exeora_cli").rglob("*.py")]


@pytest.mark.parametrize(("room", "path"), [pytest.param(r, p, id=str(p.relative_to(TOP))) for r, p in modules()])
def test_a_module_imports_only_from_the_rooms_below(room: str, path: Path):
    assert room in ROOMS, f"{room} has no row in the table of layers"
    for name in imports(path):
        package, _, rest = name.partition(".")
        if package == "exeora_ws":
            target = rest.split(".")[0]
            allowed = ROOMS[room] | {room}
            assert target in allowed or ".".join(rest.split(".")[:2]) in allowed or rest == "__version__", (
                f"{room} imports {name}"
            )
        elif package in ONLY:
            assert room in ONLY[package], f"{room} imports {package}"


def test_no_room_reaches_itself_through_another():
    edges: dict[str, set[str]] = {room: set() for room in ROOMS}
    for room, path in modules():
        edges[room] |= {n.split(".")[1] for n in imports(path) if n.startswith("exeora_ws.")} & set(ROOMS) - {room}
    done: set[str] = set()

    def visit(room: str, above: tuple[str, ...]) -> None:
        assert room not in above, " -> ".join((*above, room))
        if room not in done:
            for below in edges[room]:
                visit(below, (*above, room))
            done.add(room)

    for room in edges:
        visit(room, ())
