"""A machine's inventory in the fleet: written whenever the registry, a policy or a catalog of tools is another."""

import json
import logging
import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from exeora_ws import __version__
from exeora_ws.app import App
from exeora_ws.errors import ExeoraError
from exeora_ws.fleet import wire
from exeora_ws.fleet.clock import FleetClock
from exeora_ws.fleet.documents import (
    PresenceRecord,
    ProjectRecord,
    WorkspaceRecord,
    describe_policy,
    describe_tools,
    name_presence_key,
    name_project_key,
    pack_project,
)
from exeora_ws.fleet.keeping import KeyWriter
from exeora_ws.fleet.line import Line
from exeora_ws.fleet.permissions import INVENTORY_BUCKET, PRESENCE_BUCKET
from exeora_ws.names import ProjectId, show_bytes
from exeora_ws.storage import make_private_folder, replace_file
from exeora_ws.workspaces.place import Project, Workspace

log = logging.getLogger("exeora")

LOOK_SECONDS = 0.5
"""How often it is looked whether another process has changed the registry or a file of policy."""
_WHOLE_SECONDS = 15.0
"""How often everything is described anew: folders that went, branches that were switched."""
_PRESENT_SECONDS = 60.0
_PAUSES = (0.5, 1.0, 2.0, 5.0)
_POLICY_FILE = "exeora.toml"


class Publisher:
    """Writes what this machine has, in a thread of its own.

    Args:
        app: the core.
        line: the connection.
        clock: the fleet's time.
        machine: our id.
        warn: told of trouble, one sentence.
    """

    def __init__(self, app: App, line: Line, clock: FleetClock, machine: str, warn: Callable[[str], None]) -> None:
        self._app = app
        self._clock = clock
        self._machine = machine
        self._warn = warn
        self._writer = KeyWriter(line)
        self._file = app.places.data / "fleet" / "published.json"
        self.instance = wire.new_call_id()
        """Random for each process."""
        self._since = 0
        self._published: dict[ProjectId, ProjectRecord] = {}
        self._signs: Any = None
        self._whole_at = 0.0
        self._present_at = 0.0
        self._rivals = 0
        self._all = True
        self._wake = threading.Event()
        self._stopping = False
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fleet-publisher", daemon=True)

    def open(self) -> None:
        """Begin."""
        self._since = self._clock.now_ms()
        self._forget = self._app.news.subscribe(self._wake.set)
        self._thread.start()

    def await_first(self, seconds: float) -> bool:
        """Wait until everything has been published once; False when it has not."""
        return self._first.wait(seconds)

    def look(self) -> None:
        """Look at once: something may be another."""
        self._wake.set()

    def begin_anew(self) -> None:
        """Write everything again: the connection is a new one, and what was under way may be lost."""
        self._all = True
        self._wake.set()

    def close(self) -> None:
        """Say goodbye and end."""
        self._stopping = True
        self._wake.set()
        self._forget()
        self._thread.join(_PAUSES[-1] + 1)
        with suppress(ExeoraError):
            self._write_presence(gone=True)

    def describe_presence(self, *, gone: bool = False) -> PresenceRecord:
        """Say who is here."""
        return PresenceRecord(
            machine=self._machine,
            instance=self.instance,
            version=__version__,
            platform=f"{platform.system().lower()} {platform.machine()}",
            since=self._since,
            seen=self._clock.now_ms(),
            gone=gone,
        )

    def _run(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                self._publish()
            except ExeoraError as error:
                if failures == 1:
                    self._warn(f"the inventory is not published: {error.message}")
                failures += 1
            except Exception:
                log.exception("publishing the inventory failed")
                failures += 1
            else:
                failures = 0
                self._first.set()
            self._wake.wait(_PAUSES[min(failures, len(_PAUSES)) - 1] if failures else LOOK_SECONDS)
            self._wake.clear()

    def _publish(self) -> None:
        now = time.monotonic()
        if self._all:
            self._all, self._whole_at, self._present_at = False, 0.0, 0.0
            self._published.clear()
        if now >= self._present_at:
            self._write_presence()
            self._present_at = now + _PRESENT_SECONDS
        signs = self._read_signs()
        if signs != self._signs or now >= self._whole_at:
            self._write_projects()
            self._signs, self._whole_at = signs, now + _WHOLE_SECONDS

    def _read_signs(self) -> Any:
        """Look at what tells, cheaply, that something is another: files' times, and the catalogs of tools."""
        proxies = self._app.upstreams()
        projects = self._app.inventory.list_projects()
        for project in projects:
            proxies.start(project)
        places = self._app.places
        return (
            _sign(places.inventory),
            _sign(places.config_file),
            [(p, _sign(p.root / _POLICY_FILE), proxies.tools(p.id)) for p in projects],
        )

    def _write_presence(self, *, gone: bool = False) -> None:
        record = self.describe_presence(gone=gone)
        self._writer.put(PRESENCE_BUCKET, name_presence_key(self._machine), wire.encode(record))
        if self._writer.rivals > self._rivals:
            self._rivals = self._writer.rivals
            self._warn("another exeora connects with this machine's credential")

    def _write_projects(self) -> None:
        projects = self._app.inventory.list_projects()
        present = {project.id for project in projects}
        before = set(self._load_names()) | set(self._published)
        if present - before:
            self._store_names(before | present)
        for project in projects:
            self._write_project(project)
        for gone in before - present:
            self._writer.delete(INVENTORY_BUCKET, name_project_key(self._machine, gone))
            self._published.pop(gone, None)
        if before - present:
            self._store_names(present)

    def _write_project(self, project: Project) -> None:
        try:
            record = self._describe(project)
        except ExeoraError as error:  # it goes at this moment, or its folder is in a bad way; others are published
            log.warning("project %s is not published: %s", project.slug, error.message)
            return
        if record == self._published.get(project.id):
            return
        dated = pack_project(_date(record, self._clock.now_ms()))
        self._writer.put(INVENTORY_BUCKET, name_project_key(self._machine, project.id), dated)
        self._published[project.id] = record

    def _describe(self, project: Project) -> ProjectRecord:
        inventory = self._app.inventory
        policy = self._app.calls.gate.load_policy(project, None)
        return ProjectRecord(
            machine=self._machine,
            instance=self.instance,
            id=project.id,
            slug=project.slug,
            name=project.root.name or project.slug,
            workspaces=[
                _describe_workspace(workspace, available=inventory.find_fault(project, workspace) is None)
                for workspace in inventory.list_workspaces(project)
            ],
            policy=describe_policy(policy),
            tools=describe_tools(tuple(self._app.upstreams().tools(project.id))),
        )

    def _load_names(self) -> list[ProjectId]:
        """Give which projects have been published by this machine, also by processes before this one."""
        try:
            found = json.loads(self._file.read_bytes())
            return [ProjectId(str(name)) for name in found["projects"]] if found["machine"] == self._machine else []
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _store_names(self, names: set[ProjectId]) -> None:
        try:
            make_private_folder(self._file.parent)
            replace_file(self._file, json.dumps({"machine": self._machine, "projects": sorted(names)}).encode())
        except OSError as error:
            log.warning("what was published is not written down: %s", error.strerror)


def _date(record: ProjectRecord, at: int) -> ProjectRecord:
    return ProjectRecord(**{name: getattr(record, name) for name in record.__struct_fields__} | {"at": at})


def _describe_workspace(workspace: Workspace, *, available: bool) -> WorkspaceRecord:
    return WorkspaceRecord(
        id=workspace.id,
        slug=workspace.slug,
        name=workspace.name,
        branch=None if workspace.branch is None else show_bytes(workspace.branch),
        managed=workspace.managed,
        available=available,
        path=str(workspace.path),
    )


def _sign(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
