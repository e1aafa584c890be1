"""Progress from a worker thread to the client: the newest line, at most some a second; the rest is dropped."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

_INTERVAL_SECONDS = 0.2
_LINE_CHARACTERS = 500


class ProgressLine:
    """Made on the event loop; `say` is for any thread and never blocks.

    Args:
        send: sends one progress notification: a number that grows, and the line.
    """

    def __init__(self, send: Callable[[float, str], Awaitable[None]]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._news = anyio.Event()
        self._newest = ""
        self._told = False

    def say(self, line: str) -> None:
        """Have `line` sent, unless a newer one comes before its turn."""
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
            count += 1
            await self._send(count, self._newest)
            await anyio.sleep(_INTERVAL_SECONDS)
