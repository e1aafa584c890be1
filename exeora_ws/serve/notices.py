"""What a server tells its clients unasked: that the list of tools is another now. Each era has its own way."""

import asyncio
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from exeora_ws.serve.lifetime import look_after

_SEND_SECONDS = 5.0
_QUIET_SECONDS = 0.1
"""How long changes are collected before anybody is told."""


class Notices:
    """Keeps the sessions of the handshake era, and the streams that clients of the later era opened to listen."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus, max_subscriptions=256, max_buffered_events=16)
        self._listening = 0
        self._sessions: dict[Connection, ServerSession] = {}
        self._changed = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def heard(self) -> bool:
        """Whether there is anybody to tell."""
        return bool(self._sessions) or self._listening > 0

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve `subscriptions/listen`: one stream, until its client or the server ends it."""
        self._listening += 1
        try:
            return await self._streams(ctx, params)
        finally:
            self._listening -= 1

    def join(self, connection: Connection, session: ServerSession) -> None:
        """Keep a session that has shaken hands, until its connection ends; one that does so twice is told once."""
        if connection not in self._sessions:
            connection.exit_stack.callback(self._sessions.pop, connection, None)
        self._sessions[connection] = session

    def tools_changed(self) -> None:
        """Have everybody told; several calls before the turn comes are one. For any thread, also when nobody serves."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(self._set_changed)

    def _set_changed(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Tell what there is to tell, until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self._changed.wait()
            await anyio.sleep(_QUIET_SECONDS)
            self._changed = anyio.Event()
            await self._bus.publish(ToolsListChanged())
            async with anyio.create_task_group() as all_at_once:
                for session in list(self._sessions.values()):
                    all_at_once.start_soon(_tell, session)

    def close(self) -> None:
        """End the streams of those who listen."""
        self._streams.close()


async def _tell(session: ServerSession) -> None:
    """One client that does not read holds up no other."""
    with anyio.move_on_after(_SEND_SECONDS):
        await look_after(session.send_tool_list_changed, "telling a client that tools have changed")
