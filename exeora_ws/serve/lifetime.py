"""What both servers do at the two ends of their lives: what can wait is loaded after the first answer; signals end."""

import logging
import signal

import anyio
from anyio import to_thread

from exeora_ws.app import App

log = logging.getLogger("exeora")

_CANCELLED_FIRST_SECONDS = 0.2
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def list_ending_signals() -> list[signal.Signals]:
    """Give the signals that end a server: not one that somebody had ignored on purpose, as nohup does."""
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]


async def end_upstreams(app: App) -> None:
    """End the upstream servers while calls and sessions are being ended: each of these takes seconds at worst."""
    # Calls of theirs are being taken back just now, and shall be answered as cancelled, not as lost.
    await anyio.sleep(_CANCELLED_FIRST_SECONDS)
    await to_thread.run_sync(app.upstreams.close, abandon_on_cancel=True)


async def prepare_for_long(app: App) -> None:
    """Load what makes later calls cheaper, in a thread. A failure costs only time, and later."""
    try:
        await to_thread.run_sync(app.stay, abandon_on_cancel=True)
    except Exception:
        log.exception("preparing for a long life failed")
