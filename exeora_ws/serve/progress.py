"""Progress from a worker thread to the client: the newest line, at most some a second; the rest is dropped.

Steps of another server's tool are passed on in order, each of them, before the answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from exeora_ws.serve.sayings import FLUSH_SECONDS, INTERVAL_SECONDS, Sayings

Send = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends one progress notification: a number that grows, what it grows to, and the line."""


class ProgressLine:
    """Made on the event loop; `say` is for any thread and never blocks."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._news = anyio.Event()
        self._sending = anyio.Lock()
        self._sayings = Sayings(self._call)
        self.say = self._sayings.say

    def _call(self) -> None:
        with suppress(RuntimeError):  # the loop has closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._news.set()

    async def pump(self) -> None:
        """Send what is said, until cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            if (said := self._sayings.take_line()) is not None:
                await self._send(*said)
            await self._send_steps()
            await anyio.sleep(INTERVAL_SECONDS)

    async def flush(self) -> None:
        """Send the steps that still wait: the answer is next. A client that does not read is not waited for."""
        with anyio.move_on_after(FLUSH_SECONDS):
            await self._send_steps()

    async def _send_steps(self) -> None:
        async with self._sending:
            while (said := self._sayings.take_step()) is not None:
                await self._send(*said)
