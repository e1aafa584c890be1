"""What an upstream server is, as configured: values, compared by a fingerprint."""

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit


class Source(StrEnum):
    """Whose file defines a server."""

    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True)
class Program:
    """A server that is a child process speaking over its pipes. Values are expanded; nothing of them is shown."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cwd: str | None = None
    """Absolute, or below the directory a call acts in; None is that directory itself."""


@dataclass(frozen=True)
class Remote:
    """A server behind a Streamable HTTP endpoint. Values are expanded; nothing of them is shown."""

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Server:
    """One server that can be started.

    Args:
        name: its key in the file that defines it.
        source: whose file that is.
        reach: how to get at it.
        secrets: every value that `${NAME}` was replaced with.
        private: what else nobody should read in an error: the literal values of its environment and headers.
    """

    name: str
    source: Source
    reach: Program | Remote
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    private: frozenset[str] = field(default=frozenset(), repr=False)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that a running instance depends on; two equal ones may share instances."""
        parts: list[Any] = [self.name, self.source, type(self.reach).__name__]
        if isinstance(self.reach, Program):
            parts += [self.reach.command, self.reach.args, self.reach.env, self.reach.cwd]
        else:
            parts += [self.reach.url, self.reach.headers]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def describe(self) -> str:
        """Say in one word or address what it is: the program's name, or the address without path, query and user."""
        if isinstance(self.reach, Program):
            return self.reach.command.replace("\\", "/").rsplit("/", 1)[-1]
        parts = urlsplit(self.reach.url)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


@dataclass(frozen=True)
class Entry:
    """A server as written in a file: it runs when it is enabled and nothing is wrong with it."""

    name: str
    source: Source
    enabled: bool
    server: Server | None
    fault: str | None = None
    """Why it cannot be started, naming the field; None for a good one."""

    @property
    def runnable(self) -> Server | None:
        """The server, when it is to run."""
        return self.server if self.enabled else None
