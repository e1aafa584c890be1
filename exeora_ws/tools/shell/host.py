"""The host of started commands, as it is started here: it knows which workspaces there are.

A workspace may be removed while a command is started in it: whoever removes it ends what is on record, and what comes
on record later is ended by the host, which looks then.
"""

from exeora_ws.database import Database
from exeora_ws.names import WorkspaceId
from exeora_ws.processes.host import IsThere, main
from exeora_ws.settings import Places
from exeora_ws.workspaces.registry import REGISTRY_MIGRATIONS, Registry

MODULE = "exeora_ws.tools.shell.host"
"""Its name: it is run as a program."""


def make_check(places: Places) -> IsThere:
    """Give what looks into the registry whether a workspace is still one; for any thread."""
    database = Database(places.database, {"registry": REGISTRY_MIGRATIONS})
    registry = Registry(database, places)

    def is_there(workspace: str) -> bool:
        try:
            return registry.find_root(WorkspaceId(workspace)) is not None
        finally:
            database.close()

    return is_there


if __name__ == "__main__":
    main(make_check=make_check)
