"""`mcp.json`: the user's upstream servers, in the shape most MCP clients use (contract, section 9).

Each value may hold `${NAME}`, and nothing else is expanded. An unset variable, a wrong type, a `command` beside a `url`
stop that one server; the sentence names the field and never a value.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qsl, urlsplit

from exeora_ws.errors import ToolFailed
from exeora_ws.upstream.config_file import read_config_file
from exeora_ws.upstream.server import Entry, Program, Remote, Server, Source

_KNOWN_TOP = frozenset(("mcpServers", "trustProjectServers"))
_KNOWN = frozenset(("command", "args", "env", "cwd", "url", "headers", "enabled", "type"))
_TYPES = {"command": ("stdio",), "url": ("http", "streamable-http", "streamableHttp")}
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


@dataclass(frozen=True)
class Configuration:
    """What the servers' file says."""

    entries: tuple[Entry, ...] = ()
    trusts_projects: bool = False
    """Whether a project's own file may define servers."""
    warnings: tuple[str, ...] = ()


class _Fault(Exception):
    """One server cannot run; the message names the field."""


class Expander:
    """Replaces `${NAME}` and remembers what with. Without an environment it leaves everything as written."""

    def __init__(self, environ: Mapping[str, str] | None) -> None:
        self._environ = environ
        self.values: set[str] = set()
        self.notes: list[str] = []

    def expand(self, text: str, where: str) -> str:
        """Expand one value; `where` names its field."""
        return _REFERENCE.sub(lambda found: self._replace(found, where), text)

    def _replace(self, found: re.Match[str], where: str) -> str:
        name = found[1]
        if self._environ is None:
            self.notes.append(f"{where}: ${{{name}}} stays as written: a project's own server expands no variable")
            return found[0]
        if not _VARIABLE.match(name):
            self.notes.append(f"{where}: {found[0]!r} stays as written: only ${{NAME}} is expanded")
            return found[0]
        if name not in self._environ:
            raise _Fault(f"{where}: the environment variable {name} is not set")
        self.values.add(self._environ[name])
        return self._environ[name]


def load_configuration(path: Path, environ: Mapping[str, str]) -> Configuration:
    """Read `mcp.json`; a missing file defines nothing.

    Raises:
        ToolFailed: reason `mcp_config_invalid`, naming the line, when it is no JSON object.
    """
    data = read_config_file(path, "mcp.json")
    return Configuration() if data is None else parse_configuration(data, environ)


def parse_configuration(data: bytes, environ: Mapping[str, str]) -> Configuration:
    """Read the bytes of an `mcp.json`. Raises as `load_configuration`."""
    document = _parse_json(data)
    servers = document.get("mcpServers", {})
    if not isinstance(servers, dict):
        _refuse("mcpServers: expected an object")
    trusts = document.get("trustProjectServers", False)
    if not isinstance(trusts, bool):
        _refuse("trustProjectServers: expected true or false")
    warnings = [f"mcp.json: unknown key {key!r}" for key in document if key not in _KNOWN_TOP]
    entries = []
    for name, raw in servers.items():
        entry, notes = parse_entry(name, raw, Source.USER, environ)
        entries.append(entry)
        warnings += [f"mcp.json: {note}" for note in notes]
    return Configuration(tuple(entries), trusts, tuple(warnings))


def _parse_json(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        _refuse("not UTF-8")
    except RecursionError:
        _refuse("nested too deeply")
    except ValueError as error:
        _refuse(f"line {getattr(error, 'lineno', 1)}: not valid JSON")
    if not isinstance(document, dict):
        _refuse("line 1: expected an object")
    return document


def _refuse(what: str) -> NoReturn:
    raise ToolFailed(f"mcp.json: {what}", reason="mcp_config_invalid", hint="correct the file; it is watched")


def parse_entry(
    name: str, raw: Any, source: Source, environ: Mapping[str, str] | None
) -> tuple[Entry, tuple[str, ...]]:
    """Read one server's entry.

    Args:
        name: its key.
        raw: the entry as parsed.
        source: whose file it stands in.
        environ: what `${NAME}` is looked up in; None expands nothing.

    Returns:
        The entry, faulty or not, and warnings that name it.
    """
    expander = Expander(environ)
    enabled = not (isinstance(raw, dict) and raw.get("enabled") is False)
    notes = [f"unknown key {key!r}" for key in raw if key not in _KNOWN] if isinstance(raw, dict) else []
    try:
        # A server that is switched off needs none of its variables.
        server = _parse_server(name, raw, source, expander) if enabled else None
        entry = Entry(name, source, enabled, server)
    except _Fault as fault:
        entry = Entry(name, source, enabled, None, f"server {name!r}: {fault}")
    return entry, tuple(f"server {name!r}: {note}" for note in (*notes, *expander.notes))


def _parse_server(name: str, raw: Any, source: Source, expander: Expander) -> Server:
    if not name.strip():
        raise _Fault("its name is empty")
    if not isinstance(raw, dict):
        raise _Fault("expected an object")
    if not isinstance(raw.get("enabled", True), bool):
        raise _Fault("enabled: expected true or false")
    if ("command" in raw) == ("url" in raw):
        raise _Fault("give either command or url" + (", not both" if "url" in raw else ""))
    _check_type(raw)
    reach = _parse_program(raw, source, expander) if "command" in raw else _parse_remote(raw, expander)
    return Server(name, source, reach, frozenset(expander.values), _find_private(reach))


def _find_private(reach: Program | Remote) -> frozenset[str]:
    if isinstance(reach, Program):
        return frozenset(value for _, value in reach.env)
    parts = urlsplit(reach.url)
    values = [value for _, value in reach.headers] + [value for _, value in parse_qsl(parts.query)]
    return frozenset((*values, parts.password or ""))


def _check_type(raw: Mapping[str, Any]) -> None:
    kind = "command" if "command" in raw else "url"
    other = ("url", "headers") if kind == "command" else ("command", "args", "env", "cwd")
    for key in other:
        if key in raw:
            raise _Fault(f"{key}: does not go with {kind}")
    if "type" in raw and raw["type"] not in _TYPES[kind]:
        raise _Fault(f"type: with {kind}, only {' or '.join(repr(t) for t in _TYPES[kind][:1])} can be reached")


def _parse_program(raw: Mapping[str, Any], source: Source, expander: Expander) -> Program:
    command = _text(raw["command"], "command", expander)
    if not command:
        raise _Fault("command: empty")
    args = raw.get("args", [])
    if not isinstance(args, list):
        raise _Fault("args: expected a list of strings")
    cwd = _text(raw["cwd"], "cwd", expander) if "cwd" in raw else None
    if cwd is not None and source is Source.PROJECT and _leads_out(cwd):
        raise _Fault("cwd: a project's own server runs inside the project")
    return Program(
        command,
        tuple(_text(value, f"args.{number}", expander) for number, value in enumerate(args)),
        _pairs(raw, "env", expander, _is_variable_name),
        cwd,
    )


def _parse_remote(raw: Mapping[str, Any], expander: Expander) -> Remote:
    url = _text(raw["url"], "url", expander)
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise _Fault("url: expected http:// or https:// and a host")
    headers = _pairs(raw, "headers", expander, lambda key: bool(_HEADER_NAME.match(key)))
    for key, value in headers:
        if not value.isprintable():
            raise _Fault(f"headers.{key}: holds a character that no header may")
    return Remote(url, headers)


def _pairs(
    raw: Mapping[str, Any], field: str, expander: Expander, good_key: Callable[[str], bool]
) -> tuple[tuple[str, str], ...]:
    found = raw.get(field, {})
    if not isinstance(found, dict):
        raise _Fault(f"{field}: expected an object of strings")
    _check_keys(found, field, good_key)
    return tuple((key, _text(value, f"{field}.{key}", expander)) for key, value in found.items())


def _check_keys(keys: Iterable[str], field: str, good_key: Callable[[str], bool]) -> None:
    for key in keys:
        if not good_key(key):
            raise _Fault(f"{field}: {key[:80]!r} cannot be a name there")


def _is_variable_name(key: str) -> bool:
    return bool(key) and "=" not in key and "\0" not in key


def _text(value: Any, where: str, expander: Expander) -> str:
    if not isinstance(value, str):
        raise _Fault(f"{where}: expected a string")
    expanded = expander.expand(value, where)
    if "\0" in expanded:
        raise _Fault(f"{where}: holds a NUL character")
    return expanded


def _leads_out(cwd: str) -> bool:
    parts = cwd.replace("\\", "/").split("/")
    return cwd.startswith(("/", "~", "\\")) or ".." in parts or ":" in parts[0]
