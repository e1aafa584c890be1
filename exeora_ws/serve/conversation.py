"""One MCP server over the core, whatever carries it: tools, prompts, instructions, in both eras of the protocol.

The answers to `tools/list` and `tools/call` leave as they were written. The library's own way would pass them through
models that drop unknown fields and refuse a whole answer for one odd member, which a result that we only hand on from
another server must not suffer; a middleware therefore puts the answer in place of the one the models saw.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import mcp_types as mcp
from anyio import to_thread
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from exeora_ws import __version__
from exeora_ws.cancellation import Cancellation, Progress, no_progress
from exeora_ws.limits import CALLS_AT_ONCE
from exeora_ws.serve.asking import find_asking
from exeora_ws.serve.courtesies import get_prompt, list_prompts
from exeora_ws.serve.lifetime import look_after
from exeora_ws.serve.notices import Notices
from exeora_ws.serve.offers import OFFERS_SECONDS
from exeora_ws.serve.progress import ProgressLine
from exeora_ws.serve.protocol import NAME, TITLE, ProtocolError, complete
from exeora_ws.serve.service import Service, explain
from exeora_ws.serve.shapes import name_client
from exeora_ws.serve.workers import Workers
from exeora_ws.tools.call import Asking, Caller, Face, RawCall, Scope

Context = ServerRequestContext[Any, Any]

_verbatim: ContextVar[dict[str, Any] | None] = ContextVar("verbatim", default=None)
"""The answer of the request that this task handles, as it shall leave."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who is at the other end of a request."""

    face: Face
    scope: Scope
    session: str
    """Names what started processes live as long as."""
    gone: anyio.Event | None = None
    """Set when nobody can receive the answer any more, on transports where the library does not cancel then."""


class Conversation:
    """The server. One serves any number of connections.

    Args:
        service: what it does with the core.
        visitor_of: tells who sends a request.
        opened: told of each handshake that was accepted.
        calls_at_once: how many calls run; further ones wait.
    """

    def __init__(
        self,
        service: Service,
        visitor_of: Callable[[Context], Visitor],
        *,
        opened: Callable[[Context], None] | None = None,
        calls_at_once: int = CALLS_AT_ONCE,
    ) -> None:
        self._service = service
        self._visitor_of = visitor_of
        self._opened = opened
        self._workers = Workers(service.answer_call, calls_at_once)
        self._notices = Notices()
        self.server = self._make_server()

    def _make_server(self) -> "Server[Any]":
        prompts = self._service.manual.prompts
        server = _AnnouncingServer(
            NAME,
            title=TITLE,
            version=__version__,
            # None skips a check that would list all tools before every call over HTTP; no tool declares such headers.
            get_tool_input_schema=lambda _name: None,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts if prompts else None,
            on_get_prompt=self._get_prompt if prompts else None,
            on_subscriptions_listen=self._notices.listen,
        )
        server.add_notification_handler("notifications/initialized", mcp.NotificationParams, self._join)
        server.middleware[:] = [_guard, self._introduce, _deliver]
        return server

    async def stop(self) -> None:
        """Take back all calls, each of which is answered, and end the subscriptions."""
        self._notices.close()
        await self._workers.stop()

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        return self._workers.all_ended

    async def announce(self) -> None:
        """Send what `notify_tools_changed` asks for, until cancelled; the transport runs this beside its own loop."""
        async with anyio.create_task_group() as both:
            both.start_soon(self._notices.run)
            both.start_soon(self._watch_offers)

    async def _watch_offers(self) -> None:
        while True:
            await anyio.sleep(OFFERS_SECONDS)
            await look_after(self._compare_offers, "comparing what is offered")

    async def _compare_offers(self) -> None:
        if self._notices.heard and await to_thread.run_sync(self._service.offers.have_changed):
            self.notify_tools_changed()

    def notify_tools_changed(self) -> None:
        """Tell every client that listens to list the tools again. For any thread."""
        self._notices.tools_changed()

    async def _join(self, ctx: Context, _params: mcp.NotificationParams) -> None:
        self._notices.join(connection_of(ctx), ctx.session)

    async def _introduce(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Put the instructions for this connection's scope into the handshake of either era."""
        result = await call_next(ctx)
        if ctx.method == "initialize" and self._opened is not None:
            self._opened(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            instructions = self._service.manual.instructions(self._visitor_of(ctx).scope.account)
            return {**result, "instructions": instructions} if instructions else result
        return result

    async def _list_tools(self, ctx: Context, params: mcp.PaginatedRequestParams | None) -> mcp.ListToolsResult:
        scope, cursor = self._visitor_of(ctx).scope, params.cursor if params else None
        # In a thread: what is offered depends on files.
        _answer(ctx, await to_thread.run_sync(self._service.list_tools, scope, cursor), cacheable=True)
        return mcp.ListToolsResult(tools=[])

    async def _call_tool(self, ctx: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        visitor = self._visitor_of(ctx)
        raw = RawCall(params.name, params.arguments or {})
        line = ProgressLine(partial(_report, ctx)) if _wants_progress(ctx) else None
        caller = _make_caller(ctx, visitor, line.say if line else no_progress, find_asking(ctx, params))
        async with anyio.create_task_group() as beside:
            if line:
                beside.start_soon(line.pump)
            if visitor.gone is not None:
                beside.start_soon(_cancel_when_gone, visitor.gone, caller.cancellation)
            answered = await self._workers.run(raw, caller)
            if line:
                await line.flush()
            beside.cancel_scope.cancel()
        if isinstance(answered, ProtocolError):
            raise answered
        _answer(ctx, answered)
        return mcp.CallToolResult(content=[])

    async def _list_prompts(self, _ctx: Context, _params: object) -> mcp.ListPromptsResult:
        return mcp.ListPromptsResult.model_validate(list_prompts(self._service.manual))

    async def _get_prompt(self, ctx: Context, params: mcp.GetPromptRequestParams) -> mcp.GetPromptResult:
        account = self._visitor_of(ctx).scope.account
        return mcp.GetPromptResult.model_validate(get_prompt(self._service.manual, params.name, account=account))


def _answer(ctx: Context, answer: dict[str, Any], *, cacheable: bool = False) -> None:
    """Have `answer` leave, with what the later era wants around it."""
    _verbatim.set(complete(answer, cacheable=cacheable) if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else answer)


class _AnnouncingServer(Server[Any]):
    """Says in the handshake that lists may change: the HTTP transport would leave the options out."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


async def _guard(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Let no exception's text out: on the handshake era the library would send it to the client."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, `explain` logs it
        told = explain(error, ctx.method)
    raise MCPError(told.code, told.message, told.data)


async def _deliver(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Put the answer that a handler wrote in place of the one that passed the models."""
    if ctx.request_id is None:
        return await call_next(ctx)
    mark = _verbatim.set(None)
    try:
        result = await call_next(ctx)
        return _verbatim.get() or result
    finally:
        _verbatim.reset(mark)


def connection_of(ctx: Context) -> Connection:
    """Give the connection, for what is to happen when it ends; the library's context has no public way to it yet."""
    return ctx.session._connection  # noqa: SLF001 - see above; `exit_stack` is documented for handlers


def _make_caller(ctx: Context, visitor: Visitor, progress: Progress, asking: Asking) -> Caller:
    return Caller(visitor.face, _client_name(ctx), visitor.session, visitor.scope, Cancellation(), progress, asking)


def _client_name(ctx: Context) -> str:
    """What the client calls itself, for the audit."""
    known = ctx.session.client_params
    if known is None:
        return "unknown"
    return name_client(known.client_info.name, known.client_info.version)


def _wants_progress(ctx: Context) -> bool:
    meta = (ctx.params or {}).get("_meta")
    return isinstance(meta, Mapping) and meta.get("progressToken") is not None


async def _report(ctx: Context, number: float, total: float | None, line: str | None) -> None:
    await ctx.session.report_progress(number, total, line)


async def _cancel_when_gone(gone: anyio.Event, cancellation: Cancellation) -> None:
    await gone.wait()
    await to_thread.run_sync(cancellation.cancel)
