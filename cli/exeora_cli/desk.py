"""Where a running server's person sits: questions that wait are shown, and answered by who is at the terminal."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from exeora_ws.errors import ExeoraError

from exeora_cli.asking import ask_yes_no, has_person
from exeora_cli.describing import describe_question

if TYPE_CHECKING:
    from exeora_ws.app import App
    from exeora_ws.cancellation import Cancellation
    from exeora_ws.policy.approvals import Pending

Tell = Callable[[str, Mapping[str, Any]], None]

_LOOK_SECONDS = 0.2
_WAY = "terminal"
_NAMES = {"used": "allowed"}
"""A yes that was used was a yes."""


class Desk:
    """Looks after the questions of this user, whichever server asks them.

    Args:
        app: the core.
        tell: told of each question as it comes (`approval_asked`) and goes (`approval_closed`). Never of arguments:
            what is told may be kept.
        turn: held while somebody is asked, so that nothing else is written into the question.
        may_ask: whether a person may be asked here at all; even then only while this program has the terminal.
    """

    def __init__(self, app: "App", tell: Tell, turn: Lock, *, may_ask: bool) -> None:
        self._approvals = app.approvals
        self._attendance = app.attendance
        self._tell = tell
        self._turn = turn
        self._may_ask = may_ask and sys.stdin.isatty()
        self._open: set[str] = set()

    def attend(self, stopping: "Cancellation") -> None:
        """Look after questions until `stopping`; while a person can be asked here, clients' calls wait for them."""
        while not stopping.cancelled:
            manned = self._is_manned()
            with self._attendance.hold() if manned else nullcontext():
                while not stopping.cancelled and self._is_manned() is manned:
                    with suppress(ExeoraError):  # a database that is busy now is looked at again
                        self._look(stopping, manned=manned)
                    stopping.wait(_LOOK_SECONDS)

    def _is_manned(self) -> bool:
        # A server that was sent to the background must not be stopped for reading from the terminal.
        return self._may_ask and has_person()

    def _look(self, stopping: "Cancellation", *, manned: bool) -> None:
        waiting = self._approvals.list_pending()
        for pending in waiting:
            if pending.id not in self._open:
                self._open.add(pending.id)
                self._tell("approval_asked", _describe(pending))
            if manned and not stopping.cancelled:
                self._ask(pending, stopping)
        for identity in self._open - {pending.id for pending in self._approvals.list_pending()}:
            self._open.discard(identity)
            status, way = self._approvals.find_status(identity) or ("expired", "")
            told = str(status)
            self._tell("approval_closed", {"id": identity, "status": _NAMES.get(told, told), "way": way or None})

    def _ask(self, pending: "Pending", stopping: "Cancellation") -> None:
        """Put one question; somebody else's answer, or the end of the call, takes it away again."""
        if not self._waits(pending):
            return
        seconds = pending.expires_ms / 1000 - time.time()
        with self._turn, suppress(OSError):  # the terminal has gone: the next look finds nobody there
            said = ask_yes_no(pending.text, "Allow it? [y/N] ", lambda: self._is_withdrawn(pending, stopping), seconds)
            if said is not None:
                with suppress(ExeoraError):  # somebody else was first: their answer stands
                    (self._approvals.allow if said else self._approvals.decline)(pending.id, _WAY)

    def _is_withdrawn(self, pending: "Pending", stopping: "Cancellation") -> bool:
        return stopping.cancelled or not self._is_manned() or not self._waits(pending)

    def _waits(self, pending: "Pending") -> bool:
        found = self._approvals.find_status(pending.id)
        return found is not None and str(found[0]) == "pending"


def _describe(pending: "Pending") -> dict[str, Any]:
    return {key: fact for key, fact in describe_question(pending).items() if key != "text"}
