"""What a tool's function may ask for: the core, wired once in `app.py`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from exeora_ws.database import Database
from exeora_ws.late import Late
from exeora_ws.settings import Places, Settings
from exeora_ws.tools.memory import SessionMemory
from exeora_ws.workspaces.inventory import Inventory

if TYPE_CHECKING:  # what is made late is imported late
    from exeora_ws.files.ripgrep import Spawn
    from exeora_ws.files.snapshots import Snapshots
    from exeora_ws.processes.supervisor import Supervisor


@dataclass(frozen=True)
class Services:
    """The rooms of the core, as one value."""

    places: Places
    database: Database
    """Registry, record of calls, live processes."""
    home: Path
    """The user's home folder: `~/.agents` is read from here."""
    settings: Callable[[], Settings]
    """Gives the settings as they are now."""
    inventory: Inventory
    late_supervisor: "Late[Supervisor]"
    late_snapshots: "Late[Snapshots]"
    spawn: "Spawn"
    """Starts a helper program, ripgrep, on pipes."""
    memory: SessionMemory = field(default_factory=SessionMemory)
    """What tools remember of each conversation."""

    @property
    def supervisor(self) -> "Supervisor":
        """Every running command of this process."""
        return self.late_supervisor()

    @property
    def snapshots(self) -> "Snapshots":
        """What files held before a session first wrote them."""
        return self.late_snapshots()
