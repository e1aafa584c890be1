"""The way of a call at a gateway: the stations are those of every call; carrying it out is a machine's business."""

from collections.abc import Callable, Mapping
from typing import Any

from exeora_ws.errors import UnknownProject
from exeora_ws.fleet.deadlines import find_limit
from exeora_ws.fleet.directory import Directory
from exeora_ws.fleet.dispatch import Machines
from exeora_ws.fleet.gate import AccountGate
from exeora_ws.fleet.records import RemoteProject
from exeora_ws.fleet.remote import Answered, Sending
from exeora_ws.tools.call import AnyTool, Caller, Outcome, Scope, Way
from exeora_ws.tools.gate import describe_facts, keep_record
from exeora_ws.tools.proxied import VerbatimResult
from exeora_ws.tools.spec import Routing
from exeora_ws.tools.stations import ApprovedCall, ParsedCall

ASKED = "INPUT_REQUIRED"
"""What the record says of a call that came back with a question for its client."""

LocalTool = Callable[[Scope, RemoteProject | None, Any], Any]
"""Answers a call out of the directory, given scope, project and arguments; gives the result."""


class FleetCalls(Way):
    """The way, for one toolset.

    Args:
        catalog: the tools of the toolset.
        directory: what machines have published.
        gate: the account's.
        machines: carry calls out.
        toolset: its name on the machines; None for the default one.
        local: the tools that are answered here, by name.
    """

    def __init__(
        self,
        catalog: Mapping[str, AnyTool],
        directory: Directory,
        gate: AccountGate,
        machines: Machines,
        *,
        toolset: str | None = None,
        local: Mapping[str, LocalTool],
    ) -> None:
        super().__init__(catalog, directory, gate, None if toolset else lambda: directory.proxies)
        self._gate = gate
        self._machines = machines
        self._toolset = toolset
        self._local = local
        self._directory = directory

    def carry_out(self, approved: ApprovedCall, caller: Caller) -> Outcome:
        """Answer a call here, or have its machine do it, on record.

        Raises:
            ExeoraError: what it came to on the machine, or on the way there.
            Forbidden: reason `audit_unwritable`; it was not sent then.
        """
        parsed = approved.parsed
        tool = parsed.tool
        facts = describe_facts(tool.name, parsed.project, parsed.place, caller)
        with keep_record(self._gate.recorder, facts) as record:
            caller.cancellation.raise_if_cancelled()
            local = self._local.get(tool.name)
            if local is not None:
                return Outcome(tool.name, result=local(caller.scope, _find_remote(parsed), parsed.arguments))
            answered = self._machines.call(self._address(parsed), caller)
            if answered.question is not None:
                record.outcome = ASKED
        return _show(tool, answered)

    def _address(self, parsed: ParsedCall) -> Sending:
        project = _find_remote(parsed)
        if project is None:
            raise UnknownProject("this call names no project", hint="list_projects names those there are")
        tool = parsed.tool
        arguments = dict(parsed.raw)
        if tool.routing is not Routing.NONE and parsed.place is not None:
            arguments[tool.workspace_field] = parsed.place.workspace.id
        return Sending(
            machine=project.machine,
            instance=project.instance,
            project=project.id,
            tool=tool.name,
            arguments=arguments,
            toolset=self._toolset,
            seconds=find_limit(tool, parsed.arguments),
        )


def _find_remote(parsed: ParsedCall) -> RemoteProject | None:
    project = parsed.project
    if project is not None and not isinstance(project, RemoteProject):
        raise AssertionError("a project of no machine")
    return project


def _show(tool: AnyTool, answered: Answered) -> Outcome:
    if answered.question is not None:
        return Outcome(tool.name, question=answered.question)
    if answered.verbatim is not None:
        return Outcome(tool.name, result=VerbatimResult(raw=answered.verbatim))
    return Outcome(tool.name, result=answered.structured, text=answered.text)
