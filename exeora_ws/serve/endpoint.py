"""One way of a call over Streamable HTTP: a conversation, what carries it, and the sessions that clients open."""

from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Send

from exeora_ws.limits import MESSAGE_BYTES
from exeora_ws.serve.admission import Admitted, Refused
from exeora_ws.serve.conversation import Context, Conversation, Visitor, connection_of
from exeora_ws.serve.listening import Patience
from exeora_ws.serve.manual import Manual
from exeora_ws.serve.options import CAPACITY, Capacity
from exeora_ws.serve.results import HTTP_WIRE_BYTES
from exeora_ws.serve.service import Service
from exeora_ws.serve.sessions import IDLE_SECONDS, HandshakeSession, Sessions
from exeora_ws.tools.call import Face
from exeora_ws.tools.core import CallMaker, Core

_KEY = "exeora"

Asgi = MutableMapping[str, Any]
Tell = Callable[..., None]
"""Told of what happens: a kind and its facts."""


class HttpEndpoint:
    """Answers requests that were admitted.

    Args:
        calls: the way of a call.
        manual: instructions and prompts.
        sessions: those of the whole server.
        tell: told when a session opens and closes.
        capacity: how much at once.
    """

    def __init__(
        self, calls: CallMaker, manual: Manual, sessions: Sessions, tell: Tell, capacity: Capacity = CAPACITY
    ) -> None:
        self._sessions = sessions
        self._tell = tell
        service = Service(calls, manual, wire_bytes=HTTP_WIRE_BYTES)
        self._conversation = Conversation(service, self._visitor_of, opened=self._opened, calls_at_once=capacity.calls)
        self._manager = StreamableHTTPSessionManager(
            self._conversation.server,
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=MESSAGE_BYTES,
            max_sessions=capacity.sessions,
        )

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        return self._conversation.all_ended

    @asynccontextmanager
    async def open(self, core: Core) -> AsyncIterator[None]:
        """Answer requests as long as the `async with` block lasts."""
        forget = core.news.subscribe(self._conversation.notify_tools_changed)
        try:
            async with self._manager.run(), anyio.create_task_group() as beside:
                beside.start_soon(self._conversation.announce)
                yield
                beside.cancel_scope.cancel()
        finally:
            forget()

    async def handle(self, admitted: Admitted, asgi: Asgi, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        gone = anyio.Event()
        asgi[_KEY] = (admitted, gone)
        asgi["user"] = _user_of(admitted)
        answer = _Answer(send)
        with self._sessions.request(admitted) as scope:
            await self._manager.handle_request(asgi, Patience(receive, gone), answer)
        if scope.cancelled_caught and not answer.begun:
            await Refused(401, None, "the token of this request is not valid any more").respond()(asgi, receive, send)

    async def stop(self) -> None:
        """Take back all calls, each of which is answered."""
        await self._conversation.stop()

    async def end_session(self, session: HandshakeSession) -> None:
        """End a session as its client would."""
        asgi = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(b"mcp-session-id", session.identity.encode())],
            "user": _user_of(session.admitted),
        }
        await self._manager.handle_request(asgi, _no_body, _to_nobody)
        await self._sessions.end(session.identity)

    def _visitor_of(self, ctx: Context) -> Visitor:
        admitted, gone = _came_by(ctx)
        identity = connection_of(ctx).session_id
        known = self._sessions.shaken.get(identity) if identity is not None else None
        name = known.name if known is not None else self._sessions.name_unspoken(admitted)
        return Visitor(Face.HTTP, admitted.scope, name, gone)

    def _opened(self, ctx: Context) -> None:
        """Keep the session that a handshake has opened, until the library ends it."""
        admitted, _ = _came_by(ctx)
        connection = connection_of(ctx)
        identity = connection.session_id
        if identity is not None and self._sessions.open(identity, admitted):
            connection.exit_stack.push_async_callback(self._closed, identity)
            self._tell("session_opened", session=identity, token=admitted.token.name)

    async def _closed(self, identity: str) -> None:
        await self._sessions.end(identity)
        self._tell("session_closed", session=identity)


class _Answer:
    """`send` that knows whether anything was sent (ASGI)."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        self.begun = True
        await self._send(message)


def _came_by(ctx: Context) -> tuple[Admitted, anyio.Event]:
    """Give what was noted on the request that a message came with."""
    if ctx.request is None:
        raise AssertionError("a message that came with no request")
    found: tuple[Admitted, anyio.Event] = ctx.request.scope[_KEY]
    return found


def _user_of(admitted: Admitted) -> AuthenticatedUser:
    """Give whom the library takes the sender for. It refuses a session to all but who opened it.

    The endpoint is part of who that is: a session that was opened at one is not known at another.
    """
    token = AccessToken(token="", client_id=admitted.token.id, scopes=[], subject=admitted.endpoint)
    return AuthenticatedUser(token)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _to_nobody(_message: Message) -> None:
    pass
