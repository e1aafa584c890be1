"""Who is told what: changed tools, collected for a moment; warnings and failures, once."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from exeora_ws.names import ProjectId

log = logging.getLogger("exeora")

OnChange = Callable[[ProjectId], None]
"""Told that a project's published tools are others now; in a thread of ours, must not wait."""


class Announcements:
    """Thread-safe.

    Args:
        quiet: seconds that changes of a project are collected.
        report: takes each line that a person should read; the log takes it too.
    """

    def __init__(self, quiet: float, report: Callable[[str], None] | None) -> None:
        self._quiet = quiet
        self._report = report
        self._lock = threading.Lock()
        self._callbacks: list[OnChange] = []
        self._due: dict[ProjectId, float] = {}
        self._warned: dict[ProjectId, set[str]] = {}

    def on_change(self, callback: OnChange) -> Callable[[], None]:
        """Have `callback` told of changes; gives a function that forgets it."""
        with self._lock:
            self._callbacks.append(callback)
        return lambda: self._forget(callback)

    def note_change(self, project_id: ProjectId) -> None:
        """A project's tools changed; whoever listens is told after a while."""
        with self._lock:
            self._due.setdefault(project_id, time.monotonic() + self._quiet)

    def find_next_due(self) -> float | None:
        """When somebody is to be told (monotonic seconds)."""
        with self._lock:
            return min(self._due.values(), default=None)

    def tell_due(self) -> None:
        """Tell what is due."""
        now = time.monotonic()
        with self._lock:
            due = [project_id for project_id, at in self._due.items() if at <= now]
            for project_id in due:
                del self._due[project_id]
            callbacks = list(self._callbacks)
        for project_id in due:
            for callback in callbacks:
                _tell(callback, project_id)

    def report(self, line: str) -> None:
        """Report one line."""
        log.warning("%s", line)
        if self._report is not None:
            self._report(line)

    def report_new(self, project_id: ProjectId, warnings: Iterable[str]) -> None:
        """Report the warnings of a project that are new: neither it nor another had them before.

        One that went away and comes back is new.
        """
        now = list(warnings)
        with self._lock:
            known = set().union(*self._warned.values())
            self._warned[project_id] = set(now)
        for warning in now:
            if warning not in known:
                self.report(warning)

    def drop(self, project_id: ProjectId) -> None:
        """A project is not served any more."""
        with self._lock:
            self._warned.pop(project_id, None)
            self._due.pop(project_id, None)

    def _forget(self, callback: OnChange) -> None:
        with self._lock, suppress(ValueError):
            self._callbacks.remove(callback)


def _tell(callback: OnChange, project_id: ProjectId) -> None:
    try:
        callback(project_id)
    except Exception:
        log.exception("a listener for upstream changes failed")
