"""Every command of this user that runs, whichever server started it, and what the host can still show."""

from dataclasses import dataclass

from exeora_ws.database import Database
from exeora_ws.processes.client import HostClient
from exeora_ws.processes.command import Listing
from exeora_ws.processes.records import LiveProcess, list_live


@dataclass(frozen=True, slots=True)
class Seen:
    """One command as a list shows it. Project and workspace are ids."""

    id: str
    kind: str
    """`run` for one that somebody waits for, `start` for one that runs on its own."""
    project: str
    workspace: str
    line: str
    pid: int
    since: float
    """Seconds of the epoch."""
    running: bool
    code: int | None
    signal: str | None
    in_host: bool
    """Whether the host keeps it, so that any shell can read it and write to it."""


def list_everywhere(database: Database, host: HostClient) -> list[Seen]:
    """List what runs now, and what ended in the host within the last ten minutes; oldest first.

    Raises:
        ToolFailed: `version_mismatch`, when the host is of another version.
    """
    kept = [_show_kept(listing) for listing in host.list_started()]
    known = {seen.id for seen in kept}
    others = [_show_live(live) for live in list_live(database) if live.id not in known]
    return sorted((*kept, *others), key=lambda seen: seen.since)


def _show_kept(listing: Listing) -> Seen:
    return Seen(
        id=listing.id,
        kind="start",
        project=listing.owner.project,
        workspace=listing.owner.workspace,
        line=listing.line,
        pid=listing.pid,
        since=listing.since,
        running=listing.running,
        code=listing.code,
        signal=listing.signal,
        in_host=True,
    )


def _show_live(live: LiveProcess) -> Seen:
    return Seen(
        id=live.id,
        kind=live.kind,
        project=live.project,
        workspace=live.workspace,
        line=live.command,
        pid=live.pid,
        since=live.since,
        running=True,
        code=None,
        signal=None,
        in_host=False,
    )
