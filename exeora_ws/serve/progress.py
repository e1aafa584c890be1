"""Progress from a worker thread to the client: the newest line, at most some a second; the rest is dropped.

Steps of another server's tool are passed on in order, each of them, before the answer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from exeora_ws.cancellation import Step

_INTERVAL_SECONDS = 0.2
_FLUSH_SECONDS = 1.0
_LINE_CHARACTERS = 500
_STEPS_WAITING = 256
"""Of more that come within one interval, the oldest are dropped."""

Send = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends one progress notification: a number that grows, what it grows to, and the line."""


class ProgressLine:
    """Made on the event loop; `say` is for any thread and never blocks."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._news = anyio.Event()
        self._sending = anyio.Lock()
        self._newest: str | None = None
        self._steps: deque[Step] = deque(maxlen=_STEPS_WAITING)
        self._told = False

    def say(self, line: str) -> None:
        """Have `line` sent, unless a newer one comes before its turn; a step in any case."""
        if isinstance(line, Step):
            self._steps.append(line)
        else:
            self._newest = line[:_LINE_CHARACTERS]
        if not self._told:
            self._told = True
            with suppress(RuntimeError):  # the loop has closed: nobody listens any more
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._news.set()

    async def pump(self) -> None:
        """Send what is said, until cancelled."""
        count = 0
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            self._told = False
            line, self._newest = self._newest, None
            if line is not None:
                count += 1
                await self._send(count, None, line)
            await self._send_steps()
            await anyio.sleep(_INTERVAL_SECONDS)

    async def flush(self) -> None:
        """Send the steps that still wait: the answer is next. A client that does not read is not waited for."""
        with anyio.move_on_after(_FLUSH_SECONDS):
            await self._send_steps()

    async def _send_steps(self) -> None:
        async with self._sending:
            while self._steps:
                step = self._steps.popleft()
                said = step.message
                await self._send(step.progress, step.total, None if said is None else said[:_LINE_CHARACTERS])
