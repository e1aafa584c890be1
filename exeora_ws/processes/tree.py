"""A command and everything that came out of it: found, signalled, ended.

A process belongs to a command when one of these holds, each of which survives something the others do not:

* it descends from a member (parent links: broken when a parent dies, mended by the child-subreaper to point at us);
* it is in a session that a member is in (survives the death of parents, broken by `setsid`);
* its environment carries the command's tag (survives both, broken by `env -i`);
* it was a member when last seen (survives everything: pid and start time).
"""

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from exeora_ws.processes.family import Census, take_census
from exeora_ws.processes.table import TAG_VARIABLE, Entry, Identity, find_entry, find_variable

Stray = Callable[[Entry], bool]
"""Says of an orphan that fell to us and carries no tag whether it must be this command's."""


@dataclass(slots=True)
class Tree:
    """The processes of one command.

    Args:
        root: the process we started.
        tag: the random word in its environment.
        leads_session: whether it was started in a session of its own.
        stray: decides about orphans without a tag; None leaves them alone.
    """

    root: Identity
    tag: str
    leads_session: bool = True
    stray: Stray | None = None
    known: set[Identity] = field(default_factory=set)
    """Every member seen so far, the root too; also those that have ended."""
    unsure: bool = False
    """Whether the last scan may have missed a member: look again in a moment."""

    def __post_init__(self) -> None:
        self.known.add(self.root)

    def find_members(self) -> list[Entry]:
        """Scan the process table for what still runs of this command, and remember it."""
        census = take_census()
        self.unsure = False
        members = {e.pid: e for e in census.table.values() if e.identity in self.known or self._is_marked(e, census)}
        self._add_relatives(census.table, members)
        reap(entry.identity for entry in members.values() if entry.zombie and entry.identity != self.root)
        return [entry for entry in members.values() if not entry.zombie]

    def find_known(self) -> list[Entry]:
        """Look only at members seen before: cheap, and blind to what was born since."""
        found = [entry for identity in self.known if (entry := find_entry(identity.pid)) is not None]
        same = [entry for entry in found if entry.identity in self.known]
        reap(entry.identity for entry in same if entry.zombie and entry.identity != self.root)
        return [entry for entry in same if not entry.zombie]

    def _is_marked(self, entry: Entry, census: Census) -> bool:
        if entry.identity.started < self.root.started or entry.pid == os.getpid():
            return False
        if self.leads_session and entry.session == self.root.pid:
            # A leader with another start time is a later process that was given the same number.
            leader = census.table.get(self.root.pid)
            return leader is None or leader.identity == self.root
        # The kernel's own threads have no group.
        if entry.zombie or entry.group == 0:
            return False
        tags = find_variable(entry.pid, TAG_VARIABLE)
        if tags:
            return self.tag in tags.split(":")
        orphan = census.is_orphan(entry)
        if tags is None and (orphan or self.stray is None):
            self.unsure = True
        return orphan and self.stray is not None and self.stray(entry)

    def _add_relatives(self, table: dict[int, Entry], members: dict[int, Entry]) -> None:
        """Close `members` under parentage, and under the sessions that one of them began."""
        others = [entry for pid, entry in table.items() if pid != os.getpid()]
        grown = -1
        while grown != len(members):
            grown = len(members)
            self.known.update(entry.identity for entry in members.values())
            sessions = {e.session for e in members.values() if self._owns_session(e.session, table)}
            members.update((e.pid, e) for e in others if e.parent in members or e.session in sessions)

    def _owns_session(self, session: int, table: dict[int, Entry]) -> bool:
        """Whether the session that a member is in began inside this tree.

        A leader is an ancestor of all in its session, and so is our root of its members: the later one is the lower.
        While a member lives nobody else is given the leader's number.
        """
        leader = table.get(session)
        if leader is not None:
            return leader.identity.started >= self.root.started and leader.pid != os.getpid()
        return any(identity.pid == session for identity in self.known)


def send_signal(identity: Identity, number: int) -> bool:
    """Signal this very process; False when it has gone. Never reaches another one that was given its number."""
    if hasattr(os, "pidfd_open"):
        return _send_through_descriptor(identity, number)
    entry = find_entry(identity.pid)
    if entry is None or entry.identity != identity:
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.kill(identity.pid, number)
        return True
    return False


def _send_through_descriptor(identity: Identity, number: int) -> bool:
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError:
        return False
    try:
        entry = find_entry(identity.pid)
        if entry is None or entry.identity != identity:
            return False
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(descriptor, number)
            return True
        return False
    finally:
        os.close(descriptor)


def send_to_group(root: Identity, number: int) -> bool:
    """Signal the process group that a command leads, as a terminal does; False when it has gone."""
    entry = find_entry(root.pid)
    if entry is None or entry.identity != root or entry.group != root.pid:
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(root.pid, number)
        return True
    return False


def reap(identities: Iterable[Identity]) -> None:
    """Collect ended processes that fell to us as orphans. Never one that somebody in this process waits for."""
    for identity in identities:
        with suppress(ChildProcessError):
            os.waitpid(identity.pid, os.WNOHANG)
