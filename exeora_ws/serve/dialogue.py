"""A conversation over standard input and output without the protocol library: what nearly all clients say.

What is unusual goes to the library (`library.Library`), on the same wire; the other way, nothing is known here that it
is not told. Both have the same service behind them, and the answers are the same: the tests compare them.
"""

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from exeora_ws.cancellation import Cancellation, no_progress
from exeora_ws.limits import CALL_END_SECONDS
from exeora_ws.policy.gate import Answer, SignedAnswer
from exeora_ws.serve import shapes
from exeora_ws.serve.courtesies import Courtesies
from exeora_ws.serve.crew import Crew, Job
from exeora_ws.serve.library import Library
from exeora_ws.serve.messages import (
    Notification,
    Request,
    Response,
    Unusual,
    correlate,
    find_cancelled,
    read_message,
    write_error,
    write_notification,
)
from exeora_ws.serve.narration import Narration
from exeora_ws.serve.peer import Peer
from exeora_ws.serve.pipes import LineWriter, TooLong
from exeora_ws.serve.protocol import CONNECTION_CLOSED, ProtocolError, complete
from exeora_ws.serve.questions import Elicitation, Questions
from exeora_ws.serve.service import Service, explain
from exeora_ws.tools.call import Asking, Caller, Face, RawCall, Scope

log = logging.getLogger("exeora")


_FLUSH_SECONDS = 1.0

Made = dict[str, Any] | ProtocolError


class Flight:
    """A request that is being worked on in a thread."""

    __slots__ = ("cancellation", "claimed", "identity", "key", "made", "name", "withdrawn")

    def __init__(self, identity: int | str, name: str) -> None:
        self.identity = identity
        self.key = correlate(identity)
        self.name = name
        self.cancellation = Cancellation()
        self.withdrawn = False
        """Whether the client wants no answer any more."""
        self.made = False
        """Whether the thread has left the call; it may still be writing the answer."""
        self.claimed = False
        """Whether somebody writes its answer."""


class Dialogue:
    """One. Lines are handed in by one thread, in order.

    Args:
        service: the core.
        scope: what the client may reach.
        session: the session's name.
        peer: the client, as far as it is known.
        writer: the wire.
        library: answers what is unusual.
        questions: requests of ours to the client.
        crew: threads, for what is not done where it was received.
        lost: called when nobody reads the wire any more.
    """

    def __init__(
        self,
        service: Service,
        scope: Scope,
        session: str,
        *,
        peer: Peer,
        writer: LineWriter,
        library: Library,
        questions: Questions,
        crew: Crew,
        lost: Callable[[], None],
    ) -> None:
        self._service = service
        self._courtesies = Courtesies(service.manual, account=scope.account)
        self._scope = scope
        self._session = session
        self._peer = peer
        self._writer = writer
        self._library = library
        self._questions = questions
        self._lost = lost
        self._crew = crew
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._by_identity: dict[int | str, Flight] = {}
        self._flights: set[Flight] = set()
        self._stopping = False
        self._closed = False
        self.answered = threading.Event()
        """Set when the client has had an answer."""

    def receive(self, line: bytes | TooLong) -> Job | None:
        """Take a line, and wait for nothing; gives what is to be done about it in some thread, if anything is."""
        if isinstance(line, TooLong) or self._library.took_over:
            self._library.pass_on(line)
            return None
        try:
            return self._take(read_message(line))
        except Unusual:
            if not self._peer.opened:
                self._library.take_over()
            self._library.pass_on(line)
        return None

    def _take(self, message: Request | Notification | Response) -> Job | None:
        if isinstance(message, Request):
            return self._answer(message)
        if isinstance(message, Response):
            self._questions.settle(message)
        elif message.method == "notifications/cancelled":
            self._withdraw(find_cancelled(message.params))
        elif message.method == "notifications/initialized":
            if not self._peer.opened:
                raise Unusual
            self._peer.note_ready(message.params)
        return None

    def _answer(self, request: Request) -> Job | None:
        try:
            known = self._peer.introduce(request)
            make = self._prepare(request, known)
        except Unusual:
            if request.method == "initialize" and self._peer.opened:
                self._library.take_over()
            with self._lock:  # from now on a cancellation of this id means the newer request
                self._by_identity.pop(correlate(request.identity), None)
            raise
        return self._start(Flight(request.identity, request.method), make)

    def _prepare(self, request: Request, known: shapes.Introduction) -> Callable[[Flight], Made]:
        """Give what makes the answer, in some thread."""
        try:
            answer: Made | None = self._courtesies.find_answer(request, self._peer)
        except ProtocolError as error:
            answer = error
        if answer is not None:
            return lambda _flight: answer
        if request.method == "tools/list":
            return partial(self._list, shapes.read_cursor(request.params))
        token = shapes.read_progress_token(request.params)
        return partial(self._call, shapes.read_call(request.params, modern=self._peer.modern), known, token)

    def _start(self, flight: Flight, make: Callable[[Flight], Made]) -> Job | None:
        with self._lock:
            self._by_identity[flight.key] = flight
            self._flights.add(flight)
            if self._stopping:
                flight.cancellation.cancel()
        if flight.name == "initialize":  # nothing is answered before it
            self._work(flight, make)
            return None
        return partial(self._work, flight, make)

    def _list(self, cursor: str | None, _flight: Flight) -> Made:
        answer = self._service.list_tools(self._scope, cursor)
        return complete(answer, cacheable=True) if self._peer.modern else answer

    def _call(
        self, call: shapes.CallParams, known: shapes.Introduction, token: int | str | None, flight: Flight
    ) -> Made:
        flight.name = call.name
        narration = Narration(token, self._send, self._crew) if token is not None else None
        caller = Caller(
            Face.STDIO,
            known.client,
            self._session,
            self._scope,
            flight.cancellation,
            narration.say if narration else no_progress,
            self._find_asking(call, known),
        )
        try:
            answer = self._service.answer_call(RawCall(call.name, call.arguments), caller, embed=True)
        finally:
            if narration:
                narration.end()
        return complete(answer) if self._peer.modern and isinstance(answer, dict) else answer

    def _find_asking(self, call: shapes.CallParams, known: shapes.Introduction) -> Asking:
        if not known.shows_forms:
            return Asking()
        if not self._peer.modern:
            return Asking(asker=Elicitation(self._questions, self._send))
        if call.state is None:
            return Asking(by_return=True)
        form = call.form
        said = Answer.NONE if form is None else Answer.ALLOW if shapes.says_yes(form) else Answer.DECLINE
        return Asking(by_return=True, answer=SignedAnswer(call.state, said))

    def _work(self, flight: Flight, make: Callable[[Flight], Made]) -> None:
        try:
            try:
                made = make(flight)
            except Exception as error:  # noqa: BLE001 - whatever it is, `explain` logs it
                made = explain(error, flight.name)
            with self._changed:
                flight.made = True
                self._changed.notify_all()
            if self._claim(flight):
                self._send(_write(flight.identity, _closed() if self._closed else made))
        finally:
            with self._changed:
                self._flights.discard(flight)
                self._changed.notify_all()

    def _claim(self, flight: Flight) -> bool:
        """Whether a request is to be answered, by whoever asks this first."""
        with self._lock:
            if self._by_identity.get(flight.key) is flight:
                del self._by_identity[flight.key]
            claimed, flight.claimed = flight.claimed, True
            return not (claimed or flight.withdrawn)

    def _withdraw(self, identity: int | str | None) -> None:
        """Take a request back that the client has no use for any more; it is not answered."""
        if identity is None:
            return
        with self._changed:
            flight = self._by_identity.pop(correlate(identity), None)
            if flight is not None:
                flight.withdrawn = True
                self._changed.notify_all()
        if flight is not None:
            self._crew.run(flight.cancellation.cancel)  # callbacks end process trees, and that takes time
        elif self._library.started:
            raise Unusual

    def _send(self, line: bytes) -> None:
        try:
            self._writer.write(line)
        except OSError:
            self._lost()
        self.answered.set()

    def tell_tools_changed(self) -> None:
        """Tell the client to list the tools again, if it is one that is told in this way."""
        if self.is_told:
            self._send(write_notification("notifications/tools/list_changed"))

    @property
    def is_told(self) -> bool:
        """Whether the client is told of changes here; one of the later era subscribes, at the library."""
        return self._peer.joined and not self._library.took_over

    def wait_until_answered(self, seconds: float) -> None:
        """Wait until no request waits for its answer any more."""
        with self._changed:
            self._changed.wait_for(lambda: all(flight.withdrawn for flight in self._flights), seconds)

    def stop(self) -> None:
        """Take every call back, the running and those to come; each is still answered (`CANCELLED`)."""
        with self._lock:
            self._stopping = True
        self._take_all_back()

    def close(self) -> None:
        """Take back what is left; it is answered that the connection has closed, as far as anybody reads."""
        with self._lock:
            self._closed = True
        self._questions.close_all()
        for flight in self._take_all_back():
            log.error("a call of %s goes on %g s after it was cancelled", flight.name, CALL_END_SECONDS)
            if self._claim(flight):
                self._crew.run(partial(self._send, _write(flight.identity, _closed())))
        self.wait_until_answered(_FLUSH_SECONDS)

    def _take_all_back(self) -> list[Flight]:
        """Cancel everything and wait for it; gives what goes on all the same."""
        with self._lock:
            flights = list(self._flights)
        for flight in flights:
            self._crew.run(flight.cancellation.cancel)
        with self._changed:
            self._changed.wait_for(lambda: all(flight.made for flight in flights), CALL_END_SECONDS)
        return [flight for flight in flights if not flight.made]

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        with self._lock:
            return all(flight.made for flight in self._flights)


def _closed() -> ProtocolError:
    return ProtocolError(CONNECTION_CLOSED, "Connection closed")


_encoder = msgspec.json.Encoder()


def _write(identity: int | str, made: Made) -> bytes:
    """Write an answer. One that JSON cannot hold is a bug, and costs no more than itself."""
    if isinstance(made, ProtocolError):
        return write_error(identity, made.code, made.message, made.data)
    try:
        return _encoder.encode({"jsonrpc": "2.0", "id": identity, "result": made})
    except (ValueError, TypeError, OverflowError) as error:
        told = explain(error, "an answer that cannot be written")
        return write_error(identity, told.code, told.message)
