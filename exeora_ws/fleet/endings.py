"""What takes seconds to end, ended beside whatever else goes on: process trees, mostly."""

import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial

from exeora_ws.fleet.hand import CallInHand

log = logging.getLogger("exeora")


class Endings:
    """Ends things, each in a thread of its own. Thread-safe; only `join` waits.

    Args:
        close_session: ends what a session has started, by its name in the core.
    """

    def __init__(self, close_session: Callable[[str], None]) -> None:
        self._close_session = close_session
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        """Those that run: one that has not been started cannot be waited for."""

    def cancel(self, calls: Iterable[CallInHand]) -> None:
        """Take calls back."""
        for call in calls:
            if not call.cancellation.cancelled:
                self._begin(call.cancellation.cancel)

    def end_sessions(self, names: Iterable[str]) -> None:
        """End sessions."""
        for name in names:
            self._begin(partial(self._close_session, name))

    def join(self, seconds: float) -> None:
        """Wait for what is being ended; at most that long for each."""
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(seconds)

    def _begin(self, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                work()
            except Exception:
                log.exception("ending something for the fleet failed")
            finally:
                with self._lock:
                    self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="fleet-ending", daemon=True)
        with self._lock:
            thread.start()
            self._threads.add(thread)
