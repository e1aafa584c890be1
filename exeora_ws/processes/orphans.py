"""Orphans that fell to us as child-subreaper: whose they are, and when to collect them.

A direct child of this process is either in our own session or leads one of its own. An orphan from elsewhere is
therefore certain when it is in a foreign session that it does not lead; one that leads its session could also be
something that other code here started, and gets the benefit of the doubt.
"""

import os
import time
from collections.abc import Callable, Iterable

from exeora_ws.processes.spawn import direct_children
from exeora_ws.processes.table import Entry, Identity, find_variable, load_table
from exeora_ws.processes.tree import reap

PATIENCE_SECONDS = 30.0
"""How long an ended session leader is left to whoever may have started it."""


def is_adopted(entry: Entry) -> bool:
    """Whether this must be an orphan, not something that this process started."""
    if entry.parent != os.getpid() or entry.pid in direct_children:
        return False
    return entry.session not in (0, os.getsid(0)) and entry.pid != entry.session


def is_stray(entry: Entry, other_starts: Iterable[int]) -> bool:
    """Whether an orphan without a tag came out of one command and none of the others.

    Args:
        entry: the orphan.
        other_starts: when each other command that may still have orphans was started.
    """
    if any(started <= entry.identity.started for started in other_starts):
        return False
    if is_adopted(entry):
        return True
    leads = entry.pid == entry.session and entry.parent == os.getpid() and entry.pid not in direct_children
    # `env -i` took the tag, and the home folder with it: nothing else here starts processes that poor.
    return leads and find_variable(entry.pid, "HOME") == ""


class Orphans:
    """Collects ended orphans, so that none stays a zombie, without taking anybody's exit code."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[Identity, float] = {}

    def sweep(self) -> None:
        """Collect what has ended and is certainly an orphan; session leaders only once nobody wanted them for 30 s."""
        if not _has_ended_child():
            self._waiting.clear()
            return
        now, ours = self._clock(), os.getpid()
        ended = [e for e in load_table().values() if e.zombie and e.parent == ours and e.pid not in direct_children]
        leaders = {e.identity for e in ended if e.pid == e.session}
        self._waiting = {identity: self._waiting.get(identity, now) for identity in leaders}
        reap(entry.identity for entry in ended if is_adopted(entry))
        reap(identity for identity, since in self._waiting.items() if now - since >= PATIENCE_SECONDS)


def _has_ended_child() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
