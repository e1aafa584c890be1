"""A nats-server of our own, as a child process: started, awaited, ended, and not left behind.

It holds a lock in its folder as long as it lives, by a descriptor that it inherits, so no second one is started over
the same store. On Linux the kernel ends it with us, also after SIGKILL; elsewhere, and should that fail, the next start
ends it.
"""

import fcntl
import json
import os
import re
import select
import shutil
import sys
import sysconfig
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.fleet import INSTALL
from exeora_ws.fleet.credentials import Keys
from exeora_ws.fleet.server_config import ServerOptions, describe_server, write_config
from exeora_ws.processes.ending import end_tree
from exeora_ws.processes.environment import without_secrets
from exeora_ws.processes.spawn import DEVNULL, PIPE, Child, spawn
from exeora_ws.processes.table import LINUX, Identity, is_running, require_entry
from exeora_ws.processes.tree import Tree
from exeora_ws.storage import make_private_folder, replace_file

PROGRAM = "nats-server"
_READY_SECONDS = 30.0
_LOCK_SECONDS = 10.0
_LOG_BYTES = 5_000_000
_LISTENING = re.compile(rb"Listening for client connections on .*:(\d+)")
_READY = b"Server is ready"
_FAULTS = re.compile(rb"\[(?:FTL|ERR)\] (.*)|^nats-server: (.*)")

_DIE_WITH_PARENT = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 15)\n"
    "os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])\n"
)
"""Asks the kernel for SIGTERM when the thread that started it ends, and becomes the server."""


class NatsServer:
    """A running server. Made by `start_server`."""

    def __init__(self, options: ServerOptions, lock: int) -> None:
        self.options = options
        self.port = 0
        self._lock = lock
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._fault = ""
        self._failure: Exception | None = None
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """Where clients on this host reach it."""
        host = "127.0.0.1" if self.options.host in ("0.0.0.0", "::") else self.options.host  # noqa: S104  compared only
        return f"{self.options.scheme}://{host}:{self.port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return 0 if self._child is None else self._child.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self._ended.is_set()

    def wait_for_end(self, seconds: float) -> bool:
        """Wait at most `seconds`; True when it has ended."""
        return self._ended.wait(seconds)

    def close(self) -> None:
        """End it: TERM, then KILL after two seconds. A second time does nothing."""
        if self._child is not None and not self._ended.is_set():
            end_tree(self._child.tree)
            self._ended.wait(_LOCK_SECONDS)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def run(self, argv: list[str]) -> None:
        """Start it, keep its log, and stay until it has ended: the kernel takes this thread for its parent."""
        try:
            environ = without_secrets(os.environ)
            self._child = child = spawn(
                argv, cwd=str(self.options.folder), environ=environ, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE,
                pass_fds=(self._lock,),
            )  # fmt: skip
            note_owner(self.options.folder, child.pid)
            self._keep_log(child)
            child.wait()
            child.close_pipes()
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the start
            self._failure = error
        finally:
            self._ended.set()
            self._ready.set()

    def await_ready(self) -> None:
        """Wait until it takes connections.

        Raises:
            ToolFailed: reason `port_taken` or `server_failed`.
        """
        if not self._ready.wait(_READY_SECONDS):
            raise ToolFailed(f"the nats-server is not ready after {_READY_SECONDS:g} s", reason="server_failed")
        if self._failure is not None:
            raise self._failure
        if self._ended.is_set():
            raise self._explain()

    def _explain(self) -> ToolFailed:
        if "address already in use" in self._fault:
            return ToolFailed(
                f"port {self.options.port} for the nats-server is taken",
                reason="port_taken",
                hint="choose another port",
            )
        return ToolFailed(
            f"the nats-server did not start: {self._fault or 'it said nothing'}",
            reason="server_failed",
            hint="see nats.log in the data folder",
        )

    def _keep_log(self, child: Child) -> None:
        stream = child.stderr
        if stream is None:
            raise AssertionError("spawned without a pipe")
        with closing(_Log(self.options.folder / "nats.log")) as log:
            rest = b""
            while block := os.read(stream.fileno(), 65_536):
                log.write(block)
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    self._look_at(line)

    def _look_at(self, line: bytes) -> None:
        if self._ready.is_set():
            return
        if found := _LISTENING.search(line):
            self.port = int(found[1])
        elif fault := _FAULTS.search(line):
            self._fault = (fault[1] or fault[2] or b"").decode("utf-8", "replace")[:300]
        if _READY in line:
            self._ready.set()


class _Log:
    """A log file that is put aside once it is large; one old one is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._descriptor).st_size

    def write(self, data: bytes) -> None:
        with suppress(OSError):  # a full disk: the server goes on
            self._size += os.write(self._descriptor, data)
        if self._size > _LOG_BYTES:
            os.close(self._descriptor)
            with suppress(OSError):
                os.replace(self._path, self._path.with_suffix(".log.1"))
            self._open()

    def close(self) -> None:
        os.close(self._descriptor)


def start_server(keys: Keys, options: ServerOptions) -> NatsServer:
    """Start a server and wait until it takes connections.

    Raises:
        ToolFailed: reason `server_running` when one of a live process of ours has this folder, `missing_extra`,
            `port_taken`, `server_failed`.
    """
    program = require_program()
    folder = make_private_folder(options.folder)
    lock = _take_lock(folder)
    server = NatsServer(options, lock)
    try:
        config = folder / "nats.json"
        replace_file(config, write_config(describe_server(keys, options)).encode())
        argv = [program, "-c", str(config)]
        if LINUX:
            argv = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *argv]
        threading.Thread(target=server.run, args=(argv,), name="nats-server", daemon=True).start()
        server.await_ready()
    except OSError as error:
        server.close()
        raise ToolFailed(f"the nats-server cannot be set up: {error.strerror}", reason="server_failed") from error
    except BaseException:
        server.close()
        raise
    return server


def find_program() -> str | None:
    """Find the nats-server: the one of this Python, else one on PATH."""
    beside = shutil.which(PROGRAM, path=sysconfig.get_path("scripts"))
    return beside or shutil.which(PROGRAM)


def require_program() -> str:
    """Find the nats-server.

    Raises:
        ToolFailed: reason `missing_extra`.
    """
    found = find_program()
    if found is None:
        raise ToolFailed("there is no nats-server here", reason="missing_extra", hint=INSTALL)
    return found


def note_owner(folder: Path, pid: int) -> None:
    """Write down which process the server is and whose: what a later start needs to end it."""
    server, us = require_entry(pid).identity, require_entry(os.getpid()).identity
    facts = {"server": [server.pid, server.started], "owner": [us.pid, us.started]}
    replace_file(folder / "nats.pid", json.dumps(facts).encode(), durable=False)


def _take_lock(folder: Path) -> int:
    """Take the lock of a server's folder; one whose owner is dead is ended first."""
    descriptor = os.open(folder / "nats.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner, server = _find_owner(folder)
            if (owner is not None and is_running(owner)) or time.monotonic() > deadline:
                os.close(descriptor)
                raise ToolFailed(
                    "a nats-server of another exeora runs in this data folder", reason="server_running"
                ) from None
            if server is not None:
                end_tree(Tree(server, PROGRAM, leads_session=True))
            select.select([], [], [], 0.02)
        else:
            return descriptor


def _find_owner(folder: Path) -> tuple[Identity | None, Identity | None]:
    """Give who started the server of this folder, and the server."""
    try:
        facts = json.loads((folder / "nats.pid").read_bytes())
        return Identity(*facts["owner"]), Identity(*facts["server"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, None


def check_tls(certificate: Path | None, key: Path | None) -> None:
    """See that both files of TLS were named, or neither.

    Raises:
        InvalidArguments: reason `wrong_value`.
    """
    if (certificate is None) != (key is None):
        raise InvalidArguments("a certificate and its key go together", reason="wrong_value")
