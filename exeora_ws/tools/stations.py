"""The stations of a call as types: what is known at each, and nothing that is not (docs/decisions/0001)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from exeora_ws.cancellation import Cancellation, Progress, no_progress
from exeora_ws.errors import ExeoraError
from exeora_ws.names import ProjectId
from exeora_ws.policy.approval import Approval
from exeora_ws.policy.gate import Asker, InputRequired, SignedAnswer
from exeora_ws.policy.rules import OPEN, Policy
from exeora_ws.tools.proxied import VerbatimResult
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Arguments, Result, Tool
from exeora_ws.workspaces.place import Place, Project

AnyTool = Tool[Any, Any, Services]


class Face(StrEnum):
    """The ways in."""

    CLI = "cli"
    STDIO = "stdio"
    HTTP = "http"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a caller may reach.

    `bound` is the one project of a project endpoint or of the command line: such a call has no `project` argument.
    Otherwise (an account) `granted` are the projects a call may name; None means all.
    """

    bound: ProjectId | None = None
    granted: frozenset[ProjectId] | None = None
    read_only: bool = False

    @property
    def account(self) -> bool:
        """Whether calls name their project."""
        return self.bound is None


@dataclass(frozen=True, slots=True)
class Asking:
    """How the person behind a caller can be asked.

    Either the face asks while the call waits (`asker`), or the client asks and calls again (`by_return`), then with
    `answer`. Neither: only somebody at another window can be.
    """

    asker: Asker | None = None
    by_return: bool = False
    answer: SignedAnswer | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and how long they will wait."""

    face: Face
    client: str
    session: str
    scope: Scope
    cancellation: Cancellation = field(default_factory=Cancellation)
    progress: Progress = no_progress
    asking: Asking = field(default_factory=Asking)
    policy: Policy = OPEN
    """The outermost layer of policy, which the caller brings along from where it came in. It can only narrow."""
    require_wanted: Callable[[], None] = lambda: None
    """Asked last, right before the tool's function: raises when it is too late for this call to run."""


@dataclass(frozen=True, slots=True)
class RawCall:
    """A name and a JSON object, as they came in."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RoutedCall:
    """A tool that exists, and its routing fields taken off."""

    tool: AnyTool
    project: str | None
    workspace: str | None
    """None only for a tool that takes no workspace: an omitted one has become `main` by now."""
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """Where it will act is decided; its own arguments have not been looked at."""

    tool: AnyTool
    project: Project | None
    place: Place | None
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """All of it typed, nothing of it allowed yet. `raw` is what an approval is bound to."""

    tool: AnyTool
    project: Project | None
    place: Place | None
    arguments: Arguments
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    """A call that policy, and a person where one is to be asked, let through. What was approved is what runs."""

    parsed: ParsedCall
    approval: Approval | None
    """None for a tool that acts in no project, so that no project's policy is about it; and at a gateway, where the
    machine that will run the call is the one to approve it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: a result, an error that the caller is told, or a question for the client to ask."""

    tool: str
    result: Result | Mapping[str, Any] | None = None
    """Plain JSON values where another machine has worded it."""
    error: ExeoraError | None = None
    question: InputRequired | None = None
    text: str | None = None
    """How the tool words it, where that is not the JSON of the structured content."""

    @property
    def verbatim(self) -> dict[str, Any] | None:
        """The result of an upstream's tool, which leaves as it came; None for a result of our own."""
        return dict(self.result.raw) if isinstance(self.result, VerbatimResult) else None

    def to_dict(self) -> dict[str, Any]:
        """Give the structured content: the result object, or `{"error": …}`."""
        if self.error is not None:
            return {"error": self.error.to_dict()}
        shown: dict[str, Any] = self.verbatim or msgspec.to_builtins(self.result)
        return shown


class Registered(Protocol):
    """Where calls can act: the registry of this machine, or what several have published."""

    def list_projects(self) -> Sequence[Project]:
        """Give all projects."""
        ...

    def require_project(self, selector: str) -> Project:
        """Find one by slug or id; raises `UnknownProject`."""
        ...

    def require_place(self, project: Project, selector: str) -> Place:
        """Find a workspace by slug or id; raises `UnknownWorkspace`."""
        ...

    def require_available(self, place: Place, *, files: bool) -> None:
        """See that a workspace is there; raises `WorkspaceUnavailable`."""
        ...


class Station(Protocol):
    """The gate, as the way needs it; `tools/gate.py` has what is to be said of each."""

    def approve(self, parsed: ParsedCall, caller: Caller) -> ApprovedCall | InputRequired:
        """Let a call through, or say what the client must ask first; raises what refuses it."""
        ...

    def note_refusal(self, tool: str, placed: PlacedCall | None, caller: Caller, error: ExeoraError) -> None:
        """Record a call that did not get to run; raises `Forbidden`, reason `audit_unwritable`."""
        ...

    def offered(self, tools: Iterable[AnyTool], projects: Iterable[Project], *, read_only: bool) -> list[AnyTool]:
        """Leave out what no project in reach offers."""
        ...

    def allows_proxied(self, project: Project, *, read_only: bool) -> bool:
        """Whether a project offers an upstream's tool."""
        ...
