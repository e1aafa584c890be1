"""Ctrl-C, and being told to end: the call is taken back, so that it leaves nothing behind, and the code says which."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from exeora_ws.cancellation import Cancellation

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Which signal came first, if any."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None


@contextmanager
def cancel_on_signals(cancellation: Cancellation) -> Iterator[Interruption]:
    """Have the first signal cancel, and a second one end at once what does not listen.

    Only in the main thread; elsewhere nothing is changed.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def take(number: int, _frame: FrameType | None) -> None:
        if interruption.signal is not None:
            raise KeyboardInterrupt
        interruption.signal = signal.Signals(number)
        # Not here: the handler interrupts this very thread, which may hold the lock that cancelling takes.
        threading.Thread(target=cancellation.cancel, daemon=True).start()

    before = {number: signal.getsignal(number) for number in _ENDING}
    # Somebody ignores a signal on purpose (nohup): that stays.
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, take)
    try:
        yield interruption
    finally:
        for number in taken:
            signal.signal(number, before[number])
