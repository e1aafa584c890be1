"""Word that the tools on offer are others now: from whoever changes them to the faces that publish them."""

import threading
from collections.abc import Callable


class CatalogNews:
    """Passes the word on. For any thread; callbacks run in the teller's and must be quick."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called at each change; returns a function that forgets it."""
        with self._lock:
            key = self._next
            self._next += 1
            self._callbacks[key] = callback
        return lambda: self._forget(key)

    def _forget(self, key: int) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    def tell(self) -> None:
        """Say that a tool came, went or changed."""
        with self._lock:
            callbacks = list(self._callbacks.values())
        for callback in callbacks:
            callback()
