"""Waiting for a child to end, and ending all of it: what is left of a command is never left running."""

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from exeora_ws.cancellation import Cancellation

if TYPE_CHECKING:
    import psutil

_DYING_SECONDS = 2
_POLL_SECONDS = 0.02


def wait_for_end(pid: int, seconds: float, cancellation: Cancellation | None) -> bool:
    """Wait until a child has ended, without reaping it: as long as it is not, nobody else can have its number.

    False when the time is over or the call was taken back. A pidfd wakes at once where polling would not.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return _poll_for_end(pid, seconds, cancellation)
    try:
        with _wake_descriptor(cancellation) as wake:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if wake is not None:
                poll.register(wake, select.POLLIN)
            return any(ready == descriptor for ready, _ in poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def _poll_for_end(pid: int, seconds: float, cancellation: Cancellation | None) -> bool:
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= deadline or (cancellation is not None and cancellation.cancelled):
            return False
        time.sleep(_POLL_SECONDS)
    return True


@contextmanager
def _wake_descriptor(cancellation: Cancellation | None) -> Iterator[int | None]:
    """Give a descriptor that becomes readable when the call is taken back."""
    if cancellation is None:
        yield None
        return
    reader, writer = os.pipe()
    lock, open_writers = threading.Lock(), [writer]

    def wake() -> None:
        with lock:
            for descriptor in open_writers:
                os.write(descriptor, b"x")

    forget = cancellation.on_cancel(wake)
    try:
        yield reader
    finally:
        forget()
        with lock:
            open_writers.clear()
            os.close(writer)
        os.close(reader)


def reap_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill what an ended child left of its process group, then reap it."""
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def end_group(process: "subprocess.Popen[bytes]", grace_seconds: float) -> None:
    """End a child that still runs, and all below it, told from later owners of their numbers by start time."""
    below = _list_below(process.pid)
    deadline = time.monotonic() + grace_seconds
    _signal_group(process.pid, signal.SIGTERM)
    if wait_for_end(process.pid, grace_seconds, None):
        _wait_for_all(below, deadline)
    _signal_group(process.pid, signal.SIGKILL)
    for descendant in below:
        _kill(descendant)
    process.wait()
    _wait_for_all(below, time.monotonic() + _DYING_SECONDS)


def _wait_for_all(processes: "list[psutil.Process]", deadline: float) -> None:
    while any(map(_is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS / 4)


def _signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _list_below(pid: int) -> "list[psutil.Process]":
    import psutil  # noqa: PLC0415  only a call that was cut short needs it

    with suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def _kill(process: "psutil.Process") -> None:
    import psutil  # noqa: PLC0415  same

    with suppress(psutil.Error):
        process.kill()


def _is_alive(process: "psutil.Process") -> bool:
    import psutil  # noqa: PLC0415  same

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
