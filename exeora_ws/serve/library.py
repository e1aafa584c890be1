"""The protocol library behind the same wire, for what is unusual. Loaded in a thread of its own when first needed."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from exeora_ws.serve.messages import Response
from exeora_ws.serve.pipes import TooLong

if TYPE_CHECKING:
    from exeora_ws.serve.behind import Behind

Item = bytes | TooLong | tuple[int | str, Response | None] | None
"""A line; the answer to a request that the library sent under that id; or the end."""

_LOAD_SECONDS = 10.0
_END_SECONDS = 6.0


class Library:
    """Handed what is unusual, in order, by one thread.

    Args:
        open_behind: gives the server; imports the library.
    """

    def __init__(self, open_behind: "Callable[[SimpleQueue[Item]], Behind]") -> None:
        self._open_behind = open_behind
        self._items: SimpleQueue[Item] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._behind: Behind | None = None
        self._handed = 0
        self._loaded = threading.Event()
        self.took_over = False
        """Whether it is handed everything from now on."""

    @property
    def started(self) -> bool:
        """Whether it was ever needed."""
        return self._thread is not None

    def take_over(self) -> None:
        """Have it handed everything: the client is not as nearly all are."""
        self.took_over = True

    def pass_on(self, line: bytes | TooLong) -> None:
        """Hand it a line, and wait for nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="protocol library", daemon=True)
            self._thread.start()
        self._handed += 1
        self._items.put(line)

    def _run(self) -> None:
        import anyio

        self._behind = self._open_behind(self._items)
        self._loaded.set()
        anyio.run(self._behind.serve)

    def notify_tools_changed(self) -> None:
        """Have whoever subscribed told."""
        if self._behind is not None:
            self._behind.notify_tools_changed()

    def wait_until_answered(self, seconds: float) -> None:
        """Wait until no request that it was handed waits for its answer any more. Loading it comes on top."""
        if self._thread is not None and self._loaded.wait(_LOAD_SECONDS) and self._behind is not None:
            self._behind.wait_until_answered(self._handed, seconds)

    def stop(self) -> None:
        """Take its calls back, each of which is answered, and end its subscriptions."""
        if self._behind is not None:
            self._behind.stop()

    def close(self) -> None:
        """End it."""
        if self._thread is not None:
            self._items.put(None)
            self._thread.join(_END_SECONDS)

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        return self._behind is None or self._behind.all_ended
