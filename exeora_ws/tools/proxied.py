"""Tools of other MCP servers, made into tool values, so that a call of one takes the same way as any other.

What this layer needs of `upstream/` is said here as protocols; `app.py` hands the real thing in.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from exeora_ws.cancellation import Cancellation, Step
from exeora_ws.names import ProjectId
from exeora_ws.policy.request import Upstream
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Arguments, Call, Hints, Needs, Result, Routing, Tool
from exeora_ws.workspaces.place import Project


class ProxiedTool(Protocol):
    """One tool of another server, as a project publishes it."""

    @property
    def name(self) -> str:
        """The published name."""
        ...

    @property
    def server(self) -> str:
        """Whose tool it is."""
        ...

    @property
    def tool(self) -> str:
        """What its own server calls it."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether it says that it changes nothing."""
        ...

    @property
    def workspace_field(self) -> str:
        """The routing field for the workspace."""
        ...

    @property
    def raw(self) -> dict[str, Any]:
        """Its entry for `tools/list`, not to be changed."""
        ...


class AccountTool(Protocol):
    """One published name on the account endpoint."""

    @property
    def name(self) -> str:
        """The published name."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether it changes nothing in any project."""
        ...

    @property
    def project_field(self) -> str:
        """The routing field for the project."""
        ...

    @property
    def by_project(self) -> Mapping[ProjectId, ProxiedTool]:
        """What a call means, by project."""
        ...

    @property
    def raw(self) -> dict[str, Any]:
        """Its entry for `tools/list`, not to be changed."""
        ...


Admit = Callable[[bool], None]


class Proxies(Protocol):
    """The upstream servers of every project that is served."""

    def start(self, project: Project) -> None:
        """Begin to serve a project's upstreams; gives at once, and a second time does nothing."""
        ...

    def wait_until_settled(self, project_id: ProjectId, seconds: float) -> bool:
        """Wait until each of a project's servers has answered or failed."""
        ...

    def tools(self, project_id: ProjectId) -> Iterable[ProxiedTool]:
        """Give what a project publishes now."""
        ...

    def account_tools(self, project_ids: Iterable[ProjectId]) -> Iterable[AccountTool]:
        """Give what an account publishes that reaches these projects."""
        ...

    def forward(
        self,
        project_id: ProjectId,
        tool: Any,
        directory: Path,
        arguments: Mapping[str, Any],
        *,
        cancellation: Cancellation,
        on_progress: Callable[[Mapping[str, Any]], None],
        admit: Admit,
    ) -> dict[str, Any]:
        """Call a published tool in a directory; gives the raw result."""
        ...


class VerbatimArguments(Arguments, frozen=True, kw_only=True):
    """Arguments that only their own server validates."""

    values: dict[str, Any]


class VerbatimResult(Result, frozen=True, kw_only=True):
    """A result that leaves as it came."""

    raw: dict[str, Any]


def make_tool(proxies: Proxies, published: ProxiedTool) -> Tool[VerbatimArguments, VerbatimResult, Services]:
    """Make the tool value of a published tool.

    What its server says of destruction, idempotence and the open world stands in its own entry; here only whether it
    reads is judged.
    """

    def forward(call: Call[VerbatimArguments, Services]) -> VerbatimResult:
        place = call.require_place()
        raw = proxies.forward(
            place.project.id,
            published,
            place.root,
            call.arguments.values,
            cancellation=call.cancellation,
            on_progress=lambda facts: call.progress(make_step(facts)),
            admit=call.admit,
        )
        return VerbatimResult(raw=raw)

    return Tool(
        name=published.name,
        title=published.name,
        description="",
        arguments=VerbatimArguments,
        result=VerbatimResult,
        hints=Hints(published.read_only, not published.read_only, idempotent=False, open_world=True),
        routing=Routing.OPTIONAL,
        needs=Needs.CHECKOUT,
        function=forward,
        reasons={},
        workspace_field=published.workspace_field,
        upstream=Upstream(published.server, published.tool),
    )


def make_step(facts: Mapping[str, Any]) -> str:
    """Read what a server says of its progress; where the numbers are none, what it says is a line like any other."""
    message = facts.get("message")
    said = message if isinstance(message, str) and message else None
    progress, total = _find_number(facts.get("progress")), _find_number(facts.get("total"))
    return said or "" if progress is None else Step(progress, total, said)


def _find_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None
