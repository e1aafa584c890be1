"""Which servers run now: a file each, locked as long as its server lives, so that a dead one is told by the kernel."""

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from exeora_ws import __version__
from exeora_ws.settings import Places
from exeora_ws.storage import make_private_folder


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server of this user."""

    pid: int
    face: str
    """`stdio` or `http`."""
    url: str | None
    """Where HTTP answers, without a path; None over stdio."""
    version: str
    started: float
    """Seconds since the epoch."""


@contextmanager
def announce_server(places: Places, *, face: str, url: str | None = None) -> Iterator[None]:
    """Have this process listed as a running server. Where that cannot be written, it is served all the same."""
    path = _folder(places) / f"{os.getpid()}-{secrets.token_hex(4)}.json"
    server = RunningServer(os.getpid(), face, url, __version__, time.time())
    try:
        make_private_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        # Locked before it is filled: an empty file belongs to a server that is starting.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps(asdict(server)).encode())
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def list_servers(places: Places) -> list[RunningServer]:
    """Give the servers that run, oldest first; the files of dead ones are cleared away."""
    found = [_read_server(path) for path in sorted(_folder(places).glob("*.json"))]
    return sorted((s for s in found if s is not None), key=lambda s: s.started)


def _read_server(path: Path) -> RunningServer | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 10_000)
        if text and _is_unlocked(descriptor):
            os.unlink(path)
            return None
        return RunningServer(**json.loads(text)) if text else None
    except (OSError, ValueError, TypeError):
        return None
    finally:
        os.close(descriptor)


def _is_unlocked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _folder(places: Places) -> Path:
    return places.runtime / "servers"
