"""Where a bug leaves its traceback: the log file in the data folder, and nowhere else."""

import logging
import os
import secrets
from io import TextIOWrapper
from pathlib import Path

from exeora_ws.errors import InternalError
from exeora_ws.settings import find_places
from exeora_ws.storage import make_private_folder

log = logging.getLogger("exeora")


class _PrivateFile(logging.FileHandler):
    """Opens its file, 0600 in a folder 0700, when the first line is written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", delay=True)

    def _open(self) -> TextIOWrapper:
        make_private_folder(Path(self.baseFilename).parent)
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")


def log_to_file() -> Path:
    """Send the log to its file instead of the terminal; gives where it is."""
    path = find_places().log
    if not log.handlers:
        handler = _PrivateFile(path)
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.propagate = False
    return path


def record_bug(bug: Exception) -> InternalError:
    """Write a bug with its traceback to the log; gives what the caller is told instead."""
    identity = secrets.token_hex(6)
    log.error("bug %s on the command line", identity, exc_info=bug)
    return InternalError(f"internal error {identity}; see the log", data={"id": identity})


def with_log_path(error: InternalError, path: Path) -> InternalError:
    """Give the error with where its traceback stands: on one's own machine that is no secret."""
    return InternalError(
        error.message, hint=f"the traceback is in {path}", data={**(error.data or {}), "log": str(path)}
    )
