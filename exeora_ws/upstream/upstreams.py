"""The room's face: the upstream servers of every project that is served.

Servers start in the background and tools appear as they answer; nothing here waits for one but a call of its tools.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Forbidden, ToolFailed, UnknownTool
from exeora_ws.limits import TOOL_NAME_CHARACTERS
from exeora_ws.names import ProjectId
from exeora_ws.upstream.announcements import Announcements, OnChange
from exeora_ws.upstream.calls import Admit, UpstreamCall, make_call
from exeora_ws.upstream.catalog import PublishedTool
from exeora_ws.upstream.config import Configuration, load_configuration
from exeora_ws.upstream.instance import Phase, Surroundings
from exeora_ws.upstream.listing import Listing
from exeora_ws.upstream.merging import AccountTool, merge_catalogs
from exeora_ws.upstream.messages import Message
from exeora_ws.upstream.offer import Offer, UpstreamProject
from exeora_ws.upstream.peer import ConnectionLost, OnProgress, ProtocolError, RemoteError
from exeora_ws.upstream.pool import IDLE_SECONDS, Pool
from exeora_ws.upstream.project_config import PROJECT_FILE, load_project_section, merge_servers
from exeora_ws.upstream.server import Program, Server
from exeora_ws.upstream.watch import Watch

log = logging.getLogger("exeora")


@dataclass(frozen=True)
class Timing:
    """How long things take, in seconds."""

    watch: float = 1.0
    """Between two looks at the files, and at what is idle."""
    quiet: float = 0.2
    """How long changes are collected before anybody is told."""
    idle: float = IDLE_SECONDS


class Upstreams:
    """Upstream servers of many projects. Thread-safe.

    Args:
        mcp_file: the user's `mcp.json`; it need not exist.
        surroundings: what servers are started with.
        variables: what `${NAME}` is looked up in; this process's environment when None.
        budget: longest published name, in characters (`mcp.nameBudget`).
        timing: see there.
        report: told each warning and each first failure once, as one line; the log is told too.
    """

    def __init__(
        self,
        mcp_file: Path,
        surroundings: Surroundings,
        *,
        variables: Mapping[str, str] | None = None,
        budget: int = TOOL_NAME_CHARACTERS,
        timing: Timing | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self._mcp_file = mcp_file
        self._variables = variables
        self._budget = budget
        self._timing = timing or Timing()
        self._announcements = Announcements(self._timing.quiet, report)
        self._pool = Pool(surroundings, self._note_announcement, idle_seconds=self._timing.idle)
        self._watch = Watch()
        self._user = Configuration()
        self._lock = threading.Lock()
        self._reloading = threading.RLock()
        self._offers: dict[ProjectId, Offer] = {}
        self._merged: dict[tuple[ProjectId, ...], tuple[dict[ProjectId, tuple[PublishedTool, ...]], list[AccountTool]]]
        self._merged = {}
        """The last answer for each set of projects, with the catalogs it was made from."""
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self, project: UpstreamProject) -> None:
        """Begin to serve a project's upstreams; gives at once. A second time does nothing."""
        with self._lock:
            if self._closed or project.id in self._offers:
                return
            self._offers[project.id] = Offer(project, self._budget)
            self._watch.forget(project.root / PROJECT_FILE)
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_going, name="upstreams", daemon=True)
                self._thread.start()
        self._wake.set()

    def stop(self, project_id: ProjectId) -> None:
        """Serve a project's upstreams no longer, and end what only it used."""
        with self._lock:
            offer = self._offers.pop(project_id, None)
        if offer is not None:
            self._announcements.drop(project_id)
            self._pool.close_directory(offer.project.root)
            self._drop_unused()

    def tools(self, project_id: ProjectId) -> tuple[PublishedTool, ...]:
        """Give what a project publishes now; empty for one that was not started."""
        offer = self._find_offer(project_id)
        return offer.catalog.tools if offer is not None else ()

    def account_tools(self, project_ids: Iterable[ProjectId]) -> list[AccountTool]:
        """Give what an account publishes that reaches these projects."""
        catalogs = {project_id: self.tools(project_id) for project_id in project_ids}
        key = tuple(catalogs)
        known = self._merged.get(key)
        if known is None or any(known[0][project_id] is not tools for project_id, tools in catalogs.items()):
            known = (catalogs, merge_catalogs(catalogs))
            self._merged[key] = known
        return known[1]

    def find(self, project_id: ProjectId, name: str) -> PublishedTool | None:
        """The published tool of that name."""
        offer = self._find_offer(project_id)
        return offer.catalog.find(name) if offer is not None else None

    def call(self, project_id: ProjectId, call: UpstreamCall) -> Message:
        """Call a published tool; gives the raw result.

        What it was when it was judged is checked against the files and the catalog of now.

        Raises:
            UnknownTool: it is not published any more, or stands for another one now.
            Forbidden: reason `server_disabled`, the workspace's own `exeora.toml` switches its server off.
            ExeoraError: as `calls.make_call`.
        """
        offer, server = self._require_server(project_id, call.tool)
        root = offer.project.root
        if call.directory != root and load_project_section(call.directory).switches_off(server.name):
            raise Forbidden(
                f"the workspace's own {PROJECT_FILE} switches the server {server.name!r} off", reason="server_disabled"
            )
        try:
            return make_call(self._pool, server, call)
        except ToolFailed as failure:
            if failure.reason == "upstream_failed" and _speaks_for(server, call.directory, root):
                self._take_failure(offer, server, failure)
            raise
        finally:
            self._take_running(offer, server)

    def forward(
        self,
        project_id: ProjectId,
        tool: PublishedTool,
        directory: Path,
        arguments: Mapping[str, Any],
        *,
        cancellation: Cancellation,
        on_progress: OnProgress,
        admit: Admit,
    ) -> Message:
        """Call a published tool with everything that belongs to the call; see `call`."""
        return self.call(
            project_id,
            UpstreamCall(tool, directory, arguments, cancellation=cancellation, on_progress=on_progress, admit=admit),
        )

    def status(self, project_id: ProjectId) -> list[dict[str, Any]]:
        """Give how each of a project's servers stands; nothing in it is secret."""
        offer = self._find_offer(project_id)
        return offer.describe() if offer is not None else []

    def warnings(self, project_id: ProjectId) -> tuple[str, ...]:
        """Give what is wrong with a project's configuration and catalog, and what was left out."""
        offer = self._find_offer(project_id)
        return offer.warnings if offer is not None else ()

    def retry(self, project_id: ProjectId, server: str) -> None:
        """Try a failed server at once."""
        if (offer := self._find_offer(project_id)) is not None:
            offer.ask_again(server)
            self._wake.set()

    def wait_until_settled(self, project_id: ProjectId, seconds: float) -> bool:
        """Wait until each of a project's servers has answered or failed; False when some have not."""
        offer = self._find_offer(project_id)
        return offer is None or offer.wait_until_settled(seconds)

    def stop_directory(self, directory: Path) -> list[str]:
        """End what runs in a workspace that goes; names the servers that ran there."""
        return self._pool.close_directory(directory)

    def on_change(self, callback: OnChange) -> Callable[[], None]:
        """Have `callback` told when a project's tools change; gives a function that forgets it."""
        return self._announcements.on_change(callback)

    def close(self) -> None:
        """End every server, for good."""
        with self._lock:
            self._closed = True
        self._wake.set()
        self._pool.close()
        if self._thread is not None:
            self._thread.join(5.0)

    def _find_offer(self, project_id: ProjectId) -> Offer | None:
        self._reload()
        return self._offers.get(project_id)

    def _require_server(self, project_id: ProjectId, tool: PublishedTool) -> tuple[Offer, Server]:
        offer = self._find_offer(project_id)
        now = offer.catalog.find(tool.name) if offer is not None else None
        server = offer.find_server(tool.server) if offer is not None else None
        if offer is None or server is None or now is None or (now.server, now.tool) != (tool.server, tool.tool):
            raise UnknownTool(f"{tool.name} is not published any more", hint="tools/list names those there are")
        return offer, server

    def _take_running(self, offer: Offer, server: Server) -> None:
        """Publish what the root's instance said of itself when the call had to start or to ask it."""
        for instance in self._pool.find_running():
            if instance.server == server and _speaks_for(server, instance.directory, offer.project.root):
                listing = instance.last_listing
                if listing is not None and offer.take_listing(server, listing):
                    self._announcements.note_change(offer.project.id)

    def _keep_going(self) -> None:
        """Look after everything, until closed: files, starts and retries, what is idle, who is to be told."""
        while not self._closed:
            self._wake.clear()
            try:
                self._reload()
                self._ask_due()
                self._announcements.tell_due()
                self._report_reaped(self._pool.reap())
            except Exception:
                log.exception("looking after upstream servers failed")
            self._wake.wait(self._find_pause())

    def _find_pause(self) -> float:
        now = time.monotonic()
        with self._lock:
            dues = [due for offer in self._offers.values() if (due := offer.find_next_due()) is not None]
        if (due := self._announcements.find_next_due()) is not None:
            dues.append(due)
        return max(0.01, min([self._timing.watch, *(due - now for due in dues)]))

    def _reload(self) -> None:
        """Read what has changed of the files, and restart only what that changes."""
        with self._reloading:
            with self._lock:
                offers = list(self._offers.values())
            files = [(offer.project.root / PROJECT_FILE, offer) for offer in offers]
            changed = self._watch.take_changed([self._mcp_file, *(path for path, _ in files)])
            user_changed = self._mcp_file in changed
            if user_changed:
                self._load_user()
            touched = [offer for path, offer in files if user_changed or path in changed]
            for offer in touched:
                if offer.configure(merge_servers(self._user, load_project_section(offer.project.root))):
                    self._announcements.note_change(offer.project.id)
                self._announcements.report_new(offer.project.id, offer.warnings)
            if touched:
                # Some take seconds to end, and whoever asks for tools waits for us here.
                threading.Thread(target=self._drop_unused, name="upstream-drop", daemon=True).start()
                self._wake.set()

    def _load_user(self) -> None:
        try:
            variables = os.environ if self._variables is None else self._variables
            self._user = load_configuration(self._mcp_file, variables)
        except ToolFailed as error:
            # A file is often seen half written: what it said before still holds.
            self._user = replace(self._user, warnings=(f"{error.message}; what it said before still holds",))

    def _drop_unused(self) -> None:
        with self._lock:
            offers = list(self._offers.values())
        self._pool.close_others(server.fingerprint for offer in offers for server in offer.list_servers())

    def _ask_due(self) -> None:
        now = time.monotonic()
        with self._lock:
            offers = list(self._offers.values())
        for offer in offers:
            for server in offer.take_due(now):
                threading.Thread(target=self._ask, args=(offer, server), name="upstream-ask", daemon=True).start()

    def _ask(self, offer: Offer, server: Server) -> None:
        try:
            listing = self._list(server, offer.project.root)
        except ToolFailed as failure:
            self._take_failure(offer, server, failure)
        except Exception:
            log.exception("bug while asking an upstream server")
            bug = ToolFailed(f"upstream server {server.name!r}: internal error; see the log", reason="upstream_failed")
            self._take_failure(offer, server, bug)
        else:
            if offer.take_answer(server, listing):
                self._announcements.note_change(offer.project.id)
            self._announcements.report_new(offer.project.id, offer.warnings)
        self._wake.set()

    def _take_failure(self, offer: Offer, server: Server, failure: ToolFailed) -> None:
        if offer.take_failure(server, failure) and not self._closed:
            self._announcements.report(_describe_failure(failure))
        self._wake.set()

    def _list(self, server: Server, root: Path) -> Listing:
        with self._pool.use(server, root) as instance:
            try:
                return instance.list_tools()
            except (ToolFailed, RemoteError, ProtocolError, ConnectionLost) as error:
                raise instance.explain(Phase.LIST, error) from error

    def _note_announcement(self, server: Server, directory: Path) -> None:
        with self._lock:
            offers = list(self._offers.values())
        for offer in offers:
            if _speaks_for(server, directory, offer.project.root):
                offer.note_announcement(server, self._timing.quiet)
        self._wake.set()

    def _report_reaped(self, names: Iterable[str]) -> None:
        for name in names:
            log.info("upstream server %r was not needed and has been ended", name)


def _speaks_for(server: Server, directory: Path, root: Path) -> bool:
    """Whether what an instance says of its tools is what the project publishes: the root's one, or a remote one."""
    return not isinstance(server.reach, Program) or directory == root


def _describe_failure(failure: ToolFailed) -> str:
    lines = str((failure.data or {}).get("stderr", "")).strip().splitlines()
    return f"{failure.message}: {lines[-1].strip()[:300]}" if lines else failure.message
