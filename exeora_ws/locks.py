"""The one lock between processes: `flock` on a file, so that the kernel lets go when its holder dies.

Every holder opens the file itself, so two threads of one process exclude each other too.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed

_POLL_SECONDS = 0.005
_POLL_MAX_SECONDS = 0.1


@contextmanager
def hold_lock(path: Path, *, seconds: float, what: str, cancellation: Cancellation | None = None) -> Iterator[None]:
    """Hold the exclusive lock at `path`; its folder must exist. The file is never deleted, so no race can split it.

    Args:
        path: the lock file, created 0600.
        seconds: how long to wait.
        what: what is locked, for the message ("the repository", "src/a.py").
        cancellation: stops the wait.

    Raises:
        ToolFailed: reason `busy`, when somebody else holds it all that time; `lock_failed`, when there is no room or
            no permission for the lock file.
        Cancelled: while waiting.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ToolFailed(f"{what} cannot be locked: {os.strerror(error.errno or 0)}", reason="lock_failed") from error
    try:
        _acquire(descriptor, seconds, what, cancellation)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Take the lock only if nobody has it; gives whether it was had."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        had = False
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            had = True
        yield had
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, seconds: float, what: str, cancellation: Cancellation | None) -> None:
    deadline = time.monotonic() + seconds
    pause = _POLL_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if cancellation is not None:
                cancellation.raise_if_cancelled()
            if time.monotonic() >= deadline:
                raise ToolFailed(
                    f"{what} is in use by another exeora for more than {seconds:g} s",
                    reason="busy",
                    hint="try again",
                ) from None
            time.sleep(pause)
            pause = min(pause * 1.5, _POLL_MAX_SECONDS)
        else:
            return
