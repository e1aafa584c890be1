"""Ctrl-C, and being told to end: the call is taken back, so that it leaves nothing behind, and the code says which."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from exeora_ws.cancellation import Cancellation
from exeora_ws.limits import KILL_GRACE_MS

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_SECONDS = KILL_GRACE_MS / 1000 + 1
"""Longer than ending a command's processes takes: that must not be cut short."""


class Interruption:
    """Which signal came first, if any, and whether the block was left by force for it."""

    def __init__(self, cancellation: Cancellation) -> None:
        self.signal: signal.Signals | None = None
        self._cancellation = cancellation
        self._over = threading.Event()
        self._forced = False

    def take(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: the first cancels, the next one ends what does not listen, later ones change nothing."""
        if self.signal is None:
            self.signal = signal.Signals(number)
            # In a thread: the handler interrupts the main one, which may hold the lock that cancelling takes.
            threading.Thread(target=self._cancel, daemon=True).start()
        elif not self._forced and not self._over.is_set():
            self._forced = True
            raise KeyboardInterrupt

    def _cancel(self) -> None:
        self._cancellation.cancel()
        if not self._over.wait(_GRACE_SECONDS):
            signal.pthread_kill(threading.main_thread().ident or 0, self.signal or signal.SIGINT)

    def end(self) -> None:
        """Say that the call has come to its end: nothing is to be forced any more."""
        self._over.set()


@contextmanager
def cancel_on_signals(cancellation: Cancellation) -> Iterator[Interruption]:
    """Have a signal to end cancel the call, and 3 s later, or at a second one, raise `KeyboardInterrupt` in it.

    What the interrupt makes the core take back is not interrupted again. Outside the main thread nothing is changed.
    """
    interruption = Interruption(cancellation)
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    # Somebody ignores a signal on purpose (nohup): that stays.
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, interruption.take)
    try:
        yield interruption
    finally:
        interruption.end()
        for number in taken:
            signal.signal(number, before[number])
