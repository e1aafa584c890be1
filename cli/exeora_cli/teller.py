"""Tells what happens in a server as it happens, in a thread of its own: whoever reads slowly holds up no call."""

import os
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

from exeora_cli import answer
from exeora_cli.bug_log import record_bug

Facts = Mapping[str, Any]
Show = Callable[[str, Facts], None]

_WAITING = 1_000
_LAST_WORDS_SECONDS = 2.0


class Teller:
    """Shows events one after the other.

    Args:
        show: shows one: its kind and its facts.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self._events: queue.Queue[tuple[str, Facts] | None] = queue.Queue(_WAITING)
        self._lost = 0
        self.turn = threading.Lock()
        """Held while something is shown; whoever asks a person holds it meanwhile."""
        self.reader_gone = False
        self._thread = threading.Thread(target=self._work, name="teller", daemon=True)
        self._thread.start()

    def tell(self, kind: str, facts: Facts) -> None:
        """Have an event shown, in turn. For any thread; never waits: what nobody reads in time is counted instead."""
        try:
            self._events.put_nowait((kind, facts))
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Show what is still to be shown, for two seconds at most."""
        try:
            self._events.put(None, timeout=_LAST_WORDS_SECONDS)
        except queue.Full:
            return
        self._thread.join(_LAST_WORDS_SECONDS)

    def _work(self) -> None:
        while (event := self._events.get()) is not None:
            lost, self._lost = self._lost, 0
            try:
                with self.turn:
                    if lost:
                        self._show("events_lost", {"count": lost})
                    self._show(*event)
            except answer.ReaderGone:
                # As a program whose output nobody reads any more ends.
                self.reader_gone = True
                os.kill(os.getpid(), signal.SIGTERM)
                return
            except Exception as bug:  # noqa: BLE001  the server goes on serving; the log has it
                record_bug(bug)
