"""MCP over standard input and output: one client, one session, which ends with the input.

Three answer on one wire. What needs no core is answered before there is one (`reception`); what nearly all clients
say, by our own code on the core (`dialogue`); whatever is unusual, by the protocol library (`library`), which is loaded
only then.
"""

import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec

from exeora_ws.app import App
from exeora_ws.limits import CALLS_AT_ONCE
from exeora_ws.serve.announcing import Announcing
from exeora_ws.serve.crew import Crew
from exeora_ws.serve.dialogue import Dialogue
from exeora_ws.serve.ending import CANCELLED_FIRST_SECONDS, list_ending_signals
from exeora_ws.serve.library import Item, Library
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.manual import HOUSE_MANUAL, Manual
from exeora_ws.serve.peer import Peer
from exeora_ws.serve.pipes import LineReader, LineWriter, StandardStreams
from exeora_ws.serve.questions import Questions
from exeora_ws.serve.readers import Readers
from exeora_ws.serve.reception import LISTING, Arrival
from exeora_ws.serve.running import announce_server
from exeora_ws.serve.service import Service
from exeora_ws.tools.call import Calls, Face, Scope

if TYPE_CHECKING:
    from exeora_ws.serve.behind import Behind

log = logging.getLogger("exeora")

_ANSWER_SECONDS = 0.5
"""How long what was asked may still be answered once the input has ended; then it is cancelled."""
_SIGNALLED, _INPUT_ENDED, _LOST = "signalled", "input ended", "lost"


def serve_stdio(
    app: App, scope: Scope, *, calls: Calls | None = None, manual: Manual = HOUSE_MANUAL, plain: bool = False
) -> None:
    """Serve until the input ends or SIGTERM, SIGINT or SIGHUP comes; then end what the session started, and return.

    Nothing but protocol messages reaches standard output. Call it in the main thread.

    Args:
        app: the core.
        scope: what the client may reach: one project (`bound`), or an account.
        calls: the way of a call with the toolset to offer; the app's own when None.
        manual: instructions and prompts.
        plain: whether the protocol library answers everything.
    """
    with StandardStreams() as streams:
        arrival = Arrival(LineReader(streams.wire_in), LineWriter(streams.wire_out), Peer())
        serve_arrived(app, scope, arrival, calls=calls, manual=manual, plain=plain)


def serve_arrived(
    app: App,
    scope: Scope,
    arrival: Arrival,
    *,
    calls: Calls | None = None,
    manual: Manual = HOUSE_MANUAL,
    plain: bool = False,
) -> None:
    """As `serve_stdio`, on streams that were taken already, with a client that has said something already."""
    keep_log(app.places)
    wire = _Wire(app, scope, Service(calls or app.calls, manual), arrival)
    if plain:
        wire.library.take_over()
    with announce_server(app.places, face="stdio"):
        wire.serve()
    if not wire.all_ended:
        # A call does not end although it was told to: its thread would keep the process.
        logging.shutdown()
        os._exit(1)


class _Wire:
    """One conversation on a pair of descriptors."""

    def __init__(self, app: App, scope: Scope, service: Service, arrival: Arrival) -> None:
        self._app = app
        self._scope = scope
        self._service = service
        self._arrival = arrival
        self._session: str | None = f"stdio-{secrets.token_hex(8)}"
        self._happened: SimpleQueue[str] = SimpleQueue()
        self._questions = Questions()
        self._crew = Crew(CALLS_AT_ONCE)
        self.library = Library(self._open_behind)
        self._dialogue = Dialogue(
            service,
            scope,
            self._session,
            peer=arrival.peer,
            writer=arrival.writer,
            library=self.library,
            questions=self._questions,
            crew=self._crew,
            lost=lambda: self._happened.put(_LOST),
        )
        self._announcing = Announcing(service.offers, self._dialogue, self.library)
        if arrival.peer.opened:
            self._dialogue.answered.set()

    def _open_behind(self, items: "SimpleQueue[Item]") -> "Behind":
        from exeora_ws.serve.behind import Behind
        from exeora_ws.serve.conversation import Visitor

        return Behind(
            self._service,
            Visitor(Face.STDIO, self._scope, self._session or ""),
            self._arrival.peer,
            items=items,
            writer=self._arrival.writer,
            questions=self._questions,
            lost=lambda: self._happened.put(_LOST),
            answered=self._dialogue.answered.set,
        )

    def serve(self) -> None:
        """Serve until the input ends, a signal comes or nobody reads the output; then end all that was started.

        Signals are taken to the last: a client that has closed the input sends SIGTERM two seconds later, when a
        command that ignores the first request to end is still being waited for. Dying then would leave it running.
        """
        with _signals_taken(lambda: self._happened.put(_SIGNALLED)):
            try:
                self._converse()
            finally:
                try:
                    self._end_session()
                finally:
                    self._app.close()

    def _converse(self) -> None:
        forget = self._app.news.subscribe(self._announcing.tell)
        self._read()
        for work in (self._prepare, self._announcing.run):
            threading.Thread(target=work, name=work.__name__.strip("_"), daemon=True).start()
        why = self._happened.get()
        if why == _SIGNALLED:
            self._stop()
        if why != _LOST:
            self._dialogue.wait_until_answered(_ANSWER_SECONDS)
            self.library.wait_until_answered(_ANSWER_SECONDS)
        forget()
        self._dialogue.close()
        self.library.close()

    def _read(self) -> None:
        """Have each line handed in. The end of the input is the end of the session."""
        Readers(
            self._arrival,
            self._dialogue.receive,
            self._crew,
            lambda: self._happened.put(_INPUT_ENDED),
            most=CALLS_AT_ONCE,
        ).start()

    def _prepare(self) -> None:
        """Once the client has its first answer, get ready for the many to come."""
        self._dialogue.answered.wait()
        try:
            if self._arrival.listed:
                self._catch_up()
            self._app.stay()
        except Exception:
            log.exception("preparing for a long life failed")

    def _catch_up(self) -> None:
        """Do what else a listing does: remember it, and start the servers whose tools are to be added to it."""
        with open(LISTING, "rb") as stream:
            names = [tool["name"] for tool in msgspec.json.decode(stream.read())]
        self._service.offers.remember(self._scope, names)
        self._service.calls.offered_proxied(self._scope)

    def _stop(self) -> None:
        """Have calls in flight answered as cancelled, and end what the session has started meanwhile."""
        works = (self._dialogue.stop, self.library.stop, self._end_session, self._end_upstreams)
        threads = [threading.Thread(target=_look_after, args=(work,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _end_session(self) -> None:
        """End what the session has started; a second time does nothing."""
        session, self._session = self._session, None
        if session is not None:
            self._app.close_session(session)

    def _end_upstreams(self) -> None:
        time.sleep(CANCELLED_FIRST_SECONDS)
        self._app.upstreams.close()

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        return self._dialogue.all_ended and self.library.all_ended


def _look_after(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        log.exception("ending a session failed in part")


@contextmanager
def _signals_taken(take: Callable[[], None]) -> Iterator[None]:
    """Have the signals that end a server taken."""
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in list_ending_signals()}
    for number in before:
        # What the handler does must be safe in the middle of anything: `SimpleQueue.put` is.
        signal.signal(number, lambda _number, _frame: take())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
