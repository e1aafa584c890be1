"""The gate at the gateway: the account's policy, judged by the function that judges on a machine.

Nobody is asked here. The account's policy travels with the call, and the machine, which narrows it by the user's and
the project's, has the one question asked that comes of all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from exeora_ws.errors import ExeoraError
from exeora_ws.policy.rules import Policy
from exeora_ws.policy.verdict import Refused, judge
from exeora_ws.tools.call import AnyTool, Caller
from exeora_ws.tools.gate import (
    GovernedTools,
    Recorder,
    choose_offered,
    describe_call,
    describe_facts,
    is_governed,
    offers_proxied,
    require_right,
)
from exeora_ws.tools.stations import ApprovedCall, ParsedCall, PlacedCall
from exeora_ws.workspaces.place import Project


class AccountGate:
    """The station.

    Args:
        account: gives the account's policy as it is now.
        published: gives what a project offered when its machine last said so, narrowed by the account's policy.
        recorder: the record of calls.
        catalog: the tools on this face, for the message of a refusal.
    """

    def __init__(
        self,
        account: Callable[[], Policy],
        published: Callable[[Project], Policy],
        recorder: Recorder[Any],
        catalog: Mapping[str, AnyTool],
    ) -> None:
        self._account = account
        self._published = published
        self.recorder = recorder
        self._tools = GovernedTools(catalog)

    def approve(self, parsed: ParsedCall, caller: Caller) -> ApprovedCall:
        """Let a call go to its machine.

        Raises:
            Forbidden: the account's policy refuses it; reason `token_read_only` where the token's rights do not reach.
        """
        require_right(parsed, caller)
        if parsed.project is not None and is_governed(parsed.tool):
            verdict = judge(self._account(), describe_call(parsed, parsed.project, caller), self._tools)
            if isinstance(verdict, Refused):
                raise verdict.error()
        return ApprovedCall(parsed, None)

    def note_refusal(self, tool: str, placed: PlacedCall | None, caller: Caller, error: ExeoraError) -> None:
        """Record a call that went nowhere.

        Raises:
            Forbidden: reason `audit_unwritable`.
        """
        project, place = (placed.project, placed.place) if placed is not None else (None, None)
        self.recorder.note(describe_facts(tool, project, place, caller), str(error.code))

    def offered(self, tools: Iterable[AnyTool], projects: Iterable[Project], *, read_only: bool) -> list[AnyTool]:
        """Leave out what no project in reach offers."""
        return choose_offered(tools, dict.fromkeys(map(self._published, projects)), read_only=read_only)

    def allows_proxied(self, project: Project, *, read_only: bool) -> bool:
        """Whether a project offers an upstream's tool."""
        return offers_proxied(self._published(project), read_only=read_only)
