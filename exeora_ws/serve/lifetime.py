"""What both servers do at the two ends of their lives: what can wait is loaded after the first answer; signals end."""

import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
from anyio import to_thread

from exeora_ws.serve.ending import CANCELLED_FIRST_SECONDS, list_ending_signals
from exeora_ws.tools.core import Core

log = logging.getLogger("exeora")

Signals = AsyncIterator[signal.Signals]


async def end_upstreams(app: Core) -> None:
    """End the upstream servers while calls and sessions are being ended: each of these takes seconds at worst."""
    # Calls of theirs are being taken back just now, and shall be answered as cancelled, not as lost.
    await anyio.sleep(CANCELLED_FIRST_SECONDS)
    await to_thread.run_sync(app.end_upstreams, abandon_on_cancel=True)


async def prepare_for_long(app: Core) -> None:
    """Load what makes later calls cheaper, in a thread. A failure costs only time, and later."""
    try:
        await to_thread.run_sync(app.stay, abandon_on_cancel=True)
    except Exception:
        log.exception("preparing for a long life failed")


async def end_before_leaving(
    serve: Callable[[Signals], Awaitable[None]], app: Core, *endings: Callable[[], None]
) -> None:
    """Serve, then end whatever this process has started, however serving came to its end, also by a bug.

    Signals are taken all the while: a client that has closed the input sends SIGTERM two seconds later, when a command
    that ignores the first request to end is still being waited for. Dying then would leave it running.

    Args:
        serve: serves until it is over; given the signals that ask for the end.
        app: the core.
        endings: end what ends with the server besides the core, its sessions; called first.
    """
    with anyio.open_signal_receiver(*list_ending_signals()) as signals:
        try:
            await serve(signals)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(_end, app, endings)


def _end(app: Core, endings: tuple[Callable[[], None], ...]) -> None:
    try:
        for end in endings:
            end()
    finally:
        app.close()


async def look_after(work: Callable[[], Awaitable[object]], what: str) -> None:
    """Do something that a server does beside its work: when it fails, the log has it and the server goes on."""
    try:
        await work()
    except Exception:
        log.exception("%s failed", what)
