"""A warm copy of a bucket: what a gateway reads for every call stands in memory, and what counts in the bucket."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from exeora_ws.errors import ExecutorOffline
from exeora_ws.fleet.buckets import Bucket, Entry

T = TypeVar("T")


class Mirror(Generic[T]):
    """What stands in a bucket, as values, followed as it changes. Thread-safe; a reader never waits.

    Args:
        bucket: the original.
        read: makes a value of an entry; None leaves it out. In the line's thread, so it must be quick.
        changed: told after each change, with its key; None when everything may be another. Likewise.
    """

    def __init__(
        self,
        bucket: Bucket,
        read: Callable[[Entry], T | None],
        changed: Callable[[str | None], None] = lambda _key: None,
    ) -> None:
        self._bucket = bucket
        self._read = read
        self._changed = changed
        self._filled = threading.Event()
        self.values: dict[str, T] = {}
        """By key. Never changed in place but by one key at a time; copy it before going through it."""

    def open(self) -> None:
        """Begin to follow."""
        self._bucket.watch(self._take_all, self._take)

    @property
    def filled(self) -> bool:
        """Whether it has ever held everything."""
        return self._filled.is_set()

    def await_filled(self, seconds: float) -> None:
        """Wait until it holds what the bucket holds.

        Raises:
            ExecutorOffline: reason `fleet_unreachable`.
        """
        if not self._filled.wait(seconds):
            raise ExecutorOffline("the fleet's inventory does not come", reason="fleet_unreachable")

    def _take_all(self, entries: dict[str, Entry]) -> None:
        read = {key: self._read(entry) for key, entry in entries.items()}
        self.values = {key: value for key, value in read.items() if value is not None}
        self._filled.set()
        self._changed(None)

    def _take(self, entry: Entry) -> None:
        value = None if entry.value is None else self._read(entry)
        if value is None:
            self.values.pop(entry.key, None)
        else:
            self.values[entry.key] = value
        self._changed(entry.key)
