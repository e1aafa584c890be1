"""The gate station: judges a parsed call by the project's policy, has a person asked, and keeps the record.

Only here does an `ApprovedCall` come to be. The policy room does the judging; this module tells it the plain facts.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from exeora_ws.errors import Code, ExeoraError, Forbidden
from exeora_ws.policy.audit import OK, Audit, CallFacts
from exeora_ws.policy.gate import Gate, InputRequired
from exeora_ws.policy.request import Request
from exeora_ws.policy.rules import Mode, Policy, narrow
from exeora_ws.policy.sources import LoadedPolicy, PolicyBook
from exeora_ws.policy.verdict import MustAsk, Refused, judge, permitted_tools
from exeora_ws.settings import Settings
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Needs
from exeora_ws.tools.stations import AnyTool, ApprovedCall, Caller, ParsedCall, PlacedCall
from exeora_ws.workspaces.place import Place, Project


class CallGate:
    """The station, over the policy room.

    Args:
        gate: makes approvals.
        book: the policies on disk.
        audit: the record of calls.
        services: for the user's settings.
        catalog: the tools on this face, for the message of a refusal.
    """

    def __init__(
        self, gate: Gate, book: PolicyBook, audit: Audit, services: Services, catalog: Mapping[str, AnyTool]
    ) -> None:
        self._gate = gate
        self._book = book
        self._audit = audit
        self._services = services
        self._tools = GovernedTools(catalog)

    def for_catalog(self, catalog: Mapping[str, AnyTool]) -> "CallGate":
        """Give the same gate for a face with other tools: the same policies, approvals and record."""
        return CallGate(self._gate, self._book, self._audit, self._services, catalog)

    def approve(self, parsed: ParsedCall, caller: Caller) -> ApprovedCall | InputRequired:
        """Let a call through, or say what the client must ask first.

        Raises:
            Forbidden, ApprovalDeclined, ApprovalTimeout, Cancelled: as `Gate.approve`; reason `token_read_only` where
                the caller's own rights do not reach.
        """
        require_right(parsed, caller)
        project, asking = parsed.project, caller.asking
        if project is None or not is_governed(parsed.tool):
            return ApprovedCall(parsed, None)
        request = describe_call(parsed, project, caller)

        def policy() -> Policy:
            return narrow(caller.policy, self.load_policy(project, parsed.place))

        if asking.by_return:
            approval = self._gate.approve_by_return(policy, request, asking.answer, tools=self._tools)
        else:
            approval = self._gate.approve(
                policy, request, asking.asker, caller.cancellation, tools=self._tools, progress=caller.progress
            )
        return approval if isinstance(approval, InputRequired) else ApprovedCall(parsed, approval)

    def judge_again(self, approved: ApprovedCall, caller: Caller, *, read_only: bool) -> None:
        """Judge an approved call once more, after whatever had to be started for it, by the policy as it is now.

        Raises:
            Forbidden: refused by now; reason `approval_needed` where a person would have to be asked by now.
        """
        parsed, approval = approved.parsed, approved.approval
        if parsed.project is None or approval is None:
            return
        request = replace(describe_call(parsed, parsed.project, caller), read_only=read_only)
        policy = narrow(caller.policy, self.load_policy(parsed.project, parsed.place))
        verdict = judge(policy, request, self._tools)
        if isinstance(verdict, Refused):
            raise verdict.error()
        if isinstance(verdict, MustAsk) and approval.way == "policy":
            raise Forbidden(
                f"{request.tool} needs a person's approval by now", reason="approval_needed", hint="call it again"
            )

    def load_policy(self, project: Project, place: Place | None) -> Policy:
        """Give what the user, the project and the workspace's own copy come to now."""
        return self.load_layers(project, place).policy

    def load_layers(self, project: Project, place: Place | None) -> LoadedPolicy:
        """Give the same, with what the authors of the layers should be told.

        A workspace whose folder is gone has no copy of its own: removing it is the project's business.
        """
        settings: Settings = self._services.settings()
        root = place.root if place is not None and place.root.is_dir() else project.root
        return self._book.load_policy(project.root, root, settings.project_policy(project.slug))

    def offered(self, tools: Iterable[AnyTool], projects: Iterable[Project], *, read_only: bool) -> list[AnyTool]:
        """Leave out what no project in reach offers, so that a hidden tool is not listed.

        Args:
            tools: the tools of the face, in order.
            projects: the projects in reach.
            read_only: whether the caller may only read.
        """
        return choose_offered(tools, (self.load_policy(project, None) for project in projects), read_only=read_only)

    def allows_proxied(self, project: Project, *, read_only: bool) -> bool:
        """Whether a project offers an upstream's tool: its lists do not apply, being read only does."""
        return offers_proxied(self.load_policy(project, None), read_only=read_only)

    @contextmanager
    def recording(self, call: ParsedCall, caller: Caller) -> Iterator[None]:
        """Write the intent before a call runs and its outcome after it.

        Raises:
            Forbidden: reason `audit_unwritable`; the call does not run then.
        """
        with keep_record(self._audit, describe_facts(call.tool.name, call.project, call.place, caller)):
            yield

    def note_refusal(self, tool: str, placed: PlacedCall | None, caller: Caller, error: ExeoraError) -> None:
        """Record a call that did not get to run.

        Raises:
            Forbidden: reason `audit_unwritable`.
        """
        project, place = (placed.project, placed.place) if placed is not None else (None, None)
        self._audit.note(describe_facts(tool, project, place, caller), str(error.code))


E = TypeVar("E")


class Recorder(Protocol[E]):
    """A record of calls; `policy/audit.py` is that of this machine."""

    def begin(self, facts: CallFacts) -> E:
        """Record that a call is about to run; raises `Forbidden`, reason `audit_unwritable`."""
        ...

    def finish(self, entry: E, outcome: str, duration_ms: int) -> None:
        """Record what became of it."""
        ...

    def note(self, facts: CallFacts, outcome: str, duration_ms: int = 0) -> None:
        """Record a call that never got to run; raises as `begin`."""
        ...


@dataclass(slots=True)
class Record:
    """What is to be written of a call that did not fail; the block may put something else than `OK`."""

    outcome: str = OK


@contextmanager
def keep_record(recorder: Recorder[E], facts: CallFacts) -> Iterator[Record]:
    """Write the intent before the block and its outcome after it.

    Raises:
        Forbidden: reason `audit_unwritable`; the block does not run then.
    """
    started = time.monotonic()
    entry = recorder.begin(facts)
    record = Record()
    # What is no `Exception` ends this process: somebody wants it to end.
    outcome = str(Code.CANCELLED)
    try:
        yield record
        outcome = record.outcome
    except ExeoraError as error:
        outcome = str(error.code)
        raise
    except Exception:
        outcome = str(Code.INTERNAL_ERROR)
        raise
    finally:
        recorder.finish(entry, outcome, int((time.monotonic() - started) * 1000))


def require_right(parsed: ParsedCall, caller: Caller) -> None:
    """See that the caller's own rights reach.

    Raises:
        Forbidden: reason `token_read_only`.
    """
    if caller.scope.read_only and not parsed.tool.hints.read_only:
        raise Forbidden(
            f"this connection may only read, and {parsed.tool.name} is not marked read only", reason="token_read_only"
        )


def choose_offered(tools: Iterable[AnyTool], policies: Iterable[Policy], *, read_only: bool) -> list[AnyTool]:
    """Leave out what none of the policies, one for each project in reach, offers."""
    listed = [tool for tool in tools if tool.hints.read_only or not read_only]
    names = [(tool.name, tool.hints.read_only) for tool in listed if is_governed(tool)]
    permitted: set[str] = set()
    for policy in policies:
        permitted |= permitted_tools(policy, names)
    return [tool for tool in listed if tool.name in permitted or not is_governed(tool)]


def offers_proxied(policy: Policy, *, read_only: bool) -> bool:
    """Whether a policy offers an upstream's tool: its lists do not apply, being read only does."""
    return read_only or policy.mode is not Mode.READ_ONLY


class GovernedTools:
    """Names of the tools that policies are about, and whether each only reads. Looked at by a refusal, not before."""

    def __init__(self, catalog: Mapping[str, AnyTool]) -> None:
        self._catalog = catalog

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        return iter([(t.name, t.hints.read_only) for t in self._catalog.values() if is_governed(t)])


def is_governed(tool: AnyTool) -> bool:
    """Whether a project's policy is about this tool; a tool that acts in no project has none."""
    return tool.needs is not Needs.NOTHING and not tool.account_only


def describe_call(parsed: ParsedCall, project: Project, caller: Caller) -> Request:
    """Give the plain facts that a policy is asked about."""
    workspace = parsed.place.workspace if parsed.place is not None else None
    command = parsed.tool.command
    return Request(
        project_id=project.id,
        project=project.slug,
        workspace_id=workspace.id if workspace else "",
        workspace=workspace.slug if workspace else "",
        tool=parsed.tool.name,
        read_only=parsed.tool.hints.read_only,
        arguments=parsed.raw,
        command=command(parsed.arguments) if command is not None else None,
        upstream=parsed.tool.upstream,
        listed_as=parsed.tool.listed_as,
        face=str(caller.face),
        client=caller.client,
        session=caller.session,
    )


def describe_facts(tool: str, project: Project | None, place: Place | None, caller: Caller) -> CallFacts:
    """Give what a record of the call holds."""
    return CallFacts(
        client=caller.client,
        face=str(caller.face),
        project=project.slug if project is not None else "",
        workspace=place.workspace.slug if place is not None else "",
        tool=tool,
    )
