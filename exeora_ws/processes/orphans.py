"""Orphans that fell to us as child-subreaper: whose they are, and when to collect them.

A direct child of this process is either in our own session or leads one of its own. An orphan from elsewhere is
therefore certain when it is in a foreign session that it does not lead; one that leads its session could also be
something that other code here started, and gets the benefit of the doubt.
"""

import os
import time
from collections.abc import Callable, Iterable

from exeora_ws.processes.family import take_census
from exeora_ws.processes.table import Entry, Identity, find_variable
from exeora_ws.processes.tree import reap

PATIENCE_SECONDS = 10.0
"""How long an ended session leader is left to whoever may have started it."""


def is_stray(entry: Entry, other_starts: Iterable[int]) -> bool:
    """Whether an orphan without a tag came out of one command and none of the others.

    Args:
        entry: an orphan as the census has it.
        other_starts: when each other command that may still have orphans was started.
    """
    if any(started <= entry.identity.started for started in other_starts):
        return False
    if _is_adopted(entry):
        return True
    # `env -i` took the tag, and the home folder with it: nothing else here starts processes that poor.
    return entry.pid == entry.session and not find_variable(entry.pid, "HOME")


def _is_adopted(entry: Entry) -> bool:
    return entry.session not in (0, os.getsid(0)) and entry.pid != entry.session


class Orphans:
    """Collects ended orphans, so that none stays a zombie, without taking anybody's exit code."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[Identity, float] = {}

    def sweep(self) -> None:
        """Collect what has ended and is certainly an orphan; session leaders only once nobody wanted them for 10 s."""
        if not _has_ended_child():
            self._waiting.clear()
            return
        census, now = take_census(), self._clock()
        ended = [entry for entry in census.table.values() if entry.zombie and census.is_orphan(entry)]
        leaders = {entry.identity for entry in ended if entry.pid == entry.session}
        self._waiting = {identity: self._waiting.get(identity, now) for identity in leaders}
        reap(entry.identity for entry in ended if _is_adopted(entry))
        reap(identity for identity, since in self._waiting.items() if now - since >= PATIENCE_SECONDS)


def _has_ended_child() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
