"""Calls run in threads, so that the event loop waits for none; one that is taken back ends before it is left."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from exeora_ws.cancellation import Cancellation
from exeora_ws.limits import CALL_END_SECONDS, CALLS_AT_ONCE
from exeora_ws.serve.protocol import ProtocolError
from exeora_ws.tools.call import Caller, RawCall

log = logging.getLogger("exeora")

Answer = Callable[[RawCall, Caller], dict[str, Any] | ProtocolError]


class Workers:
    """Runs calls of one server.

    Args:
        answer: takes a call its way and words what it came to.
        at_once: how many run; further ones wait for their turn.
    """

    def __init__(self, answer: Answer, at_once: int = CALLS_AT_ONCE) -> None:
        self._answer = answer
        self._limiter = anyio.CapacityLimiter(at_once)
        self._live: set[Cancellation] = set()
        self._threads: set[_Running] = set()
        self._stopping = False

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call, not even in one that was given up."""
        return not self._threads

    async def run(self, raw: RawCall, caller: Caller) -> dict[str, Any] | ProtocolError:
        """Take a call its way; when the awaiting task is cancelled, the call is, and is waited for."""
        if self._stopping:
            caller.cancellation.cancel()
        running = _Running(self._answer, raw, caller, self._threads)
        self._live.add(caller.cancellation)
        try:
            return await to_thread.run_sync(running.work, abandon_on_cancel=True, limiter=self._limiter)
        except anyio.get_cancelled_exc_class():
            await running.end()
            raise
        finally:
            self._live.discard(caller.cancellation)

    async def stop(self) -> None:
        """Take every call back, the running and those to come; each is still answered (`CANCELLED`)."""
        self._stopping = True
        with anyio.move_on_after(CALL_END_SECONDS):
            async with anyio.create_task_group() as all_at_once:
                for cancellation in list(self._live):
                    all_at_once.start_soon(partial(to_thread.run_sync, cancellation.cancel, abandon_on_cancel=True))
            while self._live:  # noqa: ASYNC110 - once, at the end; an event would be kept up to date always
                await anyio.sleep(0.01)


class _Running:
    """One call in its thread."""

    def __init__(self, answer: Answer, raw: RawCall, caller: Caller, threads: "set[_Running]") -> None:
        self._threads = threads
        self._answer, self._raw, self._caller = answer, raw, caller
        self._loop = asyncio.get_running_loop()
        self._started = threading.Event()
        self._finished = anyio.Event()

    def work(self) -> dict[str, Any] | ProtocolError:
        self._started.set()
        self._threads.add(self)
        try:
            return self._answer(self._raw, self._caller)
        finally:
            self._threads.discard(self)
            with suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(self._finished.set)

    async def end(self) -> None:
        """Take the call back and wait until its thread has left it."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(CALL_END_SECONDS) as patience:
            # Callbacks end process trees, and that takes time: not on the event loop.
            await to_thread.run_sync(self._caller.cancellation.cancel, abandon_on_cancel=True)
            if self._started.is_set():  # one that starts later sees the cancellation before it acts
                await self._finished.wait()
        if patience.cancelled_caught:
            log.error("a call of %s goes on %g s after it was cancelled", self._raw.tool, CALL_END_SECONDS)
