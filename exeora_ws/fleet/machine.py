"""A machine of the fleet: takes calls, has the core run them, and ends what belongs to a gateway that is gone.

Three things keep a call from running late or twice. Its id is remembered until no copy can be on its way any more. Its
`start_by` is looked at when it is whole, in the thread that runs it. Right before the tool's function the way
of a call asks once more (`Caller.require_wanted`): nothing runs beyond its deadline, nor when nobody could hear this
machine for a while, as after a suspension; whoever waited for it has been told by then.
"""

import logging
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from exeora_ws.app import App
from exeora_ws.errors import ExeoraError, InternalError, InvalidArguments, ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.fleet.clock import FleetClock, read_uptime
from exeora_ws.fleet.documents import PresenceRecord
from exeora_ws.fleet.endings import Endings
from exeora_ws.fleet.hand import CallInHand, describe_error
from exeora_ws.fleet.line import Line, Message
from exeora_ws.fleet.running import Runner
from exeora_ws.fleet.taken import Taken, leaving
from exeora_ws.fleet.tenancy import Tenants
from exeora_ws.fleet.watching import Watch
from exeora_ws.limits import CALL_END_SECONDS, FLEET_CALLS_AT_ONCE, FLEET_LOST_SECONDS

log = logging.getLogger("exeora")


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """How a machine serves.

    Args:
        lost_seconds: how long the connection may be gone before everything that gateways have started is ended.
        at_once: calls in hand; further ones are refused.
    """

    lost_seconds: float = FLEET_LOST_SECONDS
    at_once: int = FLEET_CALLS_AT_ONCE


class Machine:
    """Serves calls, from `open` to `close`.

    Args:
        app: the core.
        line: the connection, not yet opened or just so.
        machine: our id.
        clock: the fleet's time.
        describe: says who is here, for a ping.
        options: see there.
        changed: told after each call: it may have changed the inventory.
        given_up: told when the connection has been gone for so long that everything was ended.
    """

    def __init__(
        self,
        app: App,
        line: Line,
        machine: str,
        *,
        clock: FleetClock,
        describe: Callable[[], PresenceRecord],
        options: MachineOptions,
        changed: Callable[[], None] = lambda: None,
        given_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._line = line
        self._machine = machine
        self._describe = describe
        self._changed = changed
        self._tenants = Tenants()
        self._taken = Taken(options.at_once, clock)
        self._endings = Endings(app.close_session)
        self._watch = Watch(
            line,
            clock,
            self._taken,
            tenants=self._tenants,
            endings=self._endings,
            lost_seconds=options.lost_seconds,
            given_up=given_up,
        )
        self._runner = Runner(app, clock, self._tenants, self._watch.find_heard_at)
        self._workers = ThreadPoolExecutor(options.at_once, "fleet-call")

    def open(self) -> None:
        """Begin to take calls."""
        machine, subscribe = self._machine, self._line.subscribe
        self._watch.open()
        subscribe(wire.GATEWAY_ALIVE, self._take_alive)
        subscribe(wire.name_part(machine, "*"), self._take_part)
        subscribe(wire.name_cancel(machine, "*"), self._take_cancel)
        subscribe(wire.name_answer(machine, "*"), self._take_answer)
        subscribe(wire.name_close(machine), self._take_close)
        subscribe(wire.name_ping(machine), self._take_ping)
        self._taking = subscribe(wire.name_call(machine, self._describe().instance), self._take_call)

    def note_connected(self) -> None:
        """Note that there is a connection again; in the line's thread."""
        self._watch.note_connection()

    def close(self) -> bool:
        """Take every call back, answer it, and end all sessions; False when a call goes on in spite of that."""
        with suppress(ExeoraError):
            # The next caller is told at once that nobody is here; what came by now is answered below.
            self._taking.withdraw()
        self._taken.closed = True
        self._watch.close()
        calls = self._taken.list()
        for call in calls:
            if not call.whole:
                self._taken.finish(call, describe_error(leaving()))
        self._endings.cancel(calls)
        ended = self._taken.await_none(CALL_END_SECONDS)
        self._endings.end_sessions(self._tenants.end_all())
        self._endings.join(CALL_END_SECONDS)
        self._workers.shutdown(wait=False, cancel_futures=True)
        return ended

    # --- in the line's thread: nothing here may block ---

    def _take_call(self, message: Message) -> None:
        machine, identity = wire.split_reply(message.reply)
        if machine != self._machine or not identity:
            return  # no gateway asks like this
        if self._taken.remember(identity):
            log.warning("a copy of call %s was not run", identity)
            return
        gateway = message.reply.split(".")[2]
        call = CallInHand(identity, gateway, message.reply, self._line, read_uptime())
        refusal = self._taken.admit(call)
        if refusal is not None:
            call.finish(describe_error(refusal))
        else:
            call.say(wire.Kind.TAKEN)
            self._take_frame(call, message.data)

    def _take_part(self, message: Message) -> None:
        call = self._find_call(message)
        if call is not None and not call.whole:
            self._take_frame(call, message.data)

    def _take_frame(self, call: CallInHand, data: bytes) -> None:
        try:
            whole = call.frames.add(data)
            if whole is not None:
                call.whole = True
                self._workers.submit(self._run, call, whole)
        except ExeoraError as error:
            self._taken.finish(call, describe_error(error))
        except RuntimeError:  # the workers have been sent home
            self._taken.finish(call, describe_error(leaving()))

    def _take_cancel(self, message: Message) -> None:
        call = self._find_call(message)
        if call is not None:
            self._endings.cancel([call])

    def _take_answer(self, message: Message) -> None:
        call = self._find_call(message)
        if call is not None:
            call.take_answer(wire.decode(message.data))

    def _find_call(self, message: Message) -> CallInHand | None:
        return self._taken.find(message.subject.rpartition(".")[2])

    def _take_close(self, message: Message) -> None:
        try:
            over = wire.decode_as(wire.SessionEnd, message.data)
        except ExeoraError:
            return
        self._endings.end_sessions(self._tenants.end_session(over.gateway, over.session))
        if wire.split_reply(message.reply)[0] == self._machine:
            # Else it is said again: a session whose end nobody heard would leave its processes running.
            self._line.post(message.reply, wire.encode({}))

    def _take_ping(self, message: Message) -> None:
        machine, _ = wire.split_reply(message.reply)
        if machine == self._machine:
            self._line.post(message.reply, wire.encode(self._describe()))

    def _take_alive(self, message: Message) -> None:
        try:
            alive = wire.decode_as(wire.Alive, message.data)
        except ExeoraError:
            return
        self._tenants.hear(alive.gateway, read_uptime())

    # --- in a worker's thread ---

    def _run(self, call: CallInHand, whole: bytes) -> None:
        try:
            call.envelope = self._check(call, wire.decode_as(wire.Envelope, whole))
            done = self._runner.make(call, call.envelope)
        except ExeoraError as error:
            done = describe_error(error)
        except Exception:
            identity = secrets.token_hex(6)
            log.exception("bug %s in a call of the fleet", identity)
            done = describe_error(InternalError(f"internal error {identity}; see the log", data={"id": identity}))
        self._taken.finish(call, done)
        self._changed()

    def _check(self, call: CallInHand, envelope: wire.Envelope) -> wire.Envelope:
        if envelope.version > wire.VERSION:
            raise ToolFailed(
                "the gateway speaks a newer language than this machine",
                reason="machine_outdated",
                hint="upgrade exeora",
            )
        if (envelope.call, envelope.gateway) != (call.id, call.gateway):
            raise InvalidArguments("an envelope that belongs to another call", reason="bad_message")
        self._taken.remember_until(call.id, envelope.deadline)
        self._runner.require_on_time(envelope.start_by)
        return envelope
