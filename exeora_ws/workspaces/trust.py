"""Which set-up commands a person has agreed to, by their exact content: one changed character needs a new agreement."""

import os
import time
from collections.abc import Iterator, Mapping

from exeora_ws.errors import Forbidden
from exeora_ws.names import ProjectId
from exeora_ws.processes.table import TAG_VARIABLE, find_entry, find_variable
from exeora_ws.workspaces.registry import Registry

_UNTAGGED = "-"


def is_trusted(registry: Registry, project_id: ProjectId, digest: str) -> bool:
    """Whether exactly this content was agreed to for this project."""
    with registry.database.read() as connection:
        row = connection.execute(
            "SELECT 1 FROM trusted WHERE project_id = ? AND digest = ?", (project_id, digest)
        ).fetchone()
    return row is not None


def trust(registry: Registry, project_id: ProjectId, digest: str, *, environ: Mapping[str, str] | None = None) -> None:
    """Record a person's agreement.

    Raises:
        Forbidden: reason `agent_cannot_trust`, inside a command that exeora runs for somebody.
    """
    if is_inside_command(os.environ if environ is None else environ):
        raise Forbidden(
            "set-up commands are trusted by a person, not from inside a command",
            reason="agent_cannot_trust",
            hint="exeora trust, in a terminal of your own",
        )
    with registry.database.write() as connection:
        connection.execute("INSERT OR REPLACE INTO trusted VALUES (?, ?, ?)", (project_id, digest, time.time()))


def revoke(registry: Registry, project_id: ProjectId) -> int:
    """Take back every agreement of a project; gives how many there were."""
    with registry.database.write() as connection:
        return connection.execute("DELETE FROM trusted WHERE project_id = ?", (project_id,)).rowcount


def is_inside_command(environ: Mapping[str, str]) -> bool:
    """Whether this process runs inside a command that exeora started: those carry a tag.

    Also when the tag was taken out of this process's environment on the way: what started it still has it. It is no
    wall against a program that means to get around it, which could write into the user's files as well.
    """
    return environ.get(TAG_VARIABLE, _UNTAGGED) != _UNTAGGED or any(map(_is_tagged, _list_ancestors()))


def _list_ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 1:
        yield pid
        entry = find_entry(pid)
        pid = 0 if entry is None else entry.parent


def _is_tagged(pid: int) -> bool:
    return (find_variable(pid, TAG_VARIABLE) or _UNTAGGED) != _UNTAGGED
