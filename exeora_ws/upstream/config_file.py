"""Reading the files that say which servers there are: regular ones of a sane size, and whether they changed."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from exeora_ws.errors import ToolFailed

MAX_BYTES = 1_000_000

Signature = tuple[int, int, int, int] | None
"""Device, inode, size, modification time in ns; None where no file is."""


def sign_file(path: Path) -> Signature:
    """Give what tells one state of a file from the next."""
    with suppress(OSError):
        state = os.stat(path)
        return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
    return None


def read_config_file(path: Path, name: str) -> bytes | None:
    """Read a whole file; None when there is none.

    Args:
        path: where it is.
        name: what the message calls it.

    Raises:
        ToolFailed: reason `mcp_config_invalid`, when it is no regular file, too large or unreadable.
    """
    try:
        # Without O_NONBLOCK, opening a FIFO that a repository put there would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(name, error.strerror or "unreadable") from error
    with os.fdopen(descriptor, "rb") as stream:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise _unreadable(name, "it is not a regular file")
        try:
            data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise _unreadable(name, error.strerror or "unreadable") from error
    if len(data) > MAX_BYTES:
        raise _unreadable(name, f"it is larger than {MAX_BYTES} bytes")
    return data


def _unreadable(name: str, why: str) -> ToolFailed:
    return ToolFailed(f"{name} cannot be read: {why}", reason="mcp_config_invalid")
