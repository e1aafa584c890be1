"""The end of a tree: TERM, a grace, KILL, until nothing is left (contract, section 7).

`Ending` decides, one `advance` at a time, and never waits: a loop drives many of them, `end_tree` drives one.
"""

import signal
import time
from collections.abc import Callable, Iterable

from exeora_ws.limits import KILL_GRACE_MS
from exeora_ws.processes.table import Entry, Identity
from exeora_ws.processes.tree import Tree, send_signal

GRACE_SECONDS = KILL_GRACE_MS / 1000
FORCE_SECONDS = 5.0
"""How long KILL is repeated before a process counts as one that cannot be killed (stuck in the kernel, another's)."""

SURE_SECONDS = 0.25
"""How long something that may be a member, and cannot be looked at, keeps a tree from counting as ended."""

_PAUSES = (0.0005, 0.001, 0.001, 0.002, 0.003, 0.005, 0.008, 0.013, 0.02, 0.03)
_FREEZE_ROUNDS = 20


class Ending:
    """Ends one tree.

    Args:
        tree: what to end.
        grace: seconds between TERM and KILL; 0 kills at once.
        clock: monotonic seconds.
        found: the members, when somebody has just looked.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        grace: float = GRACE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        found: list[Entry] | None = None,
    ) -> None:
        self.tree = tree
        self.found = found
        """What ran at the first look, before any signal; None until then."""
        self.survivors: list[Entry] = []
        """What could not be killed, once `advance` has given None."""
        self._clock = clock
        self._force_at = clock() + grace
        self._give_up_at = self._force_at + FORCE_SECONDS
        self._asked: set[Identity] = set()
        self._steps = 0
        self._sure_at: float | None = None

    def advance(self) -> float | None:
        """Do what is due; gives the seconds after which to call again, None when the tree has ended."""
        running = self._look()
        if self.found is None:
            self.found = running
        now = self._clock()
        if not running:
            return self._make_sure(now)
        self._sure_at = None
        if now >= self._give_up_at:
            self.survivors = running
            return None
        if now >= self._force_at:
            _force(self.tree)
        else:
            self._ask(running)
        self._steps += 1
        return _PAUSES[min(self._steps, len(_PAUSES)) - 1]

    def _make_sure(self, now: float) -> float | None:
        """Nothing was found: once more, when the scan says that it may have missed something."""
        if not self.tree.unsure:
            return None
        if self._sure_at is None:
            self._sure_at = now + SURE_SECONDS
        return _PAUSES[1] if now < self._sure_at else None

    def _look(self) -> list[Entry]:
        """Scan at first and once those we know have gone; in between, only look at those."""
        known = self.tree.find_known() if self.found is not None else []
        return known or self.tree.find_members()

    def _ask(self, running: list[Entry]) -> None:
        for entry in running:
            if entry.identity not in self._asked:
                self._asked.add(entry.identity)
                send_signal(entry.identity, signal.SIGTERM)
                # A stopped process acts on TERM only once it goes on.
                send_signal(entry.identity, signal.SIGCONT)


def _force(tree: Tree) -> None:
    """Stop the tree until a scan finds no new member (what is stopped cannot fork), then kill it whole."""
    stopped: set[Identity] = set()
    for _ in range(_FREEZE_ROUNDS):
        fresh = {entry.identity for entry in tree.find_members()} - stopped
        if not fresh:
            break
        for identity in fresh:
            send_signal(identity, signal.SIGSTOP)
        stopped |= fresh
    for identity in stopped:
        send_signal(identity, signal.SIGKILL)


def end_tree(tree: Tree, *, grace: float = GRACE_SECONDS) -> Ending:
    """End a tree and wait for it: at most `grace` and 5 s; what it found and what survived is in the answer."""
    (ending,) = end_trees([tree], grace=grace)
    return ending


def end_trees(trees: Iterable[Tree], *, grace: float = GRACE_SECONDS) -> list[Ending]:
    """End several trees side by side and wait for all."""
    endings = [Ending(tree, grace=grace) for tree in trees]
    under_way = endings
    while under_way:
        pauses = [(ending, ending.advance()) for ending in under_way]
        under_way = [ending for ending, pause in pauses if pause is not None]
        time.sleep(min((pause for _, pause in pauses if pause is not None), default=0))
    return endings
