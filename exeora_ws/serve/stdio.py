"""MCP over standard input and output: one client, one session, which ends with the input."""

import json
import logging
import os
import secrets
import warnings

import anyio
import mcp_types as mcp
from anyio import to_thread
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from exeora_ws.app import App
from exeora_ws.serve.conversation import Conversation, Visitor
from exeora_ws.serve.lifetime import Signals, end_before_leaving, end_upstreams, prepare_for_long
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.manual import HOUSE_MANUAL, Manual
from exeora_ws.serve.pipes import LineReader, LineWriter, TooLong, divert_standard_streams
from exeora_ws.serve.running import announce_server
from exeora_ws.tools.call import Calls, Face, Scope

log = logging.getLogger("exeora")

_ANSWER_SECONDS = 0.5
"""How long what was asked may still be answered once the input has ended; then it is cancelled."""
_FLUSH_SECONDS = 1.0

_ENDLESS = "subscriptions/listen"


def serve_stdio(app: App, scope: Scope, *, calls: Calls | None = None, manual: Manual = HOUSE_MANUAL) -> None:
    """Serve until the input ends or SIGTERM, SIGINT or SIGHUP comes; then end what the session started, and return.

    Nothing but protocol messages reaches standard output. Call it in the main thread.

    Args:
        app: the core.
        scope: what the client may reach: one project (`bound`), or an account.
        calls: the way of a call with the toolset to offer; the app's own when None.
        manual: instructions and prompts.
    """
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    keep_log(app.places)
    session = f"stdio-{secrets.token_hex(8)}"
    conversation = Conversation(calls or app.calls, lambda _ctx: Visitor(Face.STDIO, scope, session), manual=manual)
    forget = app.news.subscribe(conversation.notify_tools_changed)
    with announce_server(app.places, face="stdio"), divert_standard_streams() as (wire_in, wire_out):
        wire = _Wire(app, session, conversation, (wire_in, wire_out))
        anyio.run(end_before_leaving, wire.serve, app, wire.end_session)
    forget()
    if not conversation.all_ended:
        # A call does not end although it was told to: its thread would keep the process.
        logging.shutdown()
        os._exit(1)


class _Wire:
    """One conversation on a pair of descriptors. Made before the event loop runs."""

    def __init__(self, app: App, session: str, conversation: Conversation, descriptors: tuple[int, int]) -> None:
        self._app = app
        self._session: str | None = session
        self._conversation = conversation
        self._descriptors = descriptors
        self._unanswered: set[str | int] = set()
        self._answered = anyio.Event()
        self._incoming, self._to_read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._to_write, self._outgoing = anyio.create_memory_object_stream[SessionMessage](16)

    async def serve(self, signals: Signals) -> None:
        """Serve until the input ends, a signal comes or nobody reads the output."""
        server = self._conversation.server
        wire_in, wire_out = self._descriptors
        reader, writer = LineReader(wire_in), LineWriter(wire_out)
        async with anyio.create_task_group() as everything:
            everything.start_soon(self._conversation.announce)
            everything.start_soon(self._stop_on_signal, signals)
            everything.start_soon(self._receive, reader)
            everything.start_soon(self._prepare)
            async with anyio.create_task_group() as writing:
                writing.start_soon(self._send, writer)
                await server.run(self._to_read, self._to_write, server.create_initialization_options())
                writing.cancel_scope.deadline = anyio.current_time() + _FLUSH_SECONDS
            everything.cancel_scope.cancel()

    def end_session(self) -> None:
        """End what the session has started; a second time does nothing."""
        session, self._session = self._session, None
        if session is not None:
            self._app.close_session(session)

    async def _receive(self, reader: LineReader) -> None:
        """Hand in each message; answer what is none. The end of the input is the end of the session."""
        async with self._incoming, self._to_write.clone() as answers:
            async for line in reader.lines():
                message = _parse(line)
                if isinstance(message, _Refusal):
                    await answers.send(SessionMessage(message))
                else:
                    self._note(message)
                    await self._incoming.send(SessionMessage(message))
            await self._settle()

    def _note(self, message: mcp.JSONRPCMessage) -> None:
        """Keep which requests wait for an answer."""
        if isinstance(message, mcp.JSONRPCRequest) and message.method != _ENDLESS:
            self._unanswered.add(message.id)
        elif isinstance(message, mcp.JSONRPCNotification) and message.method == "notifications/cancelled":
            withdrawn = _id_of({"id": (message.params or {}).get("requestId")})
            if withdrawn is not None:
                self._unanswered.discard(withdrawn)
        elif isinstance(message, mcp.JSONRPCResponse | mcp.JSONRPCError) and message.id is not None:
            self._unanswered.discard(message.id)

    async def _settle(self) -> None:
        """Wait a moment for the answers that are still to be written."""
        with anyio.move_on_after(_ANSWER_SECONDS):
            while self._unanswered:  # noqa: ASYNC110 - once, at the end of the session
                await anyio.sleep(0.005)

    async def _send(self, writer: LineWriter) -> None:
        """Write what is to leave, until the server has no more; when nobody reads it, the session is over."""
        async with self._outgoing:
            async for message in self._outgoing:
                try:
                    await writer.write(_write(message.message))
                except OSError:
                    await self._incoming.aclose()
                    return
                self._note(message.message)
                self._answered.set()

    async def _prepare(self) -> None:
        """Once the client has its first answer, get ready for the many to come."""
        await self._answered.wait()
        await prepare_for_long(self._app)

    async def _stop_on_signal(self, signals: Signals) -> None:
        """Have calls in flight answered as cancelled, then end the session."""
        async for _ in signals:
            async with anyio.create_task_group() as all_at_once:
                all_at_once.start_soon(self._conversation.stop)
                all_at_once.start_soon(to_thread.run_sync, self.end_session)
                all_at_once.start_soon(end_upstreams, self._app)
            await self._settle()
            await self._incoming.aclose()


def _write(message: mcp.JSONRPCMessage) -> bytes:
    """Give a message as it leaves. One that JSON cannot hold is a bug, and costs its own answer, not the session."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:
        identity = secrets.token_hex(6)
        log.exception("bug %s in an answer that cannot be written", identity)
        to = message.id if isinstance(message, mcp.JSONRPCResponse) else None
        told = _refuse(to, mcp.INTERNAL_ERROR, f"internal error {identity}; see the log")
        return told.model_dump_json(by_alias=True, exclude_unset=True).encode()


class _Refusal(mcp.JSONRPCError):
    """The answer to a line that is no message; told apart from an error that the client sent."""


def _parse(line: bytes | TooLong) -> mcp.JSONRPCMessage:
    """Give the message of a line, or the error that answers it."""
    if isinstance(line, TooLong):
        return _refuse(None, mcp.PARSE_ERROR, "Parse error: the message is too long")
    try:
        message = mcp.jsonrpc_message_adapter.validate_json(line, by_name=False)
        # The models ignore fields they do not know, so a request with a malformed id passes for a notification.
        if not (isinstance(message, mcp.JSONRPCNotification) and "id" in json.loads(line)):
            return message
    except ValidationError:
        pass
    try:
        document = json.loads(line.decode("utf-8", "replace"))
        line.decode("utf-8")
    except UnicodeDecodeError:
        return _refuse(_id_of(document), mcp.PARSE_ERROR, "Parse error: the message is not UTF-8")
    except (ValueError, RecursionError):
        return _refuse(None, mcp.PARSE_ERROR, "Parse error: the message is not JSON")
    return _refuse(_id_of(document), mcp.INVALID_REQUEST, "Invalid request: not one JSON-RPC message")


def _id_of(document: object) -> str | int | None:
    """Give the id that an answer can carry; half a character (a lone surrogate) cannot be written back."""
    identity = document.get("id") if isinstance(document, dict) else None
    if not isinstance(identity, str | int) or isinstance(identity, bool):
        return None
    return None if isinstance(identity, str) and not identity.isascii() and _is_torn(identity) else identity


def _is_torn(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _refuse(identity: str | int | None, code: int, message: str) -> _Refusal:
    return _Refusal(jsonrpc="2.0", id=identity, error=mcp.ErrorData(code=code, message=message))
