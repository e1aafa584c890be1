"""The server of the protocol library behind a wire that it shares with our own `Dialogue`.

It knows of the conversation what it was handed. What opened it is said to it again, and its answer to that is kept
back; so it stands where the dialogue stands. Its own requests get numbers from the connection, and the answers to them
come back under the numbers it knows.
"""

import asyncio
import json
import logging
import secrets
import threading
import warnings
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import anyio
import mcp_types as mcp
from anyio import to_thread
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from exeora_ws.serve.conversation import Conversation, Visitor
from exeora_ws.serve.library import Item
from exeora_ws.serve.messages import Response
from exeora_ws.serve.peer import Peer
from exeora_ws.serve.pipes import LineWriter, TooLong
from exeora_ws.serve.questions import Questions
from exeora_ws.serve.service import Service

log = logging.getLogger("exeora")

_FLUSH_SECONDS = 1.0
_STOP_SECONDS = 5.0
_ENDLESS = "subscriptions/listen"


class Behind:
    """One conversation of the library's server. Made in the thread whose event loop it is to run on.

    Args:
        service: the core.
        visitor: the client.
        peer: what the dialogue knows of it.
        items: what is handed in; None is the end.
        writer: the wire.
        questions: the numbers of our requests to the client.
        lost: called when nobody reads the wire any more.
        answered: called after each message that was written.
    """

    def __init__(
        self,
        service: Service,
        visitor: Visitor,
        peer: Peer,
        *,
        items: "SimpleQueue[Item]",
        writer: LineWriter,
        questions: Questions,
        lost: Callable[[], None],
        answered: Callable[[], None],
    ) -> None:
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        self._conversation = Conversation(service, lambda _ctx: visitor)
        self._peer = peer
        self._items = items
        self._writer = writer
        self._questions = questions
        self._lost = lost
        self._answered = answered
        self._unanswered: set[str | int] = set()
        self._handled = 0
        self._again = f"again-{secrets.token_hex(8)}"
        """The id under which the opening is repeated."""
        self._changed = threading.Condition()
        self._numbers: dict[int | str, int] = {}
        """The connection's numbers of the library's own requests."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self) -> None:
        """Serve until the end is handed in."""
        self._loop = asyncio.get_running_loop()
        incoming, to_read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_write, outgoing = anyio.create_memory_object_stream[SessionMessage](16)
        server = self._conversation.server
        async with anyio.create_task_group() as everything:
            everything.start_soon(self._conversation.announce)
            everything.start_soon(self._receive, incoming)
            async with anyio.create_task_group() as writing:
                writing.start_soon(self._send, outgoing)
                await server.run(to_read, to_write, server.create_initialization_options())
                writing.cancel_scope.deadline = anyio.current_time() + _FLUSH_SECONDS
            everything.cancel_scope.cancel()

    async def _receive(self, incoming: Any) -> None:
        async with incoming:
            if self._peer.opened:
                await incoming.send(SessionMessage(_repeat_opening(self._peer, self._again)))
            while (item := await to_thread.run_sync(self._take, abandon_on_cancel=True)) is not None:
                message = _parse(item) if isinstance(item, bytes | TooLong) else _respond(*item)
                if isinstance(message, _Refusal):
                    await self._write(message)
                elif isinstance(message, mcp.JSONRPCResponse | mcp.JSONRPCError) and isinstance(item, bytes | TooLong):
                    self._questions.settle(_make_response(message))
                else:
                    self._note(message)
                    await incoming.send(SessionMessage(message))
                self._note_handled(item)

    def _take(self) -> Item:
        return self._items.get()

    def _note_handled(self, item: Item) -> None:
        if isinstance(item, bytes | TooLong):
            with self._changed:
                self._handled += 1
                self._changed.notify_all()

    def _note(self, message: mcp.JSONRPCMessage) -> None:
        """Keep which requests wait for an answer."""
        with self._changed:
            if isinstance(message, mcp.JSONRPCRequest) and message.method != _ENDLESS:
                self._unanswered.add(message.id)
            elif isinstance(message, mcp.JSONRPCNotification) and message.method == "notifications/cancelled":
                withdrawn = _id_of({"id": (message.params or {}).get("requestId")})
                if withdrawn is not None:
                    self._unanswered.discard(withdrawn)
            elif isinstance(message, mcp.JSONRPCResponse | mcp.JSONRPCError) and message.id is not None:
                self._unanswered.discard(message.id)
            self._changed.notify_all()

    async def _send(self, outgoing: Any) -> None:
        async with outgoing:
            async for item in outgoing:
                message = item.message
                if isinstance(message, mcp.JSONRPCResponse | mcp.JSONRPCError) and message.id == self._again:
                    continue
                await self._write(self._renumber(message))
                if not isinstance(message, mcp.JSONRPCRequest):
                    self._note(message)

    async def _write(self, message: mcp.JSONRPCMessage) -> None:
        try:
            await to_thread.run_sync(self._writer.write, _write(message), abandon_on_cancel=True)
        except OSError:
            self._lost()
        self._answered()

    def _renumber(self, message: mcp.JSONRPCMessage) -> mcp.JSONRPCMessage:
        """Give a request of the library's own its number on this connection."""
        if isinstance(message, mcp.JSONRPCRequest):
            own = message.id
            self._numbers[own] = self._questions.open(lambda response: self._items.put((own, response)))
            return message.model_copy(update={"id": self._numbers[own]})
        if isinstance(message, mcp.JSONRPCNotification) and message.method == "notifications/cancelled":
            params = message.params or {}
            number = self._numbers.pop(params.get("requestId", ""), None)
            if number is not None:
                self._questions.close(number)
                return message.model_copy(update={"params": {**params, "requestId": number}})
        return message

    def notify_tools_changed(self) -> None:
        """Have whoever subscribed told. For any thread."""
        self._conversation.notify_tools_changed()

    def wait_until_answered(self, handed: int, seconds: float) -> None:
        """Wait until of so many lines none waits for its answer any more. For any thread but the loop's."""
        with self._changed:
            self._changed.wait_for(lambda: self._handled >= handed and not self._unanswered, seconds)

    def stop(self) -> None:
        """Take back all calls, each of which is answered, and end the subscriptions. For any thread but the loop's."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._conversation.stop(), self._loop).result(_STOP_SECONDS)

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        return self._conversation.all_ended


def _repeat_opening(peer: Peer, identity: str) -> mcp.JSONRPCRequest:
    method = "server/discover" if peer.modern else "initialize"
    params = {"_meta": (peer.opening or {})["_meta"]} if peer.modern else peer.opening
    return mcp.JSONRPCRequest(jsonrpc="2.0", id=identity, method=method, params=params)


def _make_response(message: mcp.JSONRPCResponse | mcp.JSONRPCError) -> Response:
    if isinstance(message, mcp.JSONRPCResponse):
        return Response(message.id, message.result)
    return Response("" if message.id is None else message.id, None, message.error.model_dump(exclude_unset=True))


def _respond(own: int | str, response: Response | None) -> mcp.JSONRPCResponse | mcp.JSONRPCError:
    """Give the answer to a request of the library's own as it knows it."""
    if response is not None and response.result is not None:
        return mcp.JSONRPCResponse(jsonrpc="2.0", id=own, result=response.result)
    error = response.error if response is not None and response.error is not None else None
    data = mcp.ErrorData(**(error or {"code": mcp.CONNECTION_CLOSED, "message": "Connection closed"}))
    return mcp.JSONRPCError(jsonrpc="2.0", id=own, error=data)


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
