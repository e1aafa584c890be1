"""Ports of a workspace: reserved in the registry, tried on the machine, the same for as long as the workspace is known.

A removed workspace keeps its ports until it is deleted for good, so that restoring it brings them back too.
"""

import hashlib
import socket
import sqlite3
from collections.abc import Mapping
from contextlib import closing

from exeora_ws.errors import ToolFailed
from exeora_ws.limits import PORT_FIRST, PORT_LAST
from exeora_ws.workspaces.place import Workspace
from exeora_ws.workspaces.registry import Registry

_COUNT = PORT_LAST - PORT_FIRST + 1


def reserve_ports(registry: Registry, workspace: Workspace, wanted: Mapping[str, int | None]) -> dict[str, int]:
    """Give the workspace's port for each name, reserving what it does not have yet.

    Args:
        registry: where they are reserved.
        workspace: whose they are.
        wanted: names, and the port that main gets if it is free.

    Raises:
        ToolFailed: reason `no_port`, when every port of the range is taken.
    """
    with registry.database.read() as connection:
        known = _load(connection, workspace)
    if all(name in known for name in wanted):
        return {name: known[name] for name in wanted}
    with registry.database.write() as connection:
        known = _load(connection, workspace)
        taken = {int(row[0]) for row in connection.execute("SELECT port FROM ports")}
        for name, preferred in wanted.items():
            if name not in known:
                known[name] = _choose(workspace, name, preferred if workspace.main else None, taken)
                taken.add(known[name])
                connection.execute("INSERT INTO ports VALUES (?, ?, ?)", (known[name], workspace.id, name))
    return {name: known[name] for name in wanted}


def release_ports(connection: sqlite3.Connection, workspace_id: str) -> None:
    """Let go of a workspace's ports."""
    connection.execute("DELETE FROM ports WHERE workspace_id = ?", (workspace_id,))


def _load(connection: sqlite3.Connection, workspace: Workspace) -> dict[str, int]:
    rows = connection.execute("SELECT name, port FROM ports WHERE workspace_id = ?", (workspace.id,))
    return {str(name): int(port) for name, port in rows}


def _choose(workspace: Workspace, name: str, preferred: int | None, taken: set[int]) -> int:
    if preferred is not None and preferred not in taken:
        return preferred
    digest = hashlib.sha256(f"{workspace.id} {name}".encode()).digest()
    first = int.from_bytes(digest[:4])
    for step in range(_COUNT):
        port = PORT_FIRST + (first + step) % _COUNT
        if port not in taken and _is_free(port):
            return port
    raise ToolFailed(f"every port from {PORT_FIRST} to {PORT_LAST} is taken", reason="no_port")


def _is_free(port: int) -> bool:
    """Whether nobody on this machine has it, over IPv4 and, where there is one, IPv6."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104  tried, never listened on
        try:
            with closing(socket.socket(family, socket.SOCK_STREAM)) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                tried.bind((address, port))
        except OSError:
            if family == socket.AF_INET:
                return False
    return True
