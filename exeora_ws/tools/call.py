"""The way of a call: route → place → parse → gate → run. Each station has its own type, so no other order type-checks.

```
RawCall ── route ─→ RoutedCall ── place ─→ PlacedCall ── parse ─→ ParsedCall ── gate ─→ ApprovedCall ── run ─→ Outcome
           tool,                  selector                arguments                policy,                 the tool's
           routing fields         to a place              to typed values          approval                function
           taken off              or an error             or an error              or an error
```

`route` takes the routing fields off before the tool's own arguments are looked at, and `place` resolves them to stable
ids before that too (contract, section 2). Every face takes this way; none has another.
"""

import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError, InternalError, InvalidArguments, UnknownProject, UnknownTool
from exeora_ws.names import MAIN
from exeora_ws.policy.gate import InputRequired
from exeora_ws.tools.gate import CallGate
from exeora_ws.tools.proxied import AccountTool, ProxiedTool, Proxies, VerbatimArguments, make_tool
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Arguments, Call, Needs, Result, Routing, Tool
from exeora_ws.tools.stations import (
    AnyTool,
    ApprovedCall,
    Asking,
    Caller,
    Face,
    Outcome,
    ParsedCall,
    PlacedCall,
    RawCall,
    Registered,
    RoutedCall,
    Scope,
    Station,
)
from exeora_ws.workspaces.place import Project

__all__ = ["AnyTool", "Asking", "Caller", "Calls", "Face", "Outcome", "RawCall", "Scope", "Way"]

log = logging.getLogger("exeora")

PROXIED_PREFIX = "mcp__"
"""How the names of upstream tools begin, and no others."""
FIRST_ANSWER_SECONDS = 30.0
_LOOK_SECONDS = 0.1

N = TypeVar("N", ProxiedTool, AccountTool)


class Way(ABC):
    """The stations up to running, wherever that takes place.

    Args:
        catalog: the tools of our own.
        registered: what selectors are resolved in.
        station: the gate.
        proxies: gives the upstream servers; None where their tools are not offered.
    """

    def __init__(
        self,
        catalog: Mapping[str, AnyTool],
        registered: Registered,
        station: Station,
        proxies: Callable[[], Proxies] | None = None,
    ) -> None:
        self.catalog = catalog
        self._registered = registered
        self._station = station
        self._proxies = proxies

    @abstractmethod
    def carry_out(self, approved: ApprovedCall, caller: Caller) -> Outcome:
        """Have what was approved done, on record; raises what it comes to when that is no result."""

    def make(self, raw: RawCall, caller: Caller) -> Outcome:
        """Take a call the whole way. Never raises but for `BaseException`s that end the process.

        A bug becomes an `InternalError` with an id; its traceback stands in the log under that id and nowhere else.
        """
        try:
            return self._make(raw, caller)
        except ExeoraError as error:
            return Outcome(raw.tool, error=error, text=self._word(raw.tool, error))
        except Exception:
            identity = secrets.token_hex(6)
            log.exception("bug %s in %s", identity, raw.tool)
            bug = InternalError(f"internal error {identity}; see the log", data={"id": identity})
            return Outcome(raw.tool, error=bug)

    def _make(self, raw: RawCall, caller: Caller) -> Outcome:
        placed: PlacedCall | None = None
        try:
            placed = self.place(self.route(raw, caller.scope, caller.cancellation), caller.scope)
            parsed = parse(placed)
            approved = self._station.approve(parsed, caller)
        except ExeoraError as error:
            self._station.note_refusal(raw.tool, placed, caller, error)
            raise
        if isinstance(approved, InputRequired):
            return Outcome(raw.tool, question=approved)
        return self.carry_out(approved, caller)

    def _word(self, name: str, error: ExeoraError) -> str | None:
        tool = self.catalog.get(name)
        return None if tool is None or tool.render_error is None else tool.render_error(error)

    def offered(self, scope: Scope) -> list[AnyTool]:
        """List the tools that a caller is offered: those of its face that a project in reach does not hide."""
        tools = [tool for tool in self.catalog.values() if scope.account or not tool.account_only]
        return self._station.offered(tools, self._reachable(scope), read_only=scope.read_only)

    def route(self, raw: RawCall, scope: Scope, cancellation: Cancellation) -> RoutedCall:
        """Find the tool and take its routing fields off.

        Raises:
            Cancelled: while the server was awaited whose tool it may be.
            UnknownTool: not in this catalog, or only for accounts.
            InvalidArguments: a routing field that is no string, or a required one that is missing.
        """
        tool = self.catalog.get(raw.tool)
        if tool is None:
            return self._route_proxied(raw, scope, cancellation)
        arguments = dict(raw.arguments)
        project = _take(arguments, Tool.PROJECT_FIELD) if scope.account and tool.needs is not Needs.NOTHING else None
        return RoutedCall(tool, project, _take_workspace(arguments, tool), arguments)

    def require_tool(self, name: str, scope: Scope, cancellation: Cancellation) -> AnyTool:
        """Find a tool by its name, an upstream's too, which may have to be started for it.

        Raises:
            Cancelled: while its server was awaited.
            UnknownTool: there is none in reach.
        """
        return self.catalog.get(name) or self._route_proxied(RawCall(name, {}), scope, cancellation).tool

    def list_proxied(self, scope: Scope, cancellation: Cancellation) -> list[dict[str, Any]]:
        """List the entries of upstream tools that a caller is offered, once every server has answered or failed.

        A server that takes longer than one has time to answer is left out.

        Raises:
            Cancelled: while they were awaited.
        """
        if self._proxies is None:
            return []
        _await_servers(self._proxies(), self._reachable(scope), None, cancellation)
        return self.offered_proxied(scope)

    def _route_proxied(self, raw: RawCall, scope: Scope, cancellation: Cancellation) -> RoutedCall:
        """Find a tool of an upstream server; on an account, the project decides whose it is."""
        unknown = UnknownTool(f"there is no tool {raw.tool[:100]!r}", hint="tools/list names those there are")
        if self._proxies is None or not raw.tool.startswith(PROXIED_PREFIX):
            raise unknown
        proxies, arguments = self._proxies(), dict(raw.arguments)
        reachable = self._reachable(scope)
        _await_servers(proxies, reachable, raw.tool, cancellation)
        if scope.bound is not None:
            project, published = reachable[0], _named(proxies.tools(scope.bound), raw.tool)
        else:
            merged = _named(proxies.account_tools(p.id for p in reachable), raw.tool)
            if merged is None:
                raise unknown
            project = self._choose_project(_take(arguments, merged.project_field), merged, scope)
            published = merged.by_project.get(project.id)
        if published is None:
            raise unknown
        tool = make_tool(proxies, published)
        return RoutedCall(tool, project.id, _take_workspace(arguments, tool), arguments)

    def _choose_project(self, selector: str | None, merged: AccountTool, scope: Scope) -> Project:
        if selector is None and len(merged.by_project) == 1:
            return self._registered.require_project(next(iter(merged.by_project)))
        return self._require_project(selector, scope)

    def place(self, routed: RoutedCall, scope: Scope) -> PlacedCall:
        """Resolve project and workspace; there is no way to a place but this.

        Raises:
            UnknownProject, UnknownWorkspace, WorkspaceUnavailable: as the contract has it, section 2.
            InvalidArguments: `project` is needed to choose.
        """
        tool = routed.tool
        if tool.needs is Needs.NOTHING:
            return PlacedCall(tool, None, None, routed.arguments)
        project = self._require_project(routed.project, scope)
        if routed.workspace is None:
            return PlacedCall(tool, project, None, routed.arguments)
        place = self._registered.require_place(project, routed.workspace)
        if tool.needs is not Needs.RECORD:
            self._registered.require_available(place, files=tool.needs is Needs.CHECKOUT)
        return PlacedCall(tool, project, place, routed.arguments)

    def _require_project(self, selector: str | None, scope: Scope) -> Project:
        inventory = self._registered
        if scope.bound is not None:
            return inventory.require_project(scope.bound)
        if selector is not None:
            project = inventory.require_project(selector)
            if scope.granted is not None and project.id not in scope.granted:
                raise UnknownProject(
                    f"there is no project {selector[:100]!r}", hint="list_projects names those there are"
                )
            return project
        return self._only_project(scope)

    def _only_project(self, scope: Scope) -> Project:
        reachable = [p for p in self._registered.list_projects() if scope.granted is None or p.id in scope.granted]
        if len(reachable) == 1:
            return reachable[0]
        if not reachable:
            raise UnknownProject("this connection reaches no project", hint="exeora project add PATH")
        raise InvalidArguments(
            "project: required, since this connection reaches more than one project",
            reason="missing_field",
            hint="list_projects names them",
        )

    def offered_proxied(self, scope: Scope) -> list[dict[str, Any]]:
        """List the entries of upstream tools that a caller is offered now; starts their servers in the background."""
        if self._proxies is None:
            return []
        proxies, projects = self._proxies(), {p.id: p for p in self._reachable(scope)}
        for project in projects.values():
            proxies.start(project)
        if scope.bound is not None:
            found = [(t.raw, t.read_only, [scope.bound]) for t in proxies.tools(scope.bound)]
        else:
            found = [(t.raw, t.read_only, list(t.by_project)) for t in proxies.account_tools(projects)]
        return [
            raw
            for raw, read_only, holders in found
            if (read_only or not scope.read_only)
            and any(self._station.allows_proxied(projects[holder], read_only=read_only) for holder in holders)
        ]

    def _reachable(self, scope: Scope) -> list[Project]:
        inventory = self._registered
        if scope.bound is not None:
            return [inventory.require_project(scope.bound)]
        return [p for p in inventory.list_projects() if scope.granted is None or p.id in scope.granted]


class Calls(Way):
    """The way on this machine, with the core it runs on."""

    def __init__(
        self,
        catalog: Mapping[str, AnyTool],
        services: Services,
        gate: CallGate,
        proxies: Callable[[], Proxies] | None = None,
    ) -> None:
        super().__init__(catalog, services.inventory, gate, proxies)
        self.services = services
        self.gate = gate

    def with_only(self, tool: AnyTool) -> "Calls":
        """Give the same way for one tool: another way of doing what one of that name does, or one not listed."""
        return Calls({tool.name: tool}, self.services, self.gate)

    def carry_out(self, approved: ApprovedCall, caller: Caller) -> Outcome:
        """Run what was approved, on record."""
        tool = approved.parsed.tool
        with self.gate.recording(approved.parsed, caller):
            result = self.run(approved, caller)
        return Outcome(tool.name, result=result, text=None if tool.render is None else tool.render(result))

    def run(self, approved: ApprovedCall, caller: Caller) -> Result:
        """Do what was approved."""
        caller.cancellation.raise_if_cancelled()
        caller.require_wanted()
        parsed = approved.parsed
        call: Call[Any, Services] = Call(
            place=parsed.place,
            project=parsed.project,
            arguments=parsed.arguments,
            services=self.services,
            cancellation=caller.cancellation,
            progress=caller.progress,
            granted=caller.scope.granted,
            admit=lambda read_only: self.gate.judge_again(approved, caller, read_only=read_only),
            session=caller.session,
        )
        result: Result = parsed.tool.function(call)
        return result


def parse(placed: PlacedCall) -> ParsedCall:
    """Type the tool's own arguments.

    Raises:
        InvalidArguments: names the field; reason `unknown_field`, `missing_field` or `wrong_value`.
    """
    if placed.tool.upstream is not None:
        passed_on = VerbatimArguments(values=dict(placed.arguments))
        return ParsedCall(placed.tool, placed.project, placed.place, passed_on, placed.arguments)
    prepare = placed.tool.prepare
    given = placed.arguments if prepare is None else prepare(placed.arguments)
    try:
        arguments: Arguments = msgspec.convert(dict(given), placed.tool.arguments)
    except msgspec.ValidationError as error:
        raise _explain(str(error)) from None
    return ParsedCall(placed.tool, placed.project, placed.place, arguments, placed.arguments)


def _take_workspace(arguments: dict[str, Any], tool: AnyTool) -> str | None:
    """Take the selector off; omitted means main, which is said here and nowhere else."""
    if tool.routing is Routing.NONE:
        return None
    workspace = _take(arguments, tool.workspace_field)
    if workspace is None and tool.routing is Routing.REQUIRED:
        raise InvalidArguments("workspace: required: name the workspace to act on", reason="missing_field")
    return MAIN if workspace is None else workspace


def _await_servers(proxies: Proxies, projects: Iterable[Project], name: str | None, cancellation: Cancellation) -> None:
    """Give servers that have not answered yet their time: a tool may be called before it was ever listed.

    Its own server need only have answered: one that hangs holds up no tool of another. Without a name, all of them.
    """
    end = time.monotonic() + FIRST_ANSWER_SECONDS
    for project in projects:
        proxies.start(project)
        while (name is None or _named(proxies.tools(project.id), name) is None) and (
            left := end - time.monotonic()
        ) > 0:
            cancellation.raise_if_cancelled()
            if proxies.wait_until_settled(project.id, min(left, _LOOK_SECONDS)):
                break


def _named(tools: Iterable[N], name: str) -> N | None:
    return next((tool for tool in tools if tool.name == name), None)


def _take(arguments: dict[str, Any], name: str) -> str | None:
    if name not in arguments:
        return None
    value = arguments.pop(name)
    if not isinstance(value, str):
        raise InvalidArguments(f"{name}: expected a string", reason="wrong_value")
    return value


def _explain(text: str) -> InvalidArguments:
    """Turn msgspec's sentence into one that starts with the field's name."""
    sentence, _, path = text.partition(" - at `$")
    where = path.rstrip("`").lstrip(".")
    if "unknown field `" in sentence:
        name = sentence.split("`")[1]
        full = f"{where}.{name}" if where else name
        return InvalidArguments(f"{full}: unknown field", reason="unknown_field")
    if "missing required field `" in sentence:
        name = sentence.split("`")[1]
        full = f"{where}.{name}" if where else name
        return InvalidArguments(f"{full}: required field is missing", reason="missing_field")
    plain = sentence[0].lower() + sentence[1:]
    return InvalidArguments(f"{where}: {plain}" if where else sentence, reason="wrong_value")
