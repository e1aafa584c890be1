"""What makes a workspace ready to run: `[workspace]` in the project root's `exeora.toml`, and `.worktreeinclude`.

Both are read from the project root only, never from the new workspace: its branch may be somebody else's.
"""

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from exeora_ws.errors import ToolFailed
from exeora_ws.limits import RECIPE_BYTES

RECIPE_FILE = "exeora.toml"
INCLUDE_FILE = ".worktreeinclude"
KEYS = ("copy", "link", "setup", "teardown", "env", "ports")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_PORT_MOST = 65_535


@dataclass(frozen=True, slots=True)
class Recipe:
    """`[workspace]`, and the patterns of `.worktreeinclude`."""

    include: tuple[str, ...] = ()
    """Patterns of files to copy, if they are ignored."""
    copy: tuple[str, ...] = ()
    """Patterns of files to copy, if they are not tracked."""
    link: tuple[str, ...] = ()
    """Paths that become links to the project root's."""
    setup: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    ports: Mapping[str, int | None] | None = None
    """Names, and the port that main would like."""

    @property
    def needs_trust(self) -> bool:
        """Whether it would run anything, or change what others run."""
        return bool(self.setup or self.teardown or self.env)

    @property
    def digest(self) -> str:
        """What is trusted: the exact commands and variables."""
        content = {"setup": self.setup, "teardown": self.teardown, "env": dict(self.env or {})}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.include or self.copy or self.link or self.setup or self.ports or self.env)


def load_recipe(root: Path) -> Recipe:
    """Read the recipe of a project root; missing files are empty ones.

    Raises:
        ToolFailed: reason `setup_invalid`, naming file and key or line.
    """
    text = _read(root, RECIPE_FILE)
    include = _read(root, INCLUDE_FILE)
    return parse_recipe(text or "", include or "")


def parse_recipe(text: str, include: str) -> Recipe:
    """Read the recipe out of the text of both files; see `load_recipe`."""
    try:
        table = tomllib.loads(text).get("workspace", {})
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _invalid(f"not valid TOML: {error}") from error
    if not isinstance(table, dict):
        raise _invalid("workspace: expected a table")
    unknown = sorted(set(table) - set(KEYS))
    if unknown:
        raise _invalid(f"workspace.{unknown[0]}: there is no such key (there are {', '.join(KEYS)})")
    return Recipe(
        include=tuple(line for line in include.splitlines() if line.strip() and not line.startswith("#")),
        copy=_parse_list(table, "copy"),
        link=tuple(_parse_path(path) for path in _parse_list(table, "link")),
        setup=_parse_list(table, "setup"),
        teardown=_parse_list(table, "teardown"),
        env=_parse_env(table.get("env", {})),
        ports=_parse_ports(table.get("ports", [])),
    )


def _parse_list(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(item, str) and item for item in found):
        raise _invalid(f"workspace.{key}: expected a list of strings")
    return tuple(found)


def _parse_path(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or not path.parts or path.parts[0] == ".git":
        raise _invalid(f"workspace.link: {text!r} is not a path inside the project")
    return str(path)


def _parse_env(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise _invalid("workspace.env: expected a table of strings")
    for name, text in value.items():
        if not _NAME.match(name) or not isinstance(text, str) or "\0" in text:
            raise _invalid(f"workspace.env.{name}: expected a variable's name and a string")
        if name.startswith(("GIT_", "EXEORA_")):
            raise _invalid(f"workspace.env.{name}: variables of Git and exeora cannot be set")
    return dict(value)


def _parse_ports(value: Any) -> Mapping[str, int | None]:
    wanted = dict.fromkeys(value) if isinstance(value, list) and all(isinstance(n, str) for n in value) else value
    if not isinstance(wanted, dict):
        raise _invalid("workspace.ports: expected a list of names, or a table of names and ports")
    for name, port in wanted.items():
        fits = port is None or (isinstance(port, int) and not isinstance(port, bool) and 0 < port <= _PORT_MOST)
        if not _NAME.match(name) or not fits:
            raise _invalid(f"workspace.ports.{name}: expected a name of letters, digits and _, and a port")
    upper = [name.upper() for name in wanted]
    if len(set(upper)) != len(upper):
        raise _invalid("workspace.ports: two names differ only in case")
    return wanted


def _invalid(message: str) -> ToolFailed:
    return ToolFailed(f"{RECIPE_FILE}: {message}", reason="setup_invalid", hint="correct it, then exeora setup")


def _read(root: Path, name: str) -> str | None:
    """Read a small regular file, following no link at its name."""
    try:
        descriptor = os.open(root / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolFailed(f"{name} cannot be read: {error.strerror}", reason="setup_invalid") from error
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ToolFailed(f"{name} is not a regular file", reason="setup_invalid")
        data = stream.read(RECIPE_BYTES + 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{name} is not UTF-8", reason="setup_invalid") from error
    if len(data) > RECIPE_BYTES:
        raise ToolFailed(f"{name} is larger than {RECIPE_BYTES} bytes", reason="setup_invalid")
    return text
