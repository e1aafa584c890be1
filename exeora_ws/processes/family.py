"""What this process started itself, as against the orphans that fell to it.

A child exists for a moment before we know its pid, so the process table is read under the lock that spawning holds:
at the moment of a `Census`, a child of ours that is not in `direct` is an orphan, or other code's.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from exeora_ws.processes.table import Entry, load_table

_direct: set[int] = set()
_spawning = threading.Lock()


@dataclass(frozen=True, slots=True)
class Census:
    """The process table at one moment."""

    table: dict[int, Entry]
    direct: frozenset[int]
    """Pids that this process started through `spawn` and has not collected."""

    def is_orphan(self, entry: Entry) -> bool:
        """Whether this fell to us, or was started by other code in this process."""
        return entry.parent == os.getpid() and entry.pid not in self.direct


def take_census() -> Census:
    """Read the whole process table."""
    with _spawning:
        return Census(load_table(), frozenset(_direct))


@contextmanager
def spawning() -> Iterator[set[int]]:
    """Hold off every census while a child is born; its pid goes into what this gives."""
    with _spawning:
        yield _direct


def forget_child(pid: int) -> None:
    """Note that a child was collected, or is not waited for any more."""
    _direct.discard(pid)
