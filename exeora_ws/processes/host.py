"""The host: keeps what `exeora start` started, so that it outlives the shell. One for each user, on a private socket.

It is started by the first command that needs it and leaves when nothing runs in it and nothing that has ended can
still be read. It is the same supervisor as everywhere, behind a socket.
"""

import argparse
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from exeora_ws import __version__
from exeora_ws.database import Database
from exeora_ws.errors import ExeoraError, InternalError, ToolFailed
from exeora_ws.locks import try_lock
from exeora_ws.processes import wire
from exeora_ws.processes.command import Command, Owner
from exeora_ws.processes.records import Records, reap_leftovers
from exeora_ws.processes.running import Running
from exeora_ws.processes.schema import PROCESS_MIGRATIONS
from exeora_ws.processes.supervisor import Supervisor
from exeora_ws.processes.table import TAG_VARIABLE
from exeora_ws.settings import Places, find_places
from exeora_ws.storage import make_private_folder

SOCKET = "host.sock"
LOCK = "host.lock"

IsThere = Callable[[str], bool]
"""Whether a workspace, by its id, is still one."""

_SESSION = "host"
_IDLE_SECONDS = 1.0
_BACKLOG = 64
_LOG = logging.getLogger("exeora")


@contextmanager
def open_runtime_folder(places: Places) -> Iterator[int]:
    """Open the folder of the socket, which must be ours alone.

    Raises:
        ToolFailed: reason `runtime_folder_unsafe`.
    """
    make_private_folder(places.runtime)
    descriptor = os.open(places.runtime, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ToolFailed(
                "the runtime folder is open to others: it must be yours and 0700", reason="runtime_folder_unsafe"
            )
        yield descriptor
    finally:
        os.close(descriptor)


class Host:
    """Answers requests over one supervisor. Each connection has a thread, each may wait as long as it likes."""

    def __init__(self, supervisor: Supervisor, database: Database) -> None:
        self._supervisor = supervisor
        self._database = database
        self._connections = 0
        self._lock = threading.Lock()

    @property
    def idle(self) -> bool:
        """Whether nobody needs it."""
        with self._lock:
            return self._connections == 0 and self._supervisor.idle

    def take(self, connection: socket.socket) -> None:
        """Serve a connection in a thread of its own."""
        with self._lock:
            self._connections += 1
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            # A connection that breaks off, or is somebody else's, ends here: there is nobody to tell.
            with connection, suppress(OSError, ToolFailed):
                wire.require_same_user(connection)
                while (frame := wire.receive_frame(connection)) is not None:
                    wire.send_frame(connection, msgspec.json.encode(self._answer(frame)))
        finally:
            self._database.close()
            with self._lock:
                self._connections -= 1

    def _answer(self, frame: bytes) -> wire.Reply:
        try:
            result = self._do(wire.parse_request(frame).body)
        except ExeoraError as error:
            return wire.Reply(version=__version__, pid=os.getpid(), error=error.to_dict())
        except Exception:  # noqa: BLE001 - a bug in one request is told and logged; the host keeps what it runs
            _LOG.exception("a request to the host failed")
            bug = InternalError("the host failed; see the log")
            return wire.Reply(version=__version__, pid=os.getpid(), error=bug.to_dict())
        return wire.Reply(version=__version__, pid=os.getpid(), result=msgspec.Raw(msgspec.json.encode(result)))

    def _do(self, body: wire.Body) -> Any:
        match body:
            case wire.Start():
                owner = Owner(body.project, body.workspace, _SESSION)
                return self._supervisor.start(_parse_command(body), owner)
            case wire.List():
                return self._supervisor.list_started(body.project)
            case wire.Read():
                return self._require(body.id).read(body.cursor, limit=body.limit, wait=body.wait)
            case wire.Send():
                running = self._require(body.id)
                count = running.send(body.data) if body.data else 0
                if body.end:
                    _end_input(running, after_data=bool(body.data))
                return count
            case wire.Kill():
                return self._supervisor.kill(body.id, self._require(body.id).owner)

    def _require(self, process_id: str) -> Running:
        """A person may name any of their commands, wherever it runs."""
        owners = (each.owner for each in self._supervisor.list_started() if each.id == process_id)
        return self._supervisor.require(process_id, next(owners, Owner("", "", "")))


def _end_input(running: Running, *, after_data: bool) -> None:
    try:
        running.end_input()
    except ToolFailed:
        # What was just written may have been what it waited for to end.
        if not after_data:
            raise


def _parse_command(body: wire.Start) -> Command:
    pairs = (os.fsdecode(pair).partition("=") for pair in body.environ)
    # The command is the host's from now on: the end of the one it was started from is not its end.
    environ = {name: value for name, _, value in pairs if name != TAG_VARIABLE}
    argv = tuple(os.fsdecode(word) for word in body.argv)
    return Command(argv, body.line, os.fsdecode(body.cwd), environ, umask=body.umask)


def serve(
    places: Places, on_ready: Callable[[], None] = lambda: None, is_there: IsThere = lambda _workspace: True
) -> None:
    """Be the host until nobody needs one, or until TERM. Whoever starts it holds the lock beside the socket.

    Args:
        places: the user's.
        on_ready: called as soon as it listens.
        is_there: whether a workspace is still one; see `Supervisor`.
    """
    database = Database(places.database, {"processes": PROCESS_MIGRATIONS})
    reap_leftovers(database)
    supervisor = Supervisor(records=Records(database), is_there=is_there)
    with open_runtime_folder(places) as folder, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with suppress(FileNotFoundError):
            os.unlink(SOCKET, dir_fd=folder)
        listener.bind(wire.make_address(folder, SOCKET, places.runtime))
        listener.listen(_BACKLOG)
        listener.settimeout(_IDLE_SECONDS)
        on_ready()
        try:
            _accept(listener, Host(supervisor, database), folder, places.runtime)
        finally:
            supervisor.close()


def _accept(listener: socket.socket, host: Host, folder: int, runtime: Path) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            if host.idle and _leave(listener, folder, runtime):
                return
            continue
        connection.setblocking(True)
        host.take(connection)


def _leave(listener: socket.socket, folder: int, runtime: Path) -> bool:
    """Stop listening, unless somebody is just about to start a host. Who connected and was not taken tries again."""
    with try_lock(runtime / LOCK) as had:
        if had:
            with suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=folder)
            listener.close()
        return had


class _Terminated(BaseException):
    """TERM came: end everything."""


def _terminate(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Terminated


def main(words: Sequence[str] | None = None, make_check: Callable[[Places], IsThere] | None = None) -> None:
    """Become the host: `python -m MODULE --ready DESCRIPTOR`.

    Args:
        words: the arguments; this process's when None.
        make_check: gives what tells whether a workspace is still one.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--ready", type=int, required=True)
    ready: int = parser.parse_args(words).ready
    # Our parent collects the first process at once; the second is nobody's child and leads no session.
    if os.fork():
        os._exit(0)
    os.chdir("/")
    signal.signal(signal.SIGTERM, _terminate)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    def tell_ready() -> None:
        os.write(ready, b"ready")
        os.close(ready)

    with suppress(_Terminated):
        try:
            places = find_places()
            logging.basicConfig(filename=make_private_folder(places.data) / places.log.name)
            serve(places, tell_ready, *([make_check(places)] if make_check is not None else []))
        except ExeoraError as error:
            # Before it was ready: the starter reads why.
            with suppress(OSError):
                os.write(ready, msgspec.json.encode(error.to_dict()))
            raise SystemExit(1) from error


if __name__ == "__main__":
    main()
