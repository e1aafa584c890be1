"""Something that is made when it is first asked for: most commands need little of the core, and imports cost time."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Late(Generic[T]):
    """Makes one value, once, in whichever thread asks first.

    Args:
        make: makes it; imports what that takes.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[T] = []

    def __call__(self) -> T:
        """Give it."""
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]

    @property
    def made(self) -> T | None:
        """It, or None while nobody has asked."""
        return self._made[0] if self._made else None
