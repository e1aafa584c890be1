"""A question of the gate, put to the person behind an MCP client, in the way of either era of the protocol.

Handshake era: the server asks (`elicitation/create`) while the call waits in its thread. 2026-07-28: the call is
answered with what is asked and a signed state, and the client calls again with both.
"""

import asyncio
from concurrent.futures import CancelledError
from typing import Any

import mcp_types as mcp
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from exeora_ws.cancellation import Cancellation
from exeora_ws.policy.gate import Answer, SignedAnswer
from exeora_ws.policy.question import Question
from exeora_ws.serve.service import ask_with
from exeora_ws.serve.shapes import CONFIRM, says_yes
from exeora_ws.tools.call import Asking


def find_asking(ctx: ServerRequestContext[Any, Any], params: mcp.CallToolRequestParams) -> Asking:
    """Work out how this client's person can be asked; an `Asking` without a way where the client has none."""
    if not _can_show_forms(ctx.session.client_capabilities):
        return Asking()
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return Asking(by_return=True, answer=_read_answer(params))
    return Asking(asker=ElicitationAsker(ctx)) if ctx.session.can_send_request else Asking()


class ElicitationAsker:
    """Asks while the call waits. Made on the event loop; `ask` is called in another thread."""

    way = "elicitation"

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx = ctx
        self._loop = asyncio.get_running_loop()

    def ask(self, question: Question, seconds: float, withdrawn: Cancellation) -> Answer:
        """Put the question; `NONE` when the client cannot show it after all, or nobody answers in time."""
        asking = asyncio.run_coroutine_threadsafe(self._elicit(question), self._loop)
        forget = withdrawn.on_cancel(lambda: _cancel(asking))
        try:
            return judge_answer(asking.result(seconds))
        except (TimeoutError, CancelledError):
            asking.cancel()
            return Answer.NONE
        finally:
            forget()

    async def _elicit(self, question: Question) -> mcp.ElicitResult:
        # Without the id it would go out on the standing stream, which a client over HTTP need not have open.
        form = ask_with(question)["requestedSchema"]
        return await self._ctx.session.elicit_form(question.text, form, related_request_id=self._ctx.request_id)


def _cancel(asking: "asyncio.Future[Any] | Any") -> None:
    asking.cancel()


def judge_answer(result: mcp.ElicitResult) -> Answer:
    """Take for a yes only an accepted form with a yes in it; a form that was closed is a no."""
    return Answer.ALLOW if says_yes({"action": result.action, "content": result.content}) else Answer.DECLINE


def _can_show_forms(capabilities: mcp.ClientCapabilities | None) -> bool:
    """An empty `elicitation` means forms; one that names `url` alone does not."""
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _read_answer(params: mcp.CallToolRequestParams) -> SignedAnswer | None:
    if params.request_state is None:
        return None
    response = (params.input_responses or {}).get(CONFIRM)
    answer = judge_answer(response) if isinstance(response, mcp.ElicitResult) else Answer.NONE
    return SignedAnswer(params.request_state, answer)
