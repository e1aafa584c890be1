"""The policy's answer to one call: allowed, refused with a reason, or a person must be asked. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exeora_ws.errors import Forbidden
from exeora_ws.policy.question import Question, make_question
from exeora_ws.policy.request import Request
from exeora_ws.policy.rules import Mode, Origin, Policy, Rule

if TYPE_CHECKING:
    from exeora_ws.policy.commands import CommandVerdict

CHECK_HINT = "exeora policy check shows what is allowed; a refusal is an answer, not something to work around"

REASONS = {
    "policy_invalid": "a policy could not be understood, so the project is read only until it is corrected",
    "read_only": "the project is read only, and the tool is not",
    "tool_not_permitted": "the project does not offer this tool",
    "denied": "a deny rule matches the command",
    "shell_syntax": "a list is in force, and the command holds shell syntax that the policy does not allow",
    "not_allowed": "an allow list is in force, and no rule allows the command",
    "command_unclear": "a list is in force, and what the command would run cannot be told",
    "nobody_to_ask": "the project asks before changes, and there is nobody to ask",
    "approval_mismatch": "the answer belongs to another call, or to no question that was asked here",
    "approval_used": "the answer was used before",
    "audit_unwritable": "the call could not be recorded, so it was not made",
}
"""The machine-readable reasons of FORBIDDEN that come from here, for docs/tools.md."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """It may run."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It may not run. `origin` is the layer that decided, `rule` the rule, where one did."""

    reason: str
    message: str
    hint: str | None = None
    rule: Rule | None = None
    origin: Origin = Origin.DEFAULT
    permitted: tuple[str, ...] | None = None

    def error(self) -> Forbidden:
        """Make the error a caller gets."""
        data = {} if self.permitted is None else {"permitted": list(self.permitted)}
        return Forbidden(self.message, reason=self.reason, hint=self.hint, data=data or None)


@dataclass(frozen=True, slots=True)
class MustAsk:
    """It may run once a person has said yes to exactly this."""

    question: Question


Verdict = Allowed | Refused | MustAsk


def permitted_tools(policy: Policy, tools: Iterable[tuple[str, bool]]) -> set[str]:
    """Choose the tools of our own that a project offers.

    Args:
        policy: the project's.
        tools: names and whether each is read only. Leave out what no project's policy applies to.
    """
    return {
        name
        for name, read_only in tools
        if (read_only or policy.mode is not Mode.READ_ONLY) and (policy.tools is None or name in policy.tools)
    }


def judge(policy: Policy, request: Request, tools: Iterable[tuple[str, bool]] = ()) -> Verdict:
    """Judge one call.

    Args:
        policy: what the layers come to.
        request: the call.
        tools: the tools on this face, so that a refusal can say which ones are permitted.
    """
    refused = _judge_tool(policy, request, tools) or _judge_mode(policy, request, tools) or _judge_line(policy, request)
    if refused is not None:
        return refused
    if policy.approve and not request.read_only:
        return MustAsk(make_question(request))
    return Allowed()


def _judge_tool(policy: Policy, request: Request, tools: Iterable[tuple[str, bool]]) -> Refused | None:
    """The `tools` list names tools of our own; an upstream's tools are not its business (contract, section 9)."""
    names = (request.tool,) if request.listed_as is None else request.listed_as
    if request.upstream is not None or policy.tools is None or policy.tools.issuperset(names):
        return None
    return Refused(
        "tool_not_permitted",
        f"project {request.project!r} does not offer {request.tool}",
        hint=_list_permitted(policy, tools),
        origin=policy.origin_of("tools"),
        permitted=_permitted(policy, tools),
    )


def _judge_mode(policy: Policy, request: Request, tools: Iterable[tuple[str, bool]]) -> Refused | None:
    if policy.mode is not Mode.READ_ONLY or request.read_only:
        return None
    origin, permitted = policy.origin_of("mode"), _permitted(policy, tools)
    if policy.faults:
        message = f"project {request.project!r} is closed to read only because its policy cannot be understood: "
        hint = "a person has to correct it; exeora policy check shows what is wrong"
        return Refused("policy_invalid", message + "; ".join(policy.faults), hint, None, origin, permitted)
    message = f"project {request.project!r} is read only, and {request.tool} is not marked read only"
    return Refused("read_only", message, _list_permitted(policy, tools), None, origin, permitted)


def _judge_line(policy: Policy, request: Request) -> Refused | None:
    if request.command is None:
        return None
    if not policy.has_list:
        return None
    from exeora_ws.policy.commands import judge_command  # noqa: PLC0415  reading a command line takes 30 modules

    verdict = judge_command(policy, request.command)
    if verdict.reason is None:
        return None
    message = f"project {request.project!r} does not allow this command: {verdict.text}"
    rule = verdict.rules[0] if verdict.rules else None
    return Refused(verdict.reason, message, CHECK_HINT, rule, find_origin(policy, verdict))


def _permitted(policy: Policy, tools: Iterable[tuple[str, bool]]) -> tuple[str, ...]:
    return tuple(sorted(permitted_tools(policy, tools)))


def _list_permitted(policy: Policy, tools: Iterable[tuple[str, bool]]) -> str:
    names = _permitted(policy, tools)
    return "permitted: " + ", ".join(names) if names else "no tool is permitted"


def find_origin(policy: Policy, verdict: "CommandVerdict") -> Origin:
    """Say which layer decided about a command."""
    if verdict.rules:
        return verdict.rules[0].origin
    if verdict.reason == "shell_syntax":
        return policy.origin_of("shell")
    return policy.origin_of("allow" if policy.allow is not None else "deny")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a command line would run or not, for `exeora policy check -- CMD…`.

    Args:
        allowed: whether the tools that run commands would run it.
        asks: whether a person would be asked first.
        reason: the machine-readable reason of a refusal.
        text: one sentence.
        rules: the rules that decided.
        origin: the layer that decided.
        faults: what is wrong with the layers, if anything.
    """

    allowed: bool
    asks: bool
    reason: str | None
    text: str
    rules: tuple[Rule, ...]
    origin: Origin
    faults: tuple[str, ...]


def explain(policy: Policy, command: str) -> Explanation:
    """Explain what would become of a command line."""
    from exeora_ws.policy.commands import judge_command  # noqa: PLC0415  as above

    verdict = judge_command(policy, command)
    origin = find_origin(policy, verdict)
    if policy.mode is Mode.READ_ONLY:
        reason = "policy_invalid" if policy.faults else "read_only"
        return Explanation(
            False, False, reason, "the project is read only, so no command runs", (), policy.origin_of("mode"),
            policy.faults,
        )  # fmt: skip
    allowed = verdict.reason is None
    return Explanation(
        allowed, allowed and policy.approve, verdict.reason, verdict.text, verdict.rules, origin, policy.faults
    )
