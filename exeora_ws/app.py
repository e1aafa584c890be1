"""The wiring, once: from the user's places to a core that faces can call."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from exeora_ws.database import Database
from exeora_ws.environment import without_git_routing
from exeora_ws.errors import ExeoraError, InvalidArguments
from exeora_ws.files.patch import recover_patches
from exeora_ws.files.snapshots import Snapshots
from exeora_ws.names import WorkspaceId
from exeora_ws.policy.approvals import APPROVAL_MIGRATIONS, Approvals
from exeora_ws.policy.attendance import Attendance
from exeora_ws.policy.audit import AUDIT_MIGRATIONS, Audit
from exeora_ws.policy.gate import Gate
from exeora_ws.policy.signing import Signer
from exeora_ws.policy.sources import PolicyBook
from exeora_ws.processes.piped import spawn_piped
from exeora_ws.processes.records import (
    PROCESS_MIGRATIONS,
    Records,
    list_live,
    reap_leftovers,
    stop_workspace_everywhere,
)
from exeora_ws.processes.supervisor import Supervisor
from exeora_ws.settings import Places, find_places, load_settings
from exeora_ws.tools.call import AnyTool, Calls
from exeora_ws.tools.catalog import CATALOG
from exeora_ws.tools.gate import CallGate
from exeora_ws.tools.news import CatalogNews
from exeora_ws.tools.services import Services
from exeora_ws.tools.setup_commands import make_line_runner
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.registry import REGISTRY_MIGRATIONS, Registry
from exeora_ws.workspaces.setup import Setup
from exeora_ws.workspaces.sweeper import MODULE as SWEEPER
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
    upkeep: Upkeep
    services: Services
    calls: Calls
    session_closers: tuple[Callable[[str], object], ...] = ()
    """End what lives as long as a conversation: its processes, its snapshots."""
    news: CatalogNews = field(default_factory=CatalogNews)
    """Told by whoever changes what is on offer: a policy file, an upstream server."""

    def close_session(self, session: str) -> None:
        """End what a conversation has started. Every server calls it once for each session."""
        for close in self.session_closers:
            close(session)

    def close(self) -> None:
        """End everything this process has started. A server calls it at its end."""
        self.services.supervisor.close()


def open_app(places: Places | None = None) -> App:
    """Open the core for this user, and settle what a killed process left half done.

    Raises:
        ToolFailed: the database or `config.json` cannot be used.
    """
    where = places or find_places()
    database = Database(where.database, MIGRATIONS)
    supervisor = Supervisor(records=Records(database))

    def stop_processes(workspace: WorkspaceId) -> Sequence[str]:
        return [live.command for live in stop_workspace_everywhere(database, workspace)]

    registry = Registry(database, where)
    inventory = Inventory(
        registry,
        where,
        lambda: load_settings(where).managed_root(where),
        stop_processes,
        free_disk=lambda: start_in_background(SWEEPER, where),
        setup=Setup(registry, make_line_runner(supervisor)),
    )
    upkeep = Upkeep(
        inventory,
        lambda: load_settings(where).trash_bytes,
        lambda: Counter(live.workspace for live in list_live(database)),
    )
    services = Services(
        places=where,
        home=Path(os.path.expanduser("~")),
        settings=lambda: load_settings(where),
        inventory=inventory,
        supervisor=supervisor,
        snapshots=Snapshots(where.snapshots),
        spawn=spawn_piped,
    )
    reap_leftovers(database)
    recover_patches(where.patches, where.locks)
    inventory.recover()
    calls = Calls(CATALOG, services, _open_gate(where, database, services))
    closers = (supervisor.close_session, services.memory.forget)
    return App(where, inventory, upkeep, services, calls, session_closers=closers)


def open_calls(app: App, toolsets: Sequence[str]) -> Calls:
    """Give the way of a call with other tools than the default ones: those of the toolsets, in order.

    None at all is the default toolset.

    Raises:
        InvalidArguments: reason `unknown_toolset`, or `tool_names_collide` when two have different tools of one name.
    """
    catalog = _collect(app, toolsets)
    return Calls(catalog, app.services, app.calls.gate.for_catalog(catalog))


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
    from exeora_ws.toolsets.catalog import ENGINE  # noqa: PLC0415  as in `_collect`
    from exeora_ws.toolsets.engine.calls import PlannedCalls  # noqa: PLC0415
    from exeora_ws.toolsets.engine.plan import load_plan  # noqa: PLC0415

    if ENGINE not in toolsets:
        raise InvalidArguments("a plan is for toolset 'engine'", reason="plan_invalid", hint="add --toolset engine")
    catalog = _collect(app, toolsets)
    gate = app.calls.gate.for_catalog(catalog)
    return PlannedCalls(catalog, app.services, gate, plan=load_plan(file, stage), news=app.news)


def _collect(app: App, toolsets: Sequence[str]) -> dict[str, AnyTool]:
    from exeora_ws.toolsets.catalog import DEFAULT, collect_tools  # noqa: PLC0415  40 ms that few commands need

    collected = collect_tools(toolsets or (DEFAULT,))
    return {**app.calls.catalog, **collected} if DEFAULT in toolsets or not toolsets else collected


def open_calls_with(app: App, tool: str) -> Calls:
    """Give the way of a call to one tool, whatever toolset has it: the default one where it does."""
    if tool in app.calls.catalog:
        return app.calls
    from exeora_ws.toolsets.catalog import find_toolsets_with  # noqa: PLC0415  as in `_collect`

    others = find_toolsets_with(tool)
    return open_calls(app, others[:1]) if others else app.calls


def start_in_background(module: str, places: Places) -> None:
    """Start a module of ours as a process that outlives this one and has none of its descriptors; never fails."""
    from exeora_ws.processes.spawn import DEVNULL, spawn  # noqa: PLC0415  most commands start nothing

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


def _open_gate(places: Places, database: Database, services: Services) -> CallGate:
    attendance = Attendance(places.locks)
    gate = Gate(Approvals(database), attendance, Signer(places.data / "approval.key"))
    return CallGate(gate, PolicyBook(), Audit(database), services, CATALOG)
