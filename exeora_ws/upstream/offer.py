"""What one project's servers have come to: how each stands, and the catalog that follows from it. Starts nothing."""

import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from exeora_ws.errors import ToolFailed
from exeora_ws.names import ProjectId
from exeora_ws.upstream.catalog import Catalog, publish_catalog
from exeora_ws.upstream.listing import Listing
from exeora_ws.upstream.project_config import Effective
from exeora_ws.upstream.redaction import make_redactor
from exeora_ws.upstream.server import Entry, Program, Server

RETRY_SECONDS = (2.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)
"""How long after each failed start in a row the next is tried; the last goes on for ever."""


class UpstreamProject(Protocol):
    """A project, as far as this room needs to know one."""

    @property
    def id(self) -> ProjectId:
        """Its id."""
        ...

    @property
    def root(self) -> Path:
        """Its root."""
        ...


class State(StrEnum):
    """How a server stands with a project."""

    OFF = "off"
    FAULTY = "faulty"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass
class Standing:
    """One server of a project. Guarded by its offer's lock."""

    entry: Entry
    listing: Listing | None = None
    """Its tools as it last said them; they stay published while it is down."""
    failure: ToolFailed | None = None
    failures: int = 0
    due: float | None = 0.0
    """When to ask it next (monotonic seconds); None when there is no need."""
    busy: bool = False
    """Whether somebody is asking it."""
    unchanged: int = 0
    """How often in a row it announced a change that was none."""

    @property
    def state(self) -> State:
        """How it stands."""
        if not self.entry.enabled:
            return State.OFF
        if self.entry.server is None:
            return State.FAULTY
        if self.failure is not None:
            return State.FAILED
        return State.READY if self.listing is not None else State.STARTING


class Offer:
    """The servers of one project. Thread-safe.

    Args:
        project: whose.
        budget: longest published name, in characters.
    """

    def __init__(self, project: UpstreamProject, budget: int) -> None:
        self.project = project
        self._budget = budget
        self._lock = threading.RLock()
        self._settled = threading.Condition(self._lock)
        self._standings: dict[str, Standing] = {}
        self._warnings: tuple[str, ...] = ()
        self._catalog = Catalog()

    @property
    def catalog(self) -> Catalog:
        """What is published now."""
        return self._catalog

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the files and the catalog, and what was left out."""
        return (*self._warnings, *self._faults(), *self._catalog.warnings)

    def configure(self, effective: Effective) -> bool:
        """Take a new configuration; a server whose entry is the same stays as it stands.

        Returns:
            Whether published tools changed.
        """
        with self._lock:
            before = self._standings
            self._warnings = effective.warnings
            self._standings = {
                entry.name: before[entry.name]
                if entry.name in before and before[entry.name].entry == entry
                else Standing(entry)
                for entry in effective.entries
            }
            return self._publish()

    def find_server(self, name: str) -> Server | None:
        """The server of that name, when it is to run."""
        with self._lock:
            standing = self._standings.get(name)
            return standing.entry.runnable if standing is not None else None

    def list_servers(self) -> list[Server]:
        """Every server that is to run."""
        with self._lock:
            return [s.entry.server for s in self._standings.values() if s.entry.enabled and s.entry.server is not None]

    def take_due(self, now: float) -> list[Server]:
        """Give the servers that are to be asked now, and mark them as being asked."""
        due = []
        with self._lock:
            for standing in self._standings.values():
                server = standing.entry.runnable
                if server is not None and not standing.busy and standing.due is not None and standing.due <= now:
                    standing.busy, standing.due = True, None
                    due.append(server)
        return due

    def find_next_due(self) -> float | None:
        """When the next is to be asked."""
        with self._lock:
            return min(
                (s.due for s in self._standings.values() if s.due is not None and not s.busy and s.entry.runnable),
                default=None,
            )

    def ask_again(self, name: str) -> None:
        """Have a server asked at once, however often it failed."""
        with self._lock:
            if (standing := self._standings.get(name)) is not None:
                standing.due = 0.0

    def note_announcement(self, server: Server, quiet: float) -> None:
        """A server says that its tools changed: have it asked after `quiet` seconds, later when it cries wolf."""
        with self._lock:
            if (standing := self._find(server)) is not None:
                standing.due = time.monotonic() + min(60.0, quiet * 2.0**standing.unchanged)

    def take_answer(self, server: Server, listing: Listing) -> bool:
        """Take what a server said that was asked because it was due; gives whether published tools changed."""
        with self._lock:
            if (standing := self._find(server)) is None:
                return False
            standing.busy = False
            before = standing.listing
            changed = self.take_listing(server, listing)
            same = before is not None and before.tools == listing.tools
            standing.unchanged = standing.unchanged + 1 if same else 0
            self._settled.notify_all()
            return changed

    def take_listing(self, server: Server, listing: Listing) -> bool:
        """Take what a server said meanwhile, because somebody called it; gives whether published tools changed."""
        with self._lock:
            standing = self._find(server)
            if standing is None or (standing.listing is listing and standing.failure is None):
                return False
            same = standing.listing is not None and standing.listing == listing
            if standing.failure is not None:
                standing.due = None
            standing.listing, standing.failure, standing.failures = listing, None, 0
            return not same and self._publish()

    def take_failure(self, server: Server, failure: ToolFailed) -> bool:
        """Take a failed start; gives whether it is worth reporting: the first since it last worked."""
        with self._lock:
            standing = self._find(server)
            if standing is None:
                return False
            first = standing.failure is None
            pause = RETRY_SECONDS[min(standing.failures, len(RETRY_SECONDS) - 1)]
            standing.failure, standing.busy = failure, False
            standing.failures += 1
            standing.due = time.monotonic() + pause
            self._settled.notify_all()
            return first

    def wait_until_settled(self, seconds: float) -> bool:
        """Wait until every server has answered or failed; False when some have not."""
        with self._settled:
            return self._settled.wait_for(self._is_settled, seconds)

    def describe(self) -> list[dict[str, Any]]:
        """Give each server's status, for people: nothing in it is secret."""
        with self._lock:
            published = [tool.server for tool in self._catalog.tools]
            return [describe_standing(s, published.count(s.entry.name)) for s in self._standings.values()]

    def _is_settled(self) -> bool:
        return all(standing.state is not State.STARTING for standing in self._standings.values())

    def _find(self, server: Server) -> Standing | None:
        """The standing of this very configuration; None when it has been changed since."""
        standing = self._standings.get(server.name)
        return standing if standing is not None and standing.entry.server == server else None

    def _faults(self) -> list[str]:
        with self._lock:
            return [s.entry.fault for s in self._standings.values() if s.entry.fault is not None]

    def _publish(self) -> bool:
        listings = [
            (s.entry.server, s.listing)
            for s in self._standings.values()
            if s.entry.server is not None and s.entry.enabled and s.listing is not None
        ]
        before = self._catalog.tools
        self._catalog = publish_catalog(listings, servers=self._standings, budget=self._budget)
        return self._catalog.tools != before


def describe_standing(standing: Standing, published: int = 0) -> dict[str, Any]:
    """Give a server's status.

    Keys: name, source, state, kind?, target?, tools?, published?, fault?, failure?, retrySeconds?
    """
    entry = standing.entry
    status: dict[str, Any] = {"name": entry.name, "source": str(entry.source), "state": str(standing.state)}
    server = entry.server
    if server is not None:
        status["kind"] = "stdio" if isinstance(server.reach, Program) else "http"
        status["target"] = server.describe()
    if standing.listing is not None:
        status |= {"tools": len(standing.listing.tools), "published": published}
    if entry.fault is not None:
        status["fault"] = entry.fault
    if standing.failure is not None:
        status["failure"] = standing.failure.to_dict()
    if standing.failure is not None and standing.due is not None:
        status["retrySeconds"] = round(max(0.0, standing.due - time.monotonic()), 1)
    return make_redactor(server).scrub_value(status) if server is not None else status
