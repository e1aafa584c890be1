"""What the gate is asked about: one call, as plain facts. Knows no tool."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True, slots=True)
class Upstream:
    """A tool of another MCP server, under the name it has there."""

    server: str
    tool: str


@dataclass(frozen=True)
class Request:
    """One call.

    Args:
        project_id, project: the project's id and slug.
        workspace_id, workspace: the workspace's id and slug.
        tool: the name under which we publish it.
        read_only: whether it says of itself that it changes nothing.
        arguments: its arguments as JSON values; shown in the question, hashed, and stored nowhere.
        command: the command line it would run, if it runs one.
        upstream: which server's tool it is; None for a tool of our own.
        listed_as: the names in the list of tools that it goes by: each must be there, none need be where there are
            none; its own name where None.
        face: `cli`, `stdio` or `http`.
        client: what the client calls itself.
        session: the conversation.
    """

    project_id: str
    project: str
    workspace_id: str
    workspace: str
    tool: str
    read_only: bool
    arguments: Mapping[str, Any] = field(repr=False)
    command: str | None = field(default=None, repr=False)
    upstream: Upstream | None = None
    listed_as: tuple[str, ...] | None = None
    face: str = ""
    client: str = ""
    session: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over what an approval binds: project, workspace, tool and every argument."""
        upstream = [self.upstream.server, self.upstream.tool] if self.upstream else None
        facts = [self.project_id, self.workspace_id, self.tool, upstream, self.command, self.arguments]
        return hashlib.sha256(canonical_json(facts).encode("utf-8", "surrogatepass")).hexdigest()


def canonical_json(value: object) -> str:
    """Write JSON values in the one way that equal values are written: keys sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
