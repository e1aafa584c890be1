"""`[mcp.servers.NAME]` in a project's `exeora.toml`, and what it does to the user's servers (contract, section 9).

The file travels with the repository. Switching a server off only narrows, so that always works. Defining one would
start processes for whoever can commit, so that takes `"trustProjectServers": true` in the user's own `mcp.json`.
Only the project root's file defines; a workspace's own copy can only switch off.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exeora_ws.errors import ToolFailed
from exeora_ws.upstream.config import Configuration, parse_entry
from exeora_ws.upstream.config_file import read_config_file
from exeora_ws.upstream.server import Entry, Source

PROJECT_FILE = "exeora.toml"


@dataclass(frozen=True)
class ProjectSection:
    """What one `exeora.toml` says about servers."""

    disabled: frozenset[str] = frozenset()
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    closed: str | None = None
    """Why the file cannot be understood. What it switches off is unknown then, so nothing may run."""

    def switches_off(self, server: str) -> bool:
        """Whether this file keeps a server from running."""
        return self.closed is not None or server in self.disabled


@dataclass(frozen=True)
class Effective:
    """The servers of one project: the user's and its own, merged."""

    entries: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()


def load_project_section(root: Path) -> ProjectSection:
    """Read a folder's `exeora.toml`; a missing file says nothing. Never raises: an unreadable one closes."""
    try:
        data = read_config_file(root / PROJECT_FILE, PROJECT_FILE)
    except ToolFailed as error:
        return ProjectSection(closed=error.message)
    return ProjectSection() if data is None else parse_project_section(data)


def parse_project_section(data: bytes) -> ProjectSection:
    """Read the bytes of an `exeora.toml`; only `[mcp.servers]` is looked at."""
    try:
        document = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return ProjectSection(closed=f"{PROJECT_FILE} cannot be understood: {_explain(error)}")
    mcp = document.get("mcp", {})
    servers = mcp.get("servers", {}) if isinstance(mcp, dict) else None
    if not isinstance(servers, dict):
        return ProjectSection(closed=f"{PROJECT_FILE}: mcp.servers: expected a table")
    return _read_servers(servers)


def _explain(error: Exception) -> str:
    if isinstance(error, tomllib.TOMLDecodeError):
        return str(error).splitlines()[0][:200]
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else "nested too deeply"


def _read_servers(servers: Mapping[str, Any]) -> ProjectSection:
    disabled: set[str] = set()
    definitions: dict[str, Mapping[str, Any]] = {}
    warnings: list[str] = []
    for name, raw in servers.items():
        enabled = raw.get("enabled", True) if isinstance(raw, dict) else None
        if enabled is False:
            disabled.add(name)
        elif enabled is not True:
            # Whoever wrote this wanted to say something about the server; the narrow reading is the safe one.
            disabled.add(name)
            warnings.append(f"{PROJECT_FILE}: server {name!r}: enabled: expected true or false; it stays off")
        if isinstance(raw, dict) and ("command" in raw or "url" in raw):
            definitions[name] = raw
    return ProjectSection(frozenset(disabled), definitions, tuple(warnings))


def merge_servers(user: Configuration, section: ProjectSection) -> Effective:
    """Work out which servers a project has."""
    if section.closed is not None:
        off = tuple(Entry(e.name, e.source, enabled=False, server=None, fault=e.fault) for e in user.entries)
        return Effective(off, (*user.warnings, f"{section.closed}; no upstream server runs for this project"))
    entries = {entry.name: entry for entry in user.entries}
    warnings = [*user.warnings, *section.warnings]
    if user.trusts_projects:
        for name, raw in section.definitions.items():
            entry, notes = parse_entry(name, raw, Source.PROJECT, environ=None)
            entries[name] = entry
            warnings += [f"{PROJECT_FILE}: {note}" for note in notes]
    else:
        warnings += [_skipped(name) for name in section.definitions if name not in section.disabled]
    for name in section.disabled & entries.keys():
        found = entries[name]
        entries[name] = Entry(name, found.source, enabled=False, server=None)
    return Effective(tuple(entries.values()), tuple(warnings))


def _skipped(name: str) -> str:
    return (
        f"{PROJECT_FILE}: server {name!r} is defined by the project and was not started; "
        'mcp.json starts such servers with "trustProjectServers": true'
    )
