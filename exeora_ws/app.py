"""The wiring, once: from the user's places to a core that faces can call."""

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.database import Database
from exeora_ws.environment import without_git_routing
from exeora_ws.errors import ExeoraError
from exeora_ws.names import WorkspaceId
from exeora_ws.settings import Places, find_places, load_settings
from exeora_ws.tools.call import ApprovedCall, Caller, Calls, ParsedCall
from exeora_ws.tools.catalog import CATALOG
from exeora_ws.tools.services import Services
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.registry import REGISTRY_MIGRATIONS, Registry
from exeora_ws.workspaces.sweeper import MODULE as SWEEPER
from exeora_ws.workspaces.upkeep import Upkeep


@dataclass(frozen=True, slots=True)
class App:
    """The core, ready to take calls."""

    places: Places
    inventory: Inventory
    upkeep: Upkeep
    services: Services
    calls: Calls


def open_app(places: Places | None = None) -> App:
    """Open the core for this user, and settle what a killed process left half done.

    Raises:
        ToolFailed: the database or `config.json` cannot be used.
    """
    where = places or find_places()
    database = Database(where.database, {"registry": REGISTRY_MIGRATIONS})
    inventory = Inventory(
        Registry(database, where),
        where,
        lambda: load_settings(where).managed_root(where),
        _stop_processes,
        lambda: start_in_background(SWEEPER, where),
    )
    upkeep = Upkeep(inventory, lambda: load_settings(where).trash_bytes)
    services = Services(
        places=where, home=Path(os.path.expanduser("~")), settings=lambda: load_settings(where), inventory=inventory
    )
    inventory.recover()
    return App(where, inventory, upkeep, services, Calls(CATALOG, services, _pass))


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


def _stop_processes(_workspace: WorkspaceId) -> Sequence[str]:
    return ()


def _pass(parsed: ParsedCall, _caller: Caller) -> ApprovedCall:
    return ApprovedCall(parsed, None)
