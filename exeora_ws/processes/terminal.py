"""Run a command for a person: it shares our terminal, or whatever our input and outputs are, with nothing in between.

The command is in our own process group, as if the shell had started it: colours, prompts, `/dev/tty`, the window size,
Ctrl-C and Ctrl-Z work by themselves. What is sent to us alone (`kill`, a closing window) is passed on. Afterwards
nothing that it started is left.
"""

import math
import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from exeora_ws.errors import ExeoraError, UnknownWorkspace
from exeora_ws.processes.command import Command, Owner
from exeora_ws.processes.ending import GRACE_SECONDS, end_tree
from exeora_ws.processes.process import Leftover
from exeora_ws.processes.records import Records
from exeora_ws.processes.spawn import Child, may_have_left, spawn
from exeora_ws.processes.supervisor import new_process_id
from exeora_ws.processes.table import find_program
from exeora_ws.processes.tree import send_signal

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_PASSED_ON = (*_ENDING, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_SIGNAL_BASE = 128


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command that shared our terminal ended."""

    status: int
    """Its exit code, or 128 and the number of the signal that ended it: what a shell shows."""
    leftovers: tuple[Leftover, ...]
    """What it left running; it has been ended."""
    timed_out: bool = False
    """Whether it was ended because its time was over."""


def run_at_terminal(
    command: Command,
    owner: Owner,
    records: Records | None = None,
    *,
    timeout: float | None = None,
    is_there: Callable[[str], bool] = lambda _workspace: True,
) -> Ended:
    """Run a command on our own input and outputs; from the main thread only.

    Args:
        command: what to run.
        owner: for whom.
        records: where it is written down while it runs.
        timeout: seconds, after which the whole tree is ended; None for no limit.
        is_there: whether a workspace is still one; asked once the command is on record.

    Raises:
        UnknownWorkspace: the workspace went meanwhile; the command has been ended.
        ExeoraError: as `spawn`.
    """
    if records is not None:
        records.announce()
    inbox = _Inbox()
    with inbox.receiving(), _terminal_restored() as restore:
        child = spawn(
            command.argv,
            cwd=command.cwd,
            environ=command.environ,
            folder=command.folder,
            stdin=None,
            stdout=None,
            stderr=None,
            own_session=False,
            # Nothing else runs here: an orphan that fell to us came out of the command.
            stray=lambda _orphan: True,
        )
        process_id = new_process_id()
        try:
            if records is not None:
                records.add(process_id, "run", owner, command.line, child.tree)
            if not is_there(owner.workspace):
                raise UnknownWorkspace("the workspace was removed while the command was started")
            code, timed_out = _wait(child, inbox, timeout)
        finally:
            leftovers = _end_rest(child)
            _close_record(records, process_id)
        if code < 0:
            restore()
    return Ended(code if code >= 0 else _SIGNAL_BASE - code, leftovers, timed_out)


def _close_record(records: Records | None, process_id: str) -> None:
    if records is not None:
        records.mark_done(process_id)
        # A row that stays counts for nothing: the answer is worth more than the tidiness.
        with suppress(ExeoraError):
            records.close()


class _Inbox:
    """Signals on their way to us, as numbers in a pipe. The child inherits neither."""

    def __init__(self) -> None:
        self.descriptor, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """Take the signals that are passed on instead of dying of them."""
        before = {number: signal.signal(number, self._note) for number in _PASSED_ON}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self.descriptor)
            os.close(self._writing)

    def put(self, number: int) -> None:
        """Add a number; 0 means that the child has ended."""
        with suppress(OSError):
            os.write(self._writing, bytes([number]))

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.put(number)


def _wait(child: Child, inbox: _Inbox, timeout: float | None) -> tuple[int, bool]:
    """Wait for the child and pass signals on; one that was told to end gets two seconds for it.

    Gives its code, -N after signal N, and whether its time was over.
    """
    poller = select.poll()
    poller.register(inbox.descriptor, select.POLLIN)
    exit_descriptor = child.open_exit_descriptor()
    if exit_descriptor is not None:
        poller.register(exit_descriptor, select.POLLIN)
    else:
        threading.Thread(target=_wait_in_thread, args=(child, inbox), daemon=True).start()
    now = time.monotonic
    give_up_at = math.inf if timeout is None else now() + timeout
    told = timed_out = False
    try:
        while (code := child.poll()) is None:
            left = give_up_at - now()
            ready = {descriptor for descriptor, _ in poller.poll(None if left == math.inf else max(0.0, left) * 1000)}
            if inbox.descriptor in ready and _pass_on(child, os.read(inbox.descriptor, 1)[0]):
                told, give_up_at = True, min(give_up_at, now() + GRACE_SECONDS)
            elif now() >= give_up_at and child.poll() is None:
                timed_out = not told
                end_tree(child.tree, grace=0 if told else GRACE_SECONDS)
    finally:
        if exit_descriptor is not None:
            os.close(exit_descriptor)
    return code, timed_out


def _wait_in_thread(child: Child, inbox: _Inbox) -> None:
    child.wait()
    inbox.put(0)


def _pass_on(child: Child, number: int) -> bool:
    """Hand a signal to the child; gives whether it was told to end."""
    if number and not (number in (signal.SIGINT, signal.SIGQUIT) and _keyboard_reaches_child()):
        send_signal(child.tree.root, number)
    return number in _ENDING


def _keyboard_reaches_child() -> bool:
    """Whether Ctrl-C goes to our whole process group, the child too: a second one would mean something else."""
    with suppress(OSError):
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return os.tcgetpgrp(descriptor) == os.getpgrp()
        finally:
            os.close(descriptor)
    return False


def _end_rest(child: Child) -> tuple[Leftover, ...]:
    ended = child.poll() is not None
    if ended and not may_have_left():
        return ()
    found = child.tree.find_members()
    left = tuple(Leftover(entry.pid, find_program(entry.pid)) for entry in found)
    end_tree(child.tree)
    child.poll()
    return left if ended else ()


@contextmanager
def _terminal_restored() -> Iterator[Callable[[], None]]:
    """Give a function that puts the terminal back as it was, after a program that died with it in its own mode."""
    try:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
        before = termios.tcgetattr(descriptor)
    except (OSError, ValueError, termios.error):
        yield lambda: None
        return

    def restore() -> None:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    yield restore
