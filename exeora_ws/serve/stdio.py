"""MCP over standard input and output: one client, one session, which ends with the input."""

import json
import logging
import os
import secrets
import signal
import warnings
from typing import Any

import anyio
import mcp_types as mcp
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from exeora_ws.app import App
from exeora_ws.serve.conversation import Conversation, Visitor
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.manual import NO_MANUAL, Manual
from exeora_ws.serve.pipes import LineReader, LineWriter, TooLong, divert_standard_streams
from exeora_ws.serve.running import announce_server
from exeora_ws.tools.call import Calls, Face, Scope

log = logging.getLogger("exeora")

_ANSWER_SECONDS = 0.2
"""How long calls in flight may still be answered once the input has ended."""
_FLUSH_SECONDS = 1.0
_CLOSE_SECONDS = 4.0

_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


def serve_stdio(app: App, scope: Scope, *, calls: Calls | None = None, manual: Manual = NO_MANUAL) -> None:
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
    with announce_server(app.places, face="stdio"), divert_standard_streams() as (wire_in, wire_out):
        ended = anyio.run(_serve, conversation, wire_in, wire_out)
    app.close_session(session)
    if not ended:
        # A call does not end although it was told to: its thread would keep the process.
        logging.shutdown()
        os._exit(1)


async def _serve(conversation: Conversation, wire_in: int, wire_out: int) -> bool:
    """Serve the wire; gives whether every call has ended."""
    reader, writer = LineReader(wire_in), LineWriter(wire_out)
    incoming, to_read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_write, outgoing = anyio.create_memory_object_stream[SessionMessage](16)
    server = conversation.server
    async with anyio.create_task_group() as everything:
        everything.start_soon(conversation.announce)
        everything.start_soon(_stop_on_signal, conversation, incoming)
        everything.start_soon(_receive, conversation, reader, incoming, to_write.clone())
        async with anyio.create_task_group() as writing:
            writing.start_soon(_send, outgoing, writer, incoming)
            await server.run(to_read, to_write, server.create_initialization_options())
            writing.cancel_scope.deadline = anyio.current_time() + _FLUSH_SECONDS
        everything.cancel_scope.cancel()
    return not conversation.busy


async def _receive(
    conversation: Conversation, reader: LineReader, incoming: _Incoming, answers: MemoryObjectSendStream[SessionMessage]
) -> None:
    """Hand in each message; answer what is none. The end of the input is the end of the session."""
    async with incoming, answers:
        async for line in reader.lines():
            message = _parse(line)
            if isinstance(message, mcp.JSONRPCError):
                await answers.send(SessionMessage(message))
            else:
                await incoming.send(SessionMessage(message))
        await conversation.settle(_ANSWER_SECONDS)


def _parse(line: bytes | TooLong) -> Any:
    """Give the message of a line, or the error that answers it."""
    if isinstance(line, TooLong):
        return _refuse(None, mcp.PARSE_ERROR, "Parse error: the message is too long")
    try:
        return mcp.jsonrpc_message_adapter.validate_json(line, by_name=False)
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
    identity = document.get("id") if isinstance(document, dict) else None
    return identity if isinstance(identity, str | int) and not isinstance(identity, bool) else None


def _refuse(identity: str | int | None, code: int, message: str) -> mcp.JSONRPCError:
    return mcp.JSONRPCError(jsonrpc="2.0", id=identity, error=mcp.ErrorData(code=code, message=message))


async def _send(outgoing: _Outgoing, writer: LineWriter, incoming: _Incoming) -> None:
    """Write what is to leave, until the server has no more; when nobody reads it, the session is over."""
    async with outgoing:
        async for message in outgoing:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await writer.write(line.encode())
            except OSError:
                await incoming.aclose()
                return


async def _stop_on_signal(conversation: Conversation, incoming: _Incoming) -> None:
    """Have calls in flight answered as cancelled, then end the session."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            await conversation.stop()
            await conversation.settle(_ANSWER_SECONDS)
            await incoming.aclose()
