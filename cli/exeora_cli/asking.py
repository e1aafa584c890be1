"""Yes or no, from the person at this terminal: over `/dev/tty`, so that a pipe on stdin answers nothing."""

import os
import select
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exeora_ws.cancellation import Cancellation
    from exeora_ws.policy.gate import Answer
    from exeora_ws.policy.question import Question

_YES = (b"y", b"yes")
_LOOK_SECONDS = 0.1
_LINE_BYTES = 4_096

_turn = threading.Lock()
"""One question at a time: there is one terminal, and `each` asks from several threads."""


def has_person() -> bool:
    """Whether a person can be asked: the error output is a terminal, and we are what it is talking to."""
    if not sys.stderr.isatty():
        return False
    try:
        with open_terminal() as terminal:
            return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def open_terminal() -> Iterator[int]:
    """Open the controlling terminal.

    Raises:
        OSError: there is none.
    """
    descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def ask_yes_no(text: str, prompt: str, withdrawn: Callable[[], bool], seconds: float) -> bool | None:
    """Show `text` and wait for a line; a yes is `y` or `yes`, anything else a no.

    Returns:
        None when nobody answered in time, or the question was withdrawn.

    Raises:
        OSError: there is no terminal.
    """
    with open_terminal() as terminal:
        # What was typed before the question was there is no answer to it.
        termios.tcflush(terminal, termios.TCIFLUSH)
        os.write(terminal, f"{text}\n{prompt}".encode())
        line = _read_line(terminal, withdrawn, time.monotonic() + seconds)
        if line is None or not line.endswith(b"\n"):
            os.write(terminal, b"\n")
    return None if line is None else line.strip().lower() in _YES


def _read_line(terminal: int, withdrawn: Callable[[], bool], deadline: float) -> bytes | None:
    while not withdrawn() and time.monotonic() < deadline:
        if select.select([terminal], [], [], _LOOK_SECONDS)[0]:
            return os.read(terminal, _LINE_BYTES)
    return None


class TerminalAsker:
    """Puts the gate's questions to the person who typed the command.

    Args:
        hiding: keeps what else is written to the terminal away meanwhile.
    """

    way = "terminal"

    def __init__(self, hiding: Callable[[], AbstractContextManager[None]]) -> None:
        self._hiding = hiding

    def ask(self, question: "Question", seconds: float, withdrawn: "Cancellation") -> "Answer":
        """Ask, in a thread of the gate's; see `exeora_ws.policy.gate.Asker`."""
        from exeora_ws.policy.gate import Answer

        while not _turn.acquire(timeout=_LOOK_SECONDS):
            if withdrawn.cancelled:
                return Answer.NONE
        try:
            with self._hiding():
                said = ask_yes_no(question.text, "Allow it? [y/N] ", lambda: withdrawn.cancelled, seconds)
        finally:
            _turn.release()
        return Answer.NONE if said is None else Answer.ALLOW if said else Answer.DECLINE
