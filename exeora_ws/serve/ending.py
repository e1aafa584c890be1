"""What asks a server to end, and what waits for what then. No event loop here: both servers use it."""

import signal

CANCELLED_FIRST_SECONDS = 0.2
"""How long upstream servers live on: calls of theirs are being taken back, and shall be answered so, not as lost."""
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def list_ending_signals() -> list[signal.Signals]:
    """Give the signals that end a server: not one that somebody had ignored on purpose, as nohup does."""
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
