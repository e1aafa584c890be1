"""Whether a person is there to answer questions in another window.

Two signs: somebody holds the attendance lock (`exeora serve` at a terminal, `exeora approvals --watch`), which the
kernel lets go when they die; or `exeora approvals` was used within the last ten minutes.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from exeora_ws.storage import make_private_folder

SEEN_SECONDS = 600
"""How long somebody who used `exeora approvals` counts as there."""

_WATCHED = "approvals.watched"
_SEEN = "approvals.seen"


class Attendance:
    """Who is there to be asked. `folder` is where lock files are kept (`Places.locks`)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be there for as long as this is held. Any number may be."""
        descriptor = self._open(_WATCHED)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def mark_seen(self) -> None:
        """Note that a person has just looked at the questions."""
        os.close(self._open(_SEEN))
        os.utime(self._folder / _SEEN)

    def find_somebody(self) -> bool:
        """Whether anybody is there."""
        with suppress(FileNotFoundError):
            if time.time() - os.stat(self._folder / _SEEN).st_mtime < SEEN_SECONDS:
                return True
        return self._is_watched()

    def _is_watched(self) -> bool:
        descriptor = self._open(_WATCHED)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    def _open(self, name: str) -> int:
        make_private_folder(self._folder)
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
