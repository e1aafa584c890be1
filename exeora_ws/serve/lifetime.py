"""What both servers do at the two ends of their lives: what can wait is loaded after the first answer; signals end."""

import logging
import signal

from anyio import to_thread

from exeora_ws.app import App

log = logging.getLogger("exeora")

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def list_ending_signals() -> list[signal.Signals]:
    """Give the signals that end a server: not one that somebody had ignored on purpose, as nohup does."""
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]


async def prepare_for_long(app: App) -> None:
    """Load what makes later calls cheaper, in a thread. A failure costs only time, and later."""
    try:
        await to_thread.run_sync(app.stay, abandon_on_cancel=True)
    except Exception:
        log.exception("preparing for a long life failed")
