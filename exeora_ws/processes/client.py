"""The client of the host: start a command that outlives this process, and come back to it."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from exeora_ws import __version__
from exeora_ws.errors import ToolFailed
from exeora_ws.limits import OUTPUT_WAIT_MAX_MS
from exeora_ws.locks import hold_lock
from exeora_ws.processes import wire
from exeora_ws.processes.command import Command, Killed, Listing, Output, Owner, Started
from exeora_ws.processes.host import LOCK, SOCKET, open_runtime_folder
from exeora_ws.processes.spawn import spawn_detached
from exeora_ws.settings import Places

_START_SECONDS = 20.0
T = TypeVar("T")


class HostClient:
    """Talks to this user's host. Only `start` starts one; without a host there is nothing to list or read.

    Args:
        places: the user's.
        module: what is started as the host; another one knows more than this room does.
    """

    def __init__(self, places: Places, module: str = "exeora_ws.processes.host") -> None:
        self._places = places
        self._module = module

    def start(self, command: Command, owner: Owner) -> Started:
        """Start a command in the host; its session is the host's.

        Raises:
            ToolFailed: reason `host_not_started`, `version_mismatch`, or as `Supervisor.start`.
        """
        body = wire.Start(
            argv=[os.fsencode(word) for word in command.argv],
            line=command.line.encode("utf-8", "replace").decode(),
            cwd=os.fsencode(command.cwd),
            environ=[os.fsencode(f"{name}={value}") for name, value in command.environ.items()],
            umask=_load_umask(),
            project=owner.project,
            workspace=owner.workspace,
        )
        return self._ask(body, Started, start=True)

    def list_started(self, project: str | None = None) -> list[Listing]:
        """List what the host runs or can still show, oldest first; without a host, nothing."""
        try:
            return self._ask(wire.List(project=project), list[Listing])
        except _NoHost:
            return []

    def read(self, process_id: str, cursor: int = 0, *, limit: int = 100_000, wait: float = 0.0) -> Output:
        """Read output; see `Running.read`.

        Raises:
            ToolFailed: reason `unknown_process`.
        """
        return self._ask(wire.Read(id=process_id, cursor=cursor, limit=limit, wait=wait), Output)

    def follow(self, process_id: str, cursor: int = 0) -> Iterator[Output]:
        """Read on until the command has ended and all was read; the last one tells how it ended."""
        while True:
            output = self.read(process_id, cursor, wait=OUTPUT_WAIT_MAX_MS / 1000)
            cursor = output.chunk.next_cursor
            yield output
            if not output.running and not output.chunk.text:
                return

    def send(self, process_id: str, data: bytes, *, end: bool = False) -> int:
        """Write to a command's input; gives how many bytes went in. `end` closes it after that.

        Raises:
            ToolFailed: reason `unknown_process`, `not_running`, `input_closed`.
        """
        return self._ask(wire.Send(id=process_id, data=data, end=end), int)

    def kill(self, process_id: str) -> Killed:
        """End a command with everything it started.

        Raises:
            ToolFailed: reason `unknown_process`, `not_killed`.
        """
        return self._ask(wire.Kill(id=process_id), Killed)

    def _ask(self, body: wire.Body, kind: type[T], *, start: bool = False) -> T:
        request = msgspec.json.encode(wire.Request(protocol=wire.PROTOCOL, version=__version__, body=body))
        try:
            return _talk(self._connect, request, kind)
        except _NoHost:
            if not start:
                raise
        # Under the lock no host leaves, and nobody else starts one.
        with (
            open_runtime_folder(self._places),
            hold_lock(self._places.runtime / LOCK, seconds=_START_SECONDS, what="the start of the host"),
        ):
            try:
                return _talk(self._connect, request, kind)
            except _NoHost:
                _start_host(self._module)
            return _talk(self._connect, request, kind)

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with open_runtime_folder(self._places) as folder:
                connection.connect(wire.make_address(folder, SOCKET, self._places.runtime))
            wire.require_same_user(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class _NoHost(ToolFailed):
    """Nobody answers: nothing was asked for, so asking again is safe."""

    def __init__(self) -> None:
        super().__init__("there is no such process", reason="unknown_process", hint="exeora ps")


def _talk(connect: Callable[[], socket.socket], request: bytes, kind: type[T]) -> T:
    try:
        with connect() as connection:
            wire.send_frame(connection, request)
            frame = wire.receive_frame(connection)
    except (FileNotFoundError, ConnectionError) as error:
        raise _NoHost from error
    if frame is None:
        raise _NoHost
    return msgspec.json.decode(wire.parse_reply(frame).result, type=kind)


def _start_host(module: str) -> None:
    reading, writing = os.pipe()
    try:
        spawn_detached(
            [sys.executable, "-P", "-m", module, "--ready", str(writing)],
            environ=dict(os.environ),
            pass_fds=[writing],
        )
        os.close(writing)
        writing = -1
        said = b""
        while block := os.read(reading, 4096):
            said += block
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
    if said != b"ready":
        raise _parse_failure(said)


def _parse_failure(said: bytes) -> ToolFailed:
    try:
        message = str(msgspec.json.decode(said, type=dict)["message"])
    except (msgspec.MsgspecError, KeyError):
        message = "it ended before it was ready"
    return ToolFailed(f"the host for started commands cannot be started: {message}", reason="host_not_started")


def _load_umask() -> int:
    """Give the umask; the only way to read it is to set it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
