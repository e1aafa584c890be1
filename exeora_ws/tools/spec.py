"""What a tool is: a value from which schemas, help, docs and tests derive. Imports no MCP."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from exeora_ws.cancellation import Cancellation, Progress
from exeora_ws.errors import ExeoraError
from exeora_ws.names import ProjectId
from exeora_ws.policy.request import Upstream
from exeora_ws.workspaces.place import Place, Project


class Arguments(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base of every tool's arguments: camelCase outside, unknown fields refused, no coercion.

    A subclass repeats `frozen=True`: type checkers do not inherit it.
    """


class Result(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of every tool's result: camelCase outside; `UNSET` is an absent key, None is null."""


class NoArguments(Arguments, frozen=True):
    """For tools that take none."""


class Routing(Enum):
    """Whether the call names a workspace (contract, section 2)."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


class Needs(Enum):
    """How much of the named workspace must be there for the tool to act."""

    NOTHING = "nothing"
    """No place at all: the tool is answered without project or workspace."""
    PROJECT = "project"
    """A project; no workspace is looked at."""
    RECORD = "record"
    """A registered workspace; its folder may be gone."""
    REPOSITORY = "repository"
    """A registered workspace with its repository; a bare main will do."""
    CHECKOUT = "checkout"
    """A workspace whose files are there."""


@dataclass(frozen=True, slots=True)
class Hints:
    """MCP's tool annotations, all four, always said."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool

    def to_dict(self) -> dict[str, bool]:
        """Give them under MCP's names."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


READS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
"""The hints of a tool that changes nothing."""

A = TypeVar("A", bound=Arguments)
R = TypeVar("R", bound=Result)
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Call(Generic[A, S]):
    """What a tool's function is given: where to act, its typed arguments, and the caller's patience.

    `services` is the core (`tools/services.py`); a tool takes from it what it needs.
    """

    place: Place | None
    project: Project | None
    arguments: A
    services: S
    cancellation: Cancellation
    progress: Progress
    granted: frozenset[ProjectId] | None
    """The projects the caller reaches; None means all."""
    admit: Callable[[bool], None]
    """Judges the call once more, right before it is passed on; told whether it (still) only reads."""
    session: str
    """Names the conversation, for what lives as long as it does (snapshots, processes)."""

    def require_place(self) -> Place:
        """Give the place; every tool that needs one is only called with one."""
        if self.place is None:
            raise AssertionError("a tool without a place asked for one")
        return self.place

    def require_project(self) -> Project:
        """Give the project; every tool that needs one is only called with one."""
        if self.project is None:
            raise AssertionError("a tool without a project asked for one")
        return self.project


@dataclass(frozen=True)
class Tool(Generic[A, R, S]):
    """One tool.

    Args:
        name: as MCP publishes it, snake_case.
        title: two or three words for a menu.
        description: tells an agent what it does and when to use it.
        arguments: the argument Struct; its field descriptions become the schema's.
        result: the result Struct.
        hints: MCP annotations.
        routing: whether a call names a workspace.
        needs: how much of that workspace must be there.
        function: does it; returns a result or raises an `ExeoraError`.
        reasons: the machine-readable reasons its errors may carry, with what each means.
        command: gives the command line to be judged by policy, for tools that run one; None for a call that does not.
        account_only: offered only where one connection may reach several projects.
        workspace_field: the routing field; another one where an upstream's tool has a `workspace` of its own.
        upstream: whose tool it is, for one that is passed on to another MCP server.
        listed_as: the names in a policy's list of tools that it goes by; its own where None.
        workspace_text: describes the argument `workspace`, where the usual words do not fit.
        prepare: rewrites the arguments before they are typed: other names that a caller may use for them.
        render: words a result, for a tool whose text is not the JSON of its structured content.
        render_error: words a failure likewise.
    """

    name: str
    title: str
    description: str
    arguments: type[A]
    result: type[R]
    hints: Hints
    routing: Routing
    needs: Needs
    function: Callable[[Call[A, S]], R]
    reasons: Mapping[str, str]
    command: Callable[[A], str | None] | None = None
    account_only: bool = False
    workspace_field: str = "workspace"
    upstream: Upstream | None = None
    listed_as: tuple[str, ...] | None = None
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    workspace_text: str | None = None
    render: Callable[[R], str] | None = None
    render_error: Callable[[ExeoraError], str] | None = None

    PROJECT_FIELD: ClassVar[str] = "project"

    @cached_property
    def arguments_schema(self) -> dict[str, Any]:
        """JSON schema of the tool's own arguments, without routing fields."""
        return _schema(self.arguments)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """JSON schema of the result object."""
        return _schema(self.result)

    def input_schema(self, *, account: bool) -> dict[str, Any]:
        """Give the schema as published: the arguments, `workspace` where a call names one, `project` on an account."""
        schema = dict(self.arguments_schema)
        properties = dict(schema.get("properties", {}))
        required = list(schema.get("required", []))
        if self.routing is not Routing.NONE:
            properties[self.workspace_field] = {"type": "string", "description": _workspace_text(self)}
            if self.routing is Routing.REQUIRED:
                required.append(self.workspace_field)
        if account and self.needs is not Needs.NOTHING:
            properties[self.PROJECT_FIELD] = {"type": "string", "description": _PROJECT_TEXT}
        schema["properties"] = properties
        if required:
            schema["required"] = required
        return schema


_PROJECT_TEXT = "The project's slug or id. Required as soon as the connection reaches more than one project."


def _workspace_text(tool: Tool[Any, Any, Any]) -> str:
    if tool.workspace_text is not None:
        return tool.workspace_text
    if tool.name == "create_workspace":
        return "Slug or id of the workspace to start from. Omitted or `main`: the project root."
    if tool.routing is Routing.REQUIRED:
        return "Slug or id of the workspace to act on. Never `main`."
    return (
        "Slug or id of the workspace to act in. Omitted or `main`: the project root. "
        "One that does not resolve is an error."
    )


def _schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    (top,), components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    name = top["$ref"].rsplit("/", 1)[1]
    schema: dict[str, Any] = dict(components.pop(name))
    schema.pop("title", None)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    for component in components.values():
        component.pop("title", None)
    if components:
        schema["$defs"] = components
    return schema
