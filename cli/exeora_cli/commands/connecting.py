"""connect: this machine as one of a fleet."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer
from exeora_cli.group import Group
from exeora_cli.plain import show_text
from exeora_cli.session import Session, session_of
from exeora_cli.teller import Facts, Teller

if TYPE_CHECKING:
    from exeora_ws.fleet.credentials import Credential

group = Group("Fleet")

_LOST_SECONDS = 60.0
_STDIN = "-"


@group.command(
    "connect",
    """
    exeora connect exf_eyJraW5kIjoibWFjaGluZSIs…
    exeora connect --credential laptop.exeora
    exeora connect
    """,
    (
        "One object a line for each event, until it ends: `event` and what belongs to it. `waiting`: `urls`; "
        "`connected`: `machine` (its id), `name`, `urls`; `lost`; `back`; `given_up`: `seconds`; `warning`: `message`; "
        "`events_lost`: `count`; `stopping`; `stopped`."
    ),
)
def connect(
    ctx: typer.Context,
    line: Annotated[
        str | None,
        typer.Argument(
            metavar="CREDENTIAL",
            help="What exeora machine add printed, or - to read it from standard input. Kept for the next time.",
            show_default=False,
        ),
    ] = None,
    credential: Annotated[
        Path | None, typer.Option("--credential", metavar="FILE", help="The file that exeora machine add wrote.")
    ] = None,
    lost_after: Annotated[
        float,
        typer.Option(
            "--lost-after",
            metavar="SECONDS",
            min=1.0,
            help="End what gateways have started here when the connection has been gone that long.",
        ),
    ] = _LOST_SECONDS,
) -> None:
    """Connect this machine and its projects to a gateway, until it is told to end.

    It dials out and needs no open port. Calls run here exactly as under exeora serve, by this machine's policies.
    A lost connection is made again by itself. The credential is needed once.
    """
    session = session_of(ctx)
    session.refuse_globals("connect")
    from exeora_ws.fleet import require_extra

    require_extra()
    found = _find_credential(session, line, credential)
    if not _Connecting(session).run(found, lost_after):
        # A call does not end although it was told to: its thread would keep the process.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(1)


def _find_credential(session: Session, line: str | None, file: Path | None) -> "Credential":
    from exeora_ws.fleet.credentials import load_credential, parse_credential

    if line is not None and file is not None:
        raise InvalidArguments("pass CREDENTIAL or --credential, not both", reason="usage")
    if line is not None:
        return parse_credential(sys.stdin.readline() if line == _STDIN else line, "machine")
    kept = session.app.places.data / "fleet" / "credential"
    if file is None and not kept.exists():
        raise InvalidArguments(
            "CREDENTIAL: needed the first time",
            reason="missing_credential",
            hint="exeora machine add NAME, where the gateway runs, prints it",
        )
    return load_credential(file or kept, "machine")


class _Connecting:
    """One run, as its person sees it."""

    def __init__(self, session: Session) -> None:
        self._app = session.app
        self._json = session.options.json
        self._teller = Teller(self._show)

    def run(self, credential: "Credential", lost_after: float) -> bool:
        """Serve until told to end; gives whether everything has ended.

        Raises:
            ExeoraError: it cannot serve, or was sent away.
            ReaderGone: nobody read any more what it had to tell.
        """
        from exeora_ws.fleet.connecting import connect_machine
        from exeora_ws.fleet.machine import MachineOptions

        self._app.upstreams.report_to(lambda line: self._teller.tell("warning", {"message": line}))
        stop = threading.Event()
        try:
            with _set_on_signals(stop):
                ended = connect_machine(
                    self._app,
                    credential,
                    MachineOptions(lost_seconds=lost_after),
                    lambda event: self._teller.tell(event.kind, event.facts),
                    stop,
                )
        finally:
            self._teller.close()
        if self._teller.reader_gone:
            raise answer.ReaderGone
        return ended

    def _show(self, kind: str, facts: Facts) -> None:
        """Show one event; in the teller's thread."""
        if self._json:
            answer.print_document({"event": kind, **facts})
        elif kind in _WORDS:
            shown = {
                key: show_text(", ".join(value) if isinstance(value, list) else str(value))
                for key, value in facts.items()
            }
            answer.narrate([_WORDS[kind].format_map(shown)])


_WORDS = {
    "waiting": "no server answers yet at {urls}; trying until one does (Ctrl-C ends it)",
    "connected": "connected as {name} ({machine})",
    "lost": "the connection is lost; trying to get it back",
    "back": "connected again",
    "given_up": "no connection for {seconds} s: what gateways had started here was ended; still trying",
    "warning": "{message}",
    "events_lost": "{count} events are not shown: they came faster than they were read",
    "stopping": "ending what was started here",
}


@contextmanager
def _set_on_signals(stop: threading.Event) -> Iterator[None]:
    """Have SIGTERM, SIGINT and SIGHUP ask for the end; not one that somebody had ignored on purpose, as nohup does."""
    numbers = [n for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda _number, _frame: stop.set()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
