"""The wiring, once: from the user's places to a core that faces can call."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exeora_ws.database import Database
from exeora_ws.names import WorkspaceId
from exeora_ws.settings import Places, find_places, load_settings
from exeora_ws.tools.call import ApprovedCall, Caller, Calls, ParsedCall
from exeora_ws.tools.catalog import CATALOG
from exeora_ws.tools.news import CatalogNews
from exeora_ws.tools.services import Services
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.registry import REGISTRY_MIGRATIONS, Registry


@dataclass(frozen=True, slots=True)
class App:
    """The core, ready to take calls."""

    places: Places
    inventory: Inventory
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


def open_app(places: Places | None = None) -> App:
    """Open the core for this user, and settle what a killed process left half done.

    Raises:
        ToolFailed: the database or `config.json` cannot be used.
    """
    where = places or find_places()
    database = Database(where.database, {"registry": REGISTRY_MIGRATIONS})
    inventory = Inventory(
        Registry(database, where), where, lambda: load_settings(where).managed_root(where), _stop_processes
    )
    services = Services(
        places=where, home=Path(os.path.expanduser("~")), settings=lambda: load_settings(where), inventory=inventory
    )
    inventory.recover()
    return App(where, inventory, services, Calls(CATALOG, services, _pass))


def _stop_processes(_workspace: WorkspaceId) -> Sequence[str]:
    return ()


def _pass(parsed: ParsedCall, _caller: Caller) -> ApprovedCall:
    return ApprovedCall(parsed, None)
