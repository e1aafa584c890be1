"""Says on stderr, at a terminal, that something takes longer than a second."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from exeora_ws.cancellation import Progress, no_progress

from exeora_cli.plain import show_text

_PATIENCE_SECONDS = 1.0
_TICK_SECONDS = 0.25
_ERASE_LINE = "\r\x1b[K"
_WIDTH = 100


class _Ticker:
    """One line, rewritten four times a second, from the first second on."""

    def __init__(self, what: str) -> None:
        self._line = what
        self._begun = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def say(self, line: str) -> None:
        self._line = line

    def end(self) -> None:
        self._done.set()
        self._thread.join()

    def _tick(self) -> None:
        if self._done.wait(_PATIENCE_SECONDS):
            return
        while True:
            seconds = int(time.monotonic() - self._begun)
            self._write(f"{_ERASE_LINE}exeora: {show_text(self._line)[:_WIDTH]} ({seconds} s)")
            if self._done.wait(_TICK_SECONDS):
                self._write(_ERASE_LINE)
                return

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


@contextmanager
def showing_progress(what: str) -> Iterator[Progress]:
    """Show that `what` is under way, and every line of its progress, while the block runs; gives where lines go.

    Silent when stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield no_progress
        return
    ticker = _Ticker(what)
    try:
        yield ticker.say
    finally:
        ticker.end()
