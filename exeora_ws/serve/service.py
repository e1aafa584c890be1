"""What a server does for its clients with the core, whatever carries the protocol. For worker threads."""

import logging
import secrets
from collections.abc import Mapping
from typing import Any

from exeora_ws.errors import ExeoraError, InternalError, InvalidArguments, UnknownTool
from exeora_ws.policy.gate import InputRequired
from exeora_ws.policy.question import Question
from exeora_ws.serve.listing import describe_tool, page_of
from exeora_ws.serve.manual import HOUSE_MANUAL, Manual
from exeora_ws.serve.offers import Offers
from exeora_ws.serve.protocol import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, ProtocolError
from exeora_ws.serve.results import show_error, show_outcome
from exeora_ws.serve.shapes import CONFIRM
from exeora_ws.tools.call import Caller, RawCall, Scope
from exeora_ws.tools.core import CallMaker

log = logging.getLogger("exeora")

_FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        CONFIRM: {"type": "boolean", "title": "Allow this call", "description": "Yes runs exactly what is shown above."}
    },
    "required": [CONFIRM],
}


class Service:
    """The core as MCP shows it. Thread-safe.

    Args:
        calls: the way of a call, with its catalog. The catalog is read anew for each listing.
        manual: instructions and prompts.
        wire_bytes: the longest answer that the transport carries, None for any.
    """

    def __init__(self, calls: CallMaker, manual: Manual = HOUSE_MANUAL, *, wire_bytes: int | None = None) -> None:
        self.calls = calls
        self.manual = manual
        self.offers = Offers(calls.offered)
        self._wire_bytes = wire_bytes

    def list_tools(self, scope: Scope, cursor: str | None) -> dict[str, Any]:
        """Answer `tools/list`.

        Raises:
            ProtocolError: a cursor that no page gave.
            ExeoraError: what is offered cannot be found out.
        """
        native = [describe_tool(tool, account=scope.account) for tool in self.offers.list(scope)]
        try:
            page, following = page_of(native + self.calls.offered_proxied(scope), cursor)
        except InvalidArguments as error:
            raise ProtocolError(INVALID_PARAMS, error.message) from None
        return {"tools": page, **({"nextCursor": following} if following else {})}

    def call_tool(self, raw: RawCall, caller: Caller, *, embed: bool = False) -> dict[str, Any]:
        """Answer `tools/call`; a failed call, and one for which a person must be asked first, are answers too.

        Args:
            raw: the call.
            caller: who makes it.
            embed: whether structured content may stand in the answer as JSON already (`msgspec.Raw`).

        Raises:
            ProtocolError: a bug; the log has it.
        """
        tool = self.calls.catalog.get(raw.tool)
        if tool is not None and tool.account_only and not caller.scope.account:
            unknown = UnknownTool(f"there is no tool {raw.tool[:100]!r}", hint="tools/list names those there are")
            return show_error(unknown)
        outcome = self.calls.make(raw, caller)
        if outcome.question is not None:
            return show_question(outcome.question)
        if isinstance(outcome.error, InternalError):
            raise ProtocolError(INTERNAL_ERROR, outcome.error.message, dict(outcome.error.data or {}))
        return show_outcome(outcome, wire_bytes=self._wire_bytes, embed=embed)

    def answer_call(self, raw: RawCall, caller: Caller, *, embed: bool = False) -> dict[str, Any] | ProtocolError:
        """As `call_tool`; never raises but for what ends the process."""
        try:
            return self.call_tool(raw, caller, embed=embed)
        except Exception as error:  # noqa: BLE001 - whatever it is, `explain` logs it
            return explain(error, "tools/call")


def ask_with(question: Question) -> dict[str, Any]:
    """Give the form that puts a question: the parameters of an elicitation."""
    return {"mode": "form", "message": question.text, "requestedSchema": dict(_FORM)}


def show_question(required: InputRequired) -> dict[str, Any]:
    """Give the answer of a call that waits for its client to ask."""
    asked = {"method": "elicitation/create", "params": ask_with(required.question)}
    return {"resultType": "input_required", "inputRequests": {CONFIRM: asked}, "requestState": required.state}


def explain(error: Exception, method: str) -> ProtocolError:
    """Give what a client is told of an error: no exception's text but our own leaves."""
    if isinstance(error, ProtocolError):
        return error
    if isinstance(error, ExeoraError):
        return ProtocolError(INVALID_REQUEST, f"{error.code}: {error.message}", {"error": error.to_dict()})
    identity = secrets.token_hex(6)
    log.error("bug %s in %s", identity, method, exc_info=error)
    return ProtocolError(INTERNAL_ERROR, f"internal error {identity}; see the log", {"id": identity})
