"""What a bug on the command line comes to: its traceback in the log, and an id on the terminal."""

import logging
import secrets
from pathlib import Path

from exeora_ws.errors import InternalError

log = logging.getLogger("exeora")


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
