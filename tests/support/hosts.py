"""The host of started commands, found and ended by tests."""

import os
import signal
import socket

import msgspec
from exeora_ws.processes import wire
from exeora_ws.processes.host import SOCKET, open_runtime_folder

from support.processes import all_gone, eventually


def find_host(places):
    """The pid of the running host, by asking its socket; None without one."""
    try:
        with socket.socket(socket.AF_UNIX) as connection, open_runtime_folder(places) as folder:
            connection.connect(wire.make_address(folder, SOCKET, places.runtime))
            body = wire.Request(protocol=wire.PROTOCOL, version="test", body=wire.List())
            wire.send_frame(connection, msgspec.json.encode(body))
            return msgspec.json.decode(wire.receive_frame(connection), type=wire.Reply).pid
    except (OSError, TypeError):
        return None


def end_host(places):
    pid = find_host(places)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        assert eventually(lambda: all_gone([pid]), 10)
