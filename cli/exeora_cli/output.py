"""Writing to the standard streams to the last byte, whatever they are: a pipe that does not wait, a disk that is full.

Imports next to nothing: the hot commands use it.
"""

import os
import sys

TYPE_CHECKING = False  # type checkers take it as true
if TYPE_CHECKING:
    from typing import TextIO

UNWRITTEN = 1


def write_all(stream: "TextIO", data: bytes) -> None:
    """Write all of it, past Python's buffer: that gives up at a pipe that is full and was set not to wait.

    With `PYTHONUNBUFFERED` there is no buffer at all, and what did not fit would be lost without a word.

    Raises:
        OSError: it could not be written.
    """
    stream.flush()
    raw = getattr(stream.buffer, "raw", stream.buffer)
    left = memoryview(data)
    while left:
        written = raw.write(left)
        if written is None:
            _wait_for_room(raw.fileno())
        else:
            left = left[written:]


def _wait_for_room(descriptor: int) -> None:
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    poll.poll()


def replace_closed() -> None:
    """Put something in the place of standard streams that are closed: else the next file opened gets such a number.

    What is written to stdout then fails, as it would; stderr is not missed.
    """
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            os.set_inheritable(descriptor, True)
            stream = os.fdopen(descriptor, mode, encoding="utf-8", errors="backslashreplace")
            setattr(sys, name, stream)


def tell_unwritten(error: OSError) -> int:
    """Say that the answer could not be written; gives the exit code. Nothing more is written to stdout."""
    from contextlib import suppress

    drop_stdout()
    with suppress(OSError):  # there may be nobody to tell
        write_all(sys.stderr, f"exeora: the answer cannot be written: {error.strerror}\n".encode())
    return UNWRITTEN


def drop_stdout() -> None:
    """Have stdout lead nowhere: what is left in its buffer would fail once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
