"""The wiring, once: from the user's places to a core that faces can call."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exeora_ws.database import Database
from exeora_ws.environment import without_git_routing
from exeora_ws.errors import ExeoraError, InvalidArguments
from exeora_ws.late import Late
from exeora_ws.names import ProjectId, WorkspaceId
from exeora_ws.policy.approvals import APPROVAL_MIGRATIONS, Approvals
from exeora_ws.policy.attendance import Attendance
from exeora_ws.policy.audit import AUDIT_MIGRATIONS, Audit
from exeora_ws.policy.gate import Gate
from exeora_ws.policy.signing import Signer
from exeora_ws.policy.sources import PolicyBook
from exeora_ws.processes.schema import PROCESS_MIGRATIONS, has_servers
from exeora_ws.settings import Places, SettingsFile, find_places, load_settings
from exeora_ws.tools.call import AnyTool, Calls
from exeora_ws.tools.catalog import CATALOG, DEFAULT
from exeora_ws.tools.gate import CallGate
from exeora_ws.tools.news import CatalogNews
from exeora_ws.tools.services import Services
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.place import Project
from exeora_ws.workspaces.registry import REGISTRY_MIGRATIONS, Registry

if TYPE_CHECKING:  # what is made late is imported late
    from exeora_ws.files.snapshots import Snapshots
    from exeora_ws.processes.piped import PipedChild
    from exeora_ws.processes.records import Records
    from exeora_ws.processes.supervisor import Supervisor
    from exeora_ws.upstream.instance import Surroundings
    from exeora_ws.upstream.upstreams import Upstreams
    from exeora_ws.workspaces.overview import Overview
    from exeora_ws.workspaces.remove import Removal
    from exeora_ws.workspaces.setup import Prepared, RunLine, Setup
    from exeora_ws.workspaces.upkeep import Upkeep

MIGRATIONS = {
    "registry": REGISTRY_MIGRATIONS,
    "processes": PROCESS_MIGRATIONS,
    "approvals": APPROVAL_MIGRATIONS,
    "audit": AUDIT_MIGRATIONS,
}
"""The tables of the database, room by room."""


@dataclass(frozen=True, slots=True)
class App:
    """The core, ready to take calls."""

    places: Places
    inventory: Inventory
    late_upkeep: "Late[Upkeep]"
    services: Services
    calls: Calls
    session_closers: tuple[Callable[[str], object], ...] = ()
    """End what lives as long as a conversation: its processes, its snapshots."""
    news: CatalogNews = field(default_factory=CatalogNews)
    """Told by whoever changes what is on offer: a policy file, an upstream server."""
    upstreams: "LateUpstreams" = field(kw_only=True)
    """The upstream servers; opened by the first call or listing that may concern one."""
    approvals: Approvals = field(kw_only=True)
    """The questions that wait for a person."""
    attendance: Attendance = field(kw_only=True)
    """Who is there to answer them."""

    @property
    def upkeep(self) -> "Upkeep":
        """What people do with workspaces beside the tools."""
        return self.late_upkeep()

    def look_at_all(self, project: Project) -> "Iterator[Overview]":
        """The state of every workspace, without loading the rest of upkeep; see `overview.look_at_all`."""
        from exeora_ws.workspaces import overview

        return overview.look_at_all(self.inventory.registry, project, lambda: _count_processes(self.services.database))

    def close_session(self, session: str) -> None:
        """End what a conversation has started. Every server calls it once for each session."""
        for close in self.session_closers:
            close(session)

    def end_upstreams(self) -> None:
        """End the upstream servers, for good."""
        self.upstreams.close()

    def close(self) -> None:
        """End everything this process has started. A server calls it at its end."""
        self.upstreams.close()
        supervisor = self.services.late_supervisor.made
        if supervisor is not None:
            supervisor.close()

    def stay(self) -> None:
        """Prepare for a long life: load what makes each of a server's many calls cheaper (100 ms, once)."""
        from exeora_ws.git.opening import load_libgit2

        load_libgit2()
        # From now on there is one to be closed, also when nothing has been started yet.
        self.services.late_supervisor()


class LateUpstreams:
    """The upstream servers, opened when they are first asked for: most commands never do."""

    def __init__(self, places: Places, records: "Late[Records]", news: CatalogNews) -> None:
        self._places = places
        self._records = records
        self._news = news
        self._lock = threading.Lock()
        self._opened: Upstreams | None = None
        self._report: Callable[[str], None] | None = None

    def __call__(self) -> "Upstreams":
        """Give them, opened."""
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def report_to(self, report: Callable[[str], None]) -> None:
        """Have each warning and each first failure told, as one line without secrets, in any thread."""
        self._report = report

    def surroundings(self) -> "Surroundings":
        """Give what servers are started with; from then on a start after our death ends what they leave behind."""
        from exeora_ws.processes.environment import without_secrets
        from exeora_ws.processes.piped import spawn_piped
        from exeora_ws.upstream.instance import Surroundings  # 80 ms that few commands need

        self._records().announce()
        return Surroundings(partial(spawn_piped, writable_stdin=True), lambda: without_secrets(os.environ))

    def stop_directory(self, directory: Path) -> list[str]:
        """End what runs in a workspace that goes; names the servers."""
        return self._opened.stop_directory(directory) if self._opened is not None else []

    def close(self) -> None:
        """End all of them."""
        if self._opened is not None:
            self._opened.close()

    def _open(self) -> "Upstreams":
        from exeora_ws.upstream.upstreams import Upstreams  # 80 ms that few commands need

        budget = load_settings(self._places).name_budget
        opened = Upstreams(self._places.mcp_file, self.surroundings(), budget=budget, report=self._tell)
        opened.on_change(lambda _project: self._news.tell())
        return opened

    def _tell(self, line: str) -> None:
        if self._report is not None:
            self._report(line)


def open_app(places: Places | None = None) -> App:
    """Open the core for this user, and settle what a killed process left half done.

    Raises:
        ToolFailed: the database or `config.json` cannot be used.
    """
    where = places or find_places()
    database = Database(where.database, MIGRATIONS)
    registry, news, records = Registry(database, where), CatalogNews(), Late(lambda: _open_records(database))
    upstreams = LateUpstreams(where, records, news)
    supervisor = Late(lambda: _open_supervisor(registry, records))
    settings = SettingsFile(where)
    inventory = Inventory(
        registry,
        where,
        lambda: settings.load().managed_root(where),
        lambda workspace: _stop_workspace(database, registry, upstreams, workspace),
        free_disk=lambda: _free_disk(where),
        setup=Late(lambda: _open_setup(registry, supervisor)),
    )
    services = Services(
        places=where,
        database=database,
        home=Path(os.path.expanduser("~")),
        settings=settings.load,
        inventory=inventory,
        late_supervisor=supervisor,
        late_snapshots=Late(lambda: _open_snapshots(where)),
        spawn=_spawn,
    )
    _settle(where, database, inventory)
    approvals, attendance = Approvals(database), Attendance(where.locks)
    gate = Gate(approvals, attendance, Signer(where.data / "approval.key"))
    calls = Calls(CATALOG, services, CallGate(gate, PolicyBook(), Audit(database), services, CATALOG), upstreams)
    return App(
        where,
        inventory,
        Late(lambda: _open_upkeep(where, database, inventory)),
        services,
        calls,
        session_closers=(lambda session: supervisor().close_session(session), services.memory.forget),
        news=news,
        upstreams=upstreams,
        approvals=approvals,
        attendance=attendance,
    )


def _settle(places: Places, database: Database, inventory: Inventory) -> None:
    """Settle what killed processes have left; with nothing left it takes two queries and a look into a folder."""
    if has_servers(database):
        from exeora_ws.processes.records import reap_leftovers

        reap_leftovers(database)
    with suppress(FileNotFoundError):
        if os.listdir(places.patches):
            from exeora_ws.files.patch import recover_patches

            recover_patches(places.patches, places.locks)
    inventory.recover()


def _open_records(database: Database) -> "Records":
    from exeora_ws.processes.records import Records

    return Records(database)


def _open_supervisor(registry: Registry, records: "Late[Records]") -> "Supervisor":
    from exeora_ws.processes.supervisor import Supervisor

    return Supervisor(
        records=records(), is_there=lambda workspace: registry.find_root(WorkspaceId(workspace)) is not None
    )


def _open_setup(registry: Registry, supervisor: "Late[Supervisor]") -> "Setup":
    from exeora_ws.workspaces.setup import Setup

    def make_runner() -> "RunLine":
        from exeora_ws.tools.setup_commands import make_line_runner

        return make_line_runner(supervisor)

    runner = Late(make_runner)
    return Setup(registry, lambda *given: runner()(*given))  # noqa: PLW0108  not before a set-up runs something


def _open_snapshots(places: Places) -> "Snapshots":
    from exeora_ws.files.snapshots import Snapshots

    return Snapshots(places.snapshots)


def _open_upkeep(places: Places, database: Database, inventory: Inventory) -> "Upkeep":
    from exeora_ws.workspaces.upkeep import Upkeep

    return Upkeep(inventory, lambda: load_settings(places).trash_bytes, lambda: _count_processes(database))


def _count_processes(database: Database) -> Counter[str]:
    from exeora_ws.processes.records import list_live

    return Counter(live.workspace for live in list_live(database))


def _spawn(*arguments: Any, **options: Any) -> "PipedChild":
    from exeora_ws.processes.piped import spawn_piped

    return spawn_piped(*arguments, **options)


def _stop_workspace(
    database: Database, registry: Registry, upstreams: LateUpstreams, workspace: WorkspaceId
) -> Sequence[str]:
    """End what runs in a workspace, whoever started it; names it."""
    from exeora_ws.processes.records import stop_workspace_everywhere

    commands = [live.command for live in stop_workspace_everywhere(database, workspace)]
    root = registry.find_root(workspace)
    return commands + (upstreams.stop_directory(root) if root is not None else [])


def _free_disk(places: Places) -> None:
    from exeora_ws.workspaces.sweeper import MODULE

    start_in_background(MODULE, places)


def open_calls(app: App, toolsets: Sequence[str]) -> Calls:
    """Give the way of a call with other tools than the default ones: those of the toolsets, in order.

    None at all is the default toolset.

    Raises:
        InvalidArguments: reason `unknown_toolset`, or `tool_names_collide` when two have different tools of one name.
    """
    catalog = _collect(app, toolsets)
    proxies = app.upstreams if DEFAULT in (toolsets or (DEFAULT,)) else None
    return Calls(catalog, app.services, app.calls.gate.for_catalog(catalog), proxies)


def open_planned_calls(app: App, toolsets: Sequence[str], file: Path, stage: str | None) -> Calls:
    """Give the way of a call in one turn of a plan, for a server with one conversation.

    Args:
        app: the core.
        toolsets: as for `open_calls`; `engine` among them.
        file: the plan.
        stage: whose turn it is; None takes what the plan says.

    Raises:
        InvalidArguments: reason `plan_invalid`, or as `open_calls`.
    """
    from exeora_ws.toolsets.catalog import ENGINE
    from exeora_ws.toolsets.engine.calls import PlannedCalls
    from exeora_ws.toolsets.engine.plan import load_plan

    if ENGINE not in toolsets:
        raise InvalidArguments("a plan is for toolset 'engine'", reason="plan_invalid", hint="add --toolset engine")
    catalog = _collect(app, toolsets)
    gate = app.calls.gate.for_catalog(catalog)
    return PlannedCalls(catalog, app.services, gate, plan=load_plan(file, stage), news=app.news)


def _collect(app: App, toolsets: Sequence[str]) -> dict[str, AnyTool]:
    from exeora_ws.toolsets.catalog import collect_tools  # 40 ms that few commands need

    collected = collect_tools(toolsets or (DEFAULT,))
    return {**app.calls.catalog, **collected} if DEFAULT in toolsets or not toolsets else collected


def open_agentexec(app: App, folder: Path, level: str) -> tuple[Calls, ProjectId]:
    """Give the way of a call to agentexec's tools in one folder, and the project that it is in.

    A folder that is no project's yet becomes one; a worktree that is not connected is attached.

    Raises:
        InvalidArguments: reason `unknown_level`, `missing_folder`.
        ToolFailed: the folder can be no workspace's root.
    """
    from exeora_ws.toolsets.anchor import AnchoredCalls, find_anchor
    from exeora_ws.toolsets.catalog import LEVELS, collect_tools

    if level not in LEVELS:
        raise InvalidArguments(
            f"there is no level {level!r}", reason="unknown_level", hint=f"levels: {', '.join(LEVELS)}"
        )
    catalog = collect_tools([LEVELS[level]])
    place = find_anchor(app.inventory, folder)
    gate = app.calls.gate.for_catalog(catalog)
    return AnchoredCalls(catalog, app.services, gate, place=place), place.project.id


def open_calls_with(app: App, tool: str) -> Calls:
    """Give the way of a call to one tool, whatever toolset has it: the default one where it does."""
    if tool in app.calls.catalog:
        return app.calls
    from exeora_ws.toolsets.catalog import find_toolsets_with

    others = find_toolsets_with(tool)
    return open_calls(app, others[:1]) if others else app.calls


def describe_setup(prepared: "Prepared") -> dict[str, Any]:
    """Give what was done to make a workspace ready as the tools' results show it, for commands that are no tools."""
    from exeora_ws.tools.workspaces import show_setup

    shown: dict[str, Any] = msgspec.to_builtins(show_setup(prepared))
    return shown


def describe_removal(removal: "Removal") -> dict[str, Any]:
    """Give a removal as the tools' results show it."""
    from exeora_ws.tools.workspaces import show_removal

    shown: dict[str, Any] = msgspec.to_builtins(show_removal(removal))
    return shown


def start_in_background(module: str, places: Places) -> None:
    """Start a module of ours as a process that outlives this one and has none of its descriptors; never fails."""
    from exeora_ws.processes.spawn import DEVNULL, spawn

    above = str(Path(__file__).parents[1])
    environ = {
        **without_git_routing(os.environ),
        "EXEORA_DATA_DIR": str(places.data),
        "EXEORA_CONFIG_PATH": str(places.config_file),
        "PYTHONPATH": os.pathsep.join(filter(None, (above, os.environ.get("PYTHONPATH")))),
    }
    with suppress(ExeoraError):
        child = spawn(
            [sys.executable, "-m", module], cwd="/", environ=environ, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
        # Somebody has to take its exit code where this process stays.
        threading.Thread(target=child.wait, name="sweeper", daemon=True).start()
