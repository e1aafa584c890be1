"""Says on stderr, at a terminal, that something takes longer than a second."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from exeora_cli import answer
from exeora_cli.plain import show_text

_PATIENCE_SECONDS = 1.0
_TICK_SECONDS = 0.25
_ERASE_LINE = "\r\x1b[K"
_WIDTH = 100


class Display:
    """Where progress is shown: nowhere, unless it is a `Ticker`."""

    def say(self, line: str) -> None:
        """Take a line of progress."""

    @contextmanager
    def hiding(self) -> Iterator[None]:
        """Keep off the terminal in the block."""
        yield


class Narrator(Display):
    """Tells each line on stderr as it comes: for a command that has the terminal to itself soon."""

    def say(self, line: str) -> None:
        """Tell it."""
        answer.narrate([line])


class Ticker(Display):
    """One line, rewritten four times a second, from the first second on."""

    def __init__(self, what: str) -> None:
        self._line = what
        self._begun = time.monotonic()
        self._writing = threading.Lock()
        self._shown = False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def say(self, line: str) -> None:
        """Take a line of progress, in place of the one before."""
        self._line = line

    @contextmanager
    def hiding(self) -> Iterator[None]:
        """Keep off the terminal in the block."""
        with self._writing:
            self._erase()
            yield

    def end(self) -> None:
        """Leave the terminal as it was."""
        self._done.set()
        self._thread.join()

    def _tick(self) -> None:
        if self._done.wait(_PATIENCE_SECONDS):
            return
        while True:
            seconds = int(time.monotonic() - self._begun)
            with self._writing:
                self._write(f"{_ERASE_LINE}exeora: {show_text(self._line)[:_WIDTH]} ({seconds} s)")
                self._shown = True
            if self._done.wait(_TICK_SECONDS):
                with self._writing:
                    self._erase()
                return

    def _erase(self) -> None:
        if self._shown:
            self._write(_ERASE_LINE)
            self._shown = False

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


@contextmanager
def showing_progress(what: str) -> Iterator[Display]:
    """Show that `what` is under way, and every line of its progress, while the block runs.

    Silent when stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield Display()
        return
    ticker = Ticker(what)
    try:
        yield ticker
    finally:
        ticker.end()
