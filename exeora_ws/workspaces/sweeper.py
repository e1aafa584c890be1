"""Free the disk after a removal: `python -m exeora_ws.workspaces.sweeper`, started in the background.

It survives the command that started it. If it is killed, what it left is swept the next time.
"""

import time

from exeora_ws.database import Database
from exeora_ws.locks import try_lock
from exeora_ws.settings import find_places, load_settings
from exeora_ws.workspaces import trash
from exeora_ws.workspaces.clearing import clear_tree
from exeora_ws.workspaces.inventory import name_lock
from exeora_ws.workspaces.registry import REGISTRY_MIGRATIONS, Registry

MODULE = "exeora_ws.workspaces.sweeper"


def main() -> None:
    """Sweep the trash of this user once, unless somebody is at it."""
    places = find_places()
    most = load_settings(places).trash_bytes
    registry = Registry(Database(places.database, {"registry": REGISTRY_MIGRATIONS}), places)
    with try_lock(places.locks / "sweeper.lock") as had:
        if had:
            trash.sweep(
                registry,
                lambda common: name_lock(places, common),
                now=time.time(),
                most_bytes=most,
                delete=clear_tree,
            )


if __name__ == "__main__":
    main()
