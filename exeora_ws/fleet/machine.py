"""A machine of the fleet: takes calls, has the core run them, and ends what belongs to a gateway that is gone.

Three things keep a call from running late or twice. Its id is remembered until no copy can be on its way any more. Its
`start_by` is looked at when it is whole, in the thread that runs it. Right before the tool's function the way
of a call asks once more (`Caller.require_wanted`): nothing runs beyond its deadline, nor when nobody could hear this
machine for a while, as after a suspension; whoever waited for it has been told by then.
"""

import logging
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from exeora_ws.app import App, open_calls
from exeora_ws.errors import ExecutorOffline, ExeoraError, InternalError, InvalidArguments, ToolFailed, ToolTimeout
from exeora_ws.fleet import wire
from exeora_ws.fleet.clock import FleetClock, read_uptime
from exeora_ws.fleet.documents import PresenceRecord
from exeora_ws.fleet.hand import CallInHand, GatewayAsker, describe_done, describe_error
from exeora_ws.fleet.line import Line, Message
from exeora_ws.fleet.tenancy import Tenants
from exeora_ws.limits import (
    FLEET_ALIVE_SECONDS,
    FLEET_CALLS_AT_ONCE,
    FLEET_LOST_SECONDS,
    FLEET_SILENT_CALL_SECONDS,
)
from exeora_ws.names import ProjectId
from exeora_ws.policy.gate import Answer, SignedAnswer
from exeora_ws.policy.layer import parse_policy_file
from exeora_ws.policy.rules import OPEN, Origin, Policy
from exeora_ws.tools.call import Asking, Caller, Calls, Face, RawCall, Scope

log = logging.getLogger("exeora")

END_SECONDS = 4.0
"""How long calls that were taken back are waited for at the end: a process tree gets 2 s before it is killed."""
_TICK_SECONDS = 0.5
_REMEMBER_SECONDS = 60.0
"""How much longer than its deadline an id is remembered."""
_WHOLE_SECONDS = 30.0
"""How long the frames of one call may take."""


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
        self._app = app
        self._line = line
        self._machine = machine
        self._clock = clock
        self._describe = describe
        self._options = options
        self._changed = changed
        self._given_up = given_up
        self._away = False
        self._tenants = Tenants()
        self._lock = threading.Lock()
        self._hand: dict[str, CallInHand] = {}
        self._remembered: dict[str, int] = {}
        """Ids of calls that came, and until when they are kept, in the fleet's milliseconds."""
        self._toolsets: dict[str, Calls] = {}
        self._workers = ThreadPoolExecutor(options.at_once, "fleet-call")
        self._endings: set[threading.Thread] = set()
        self._stopping = threading.Event()
        self._ticker = threading.Thread(target=self._turn, name="fleet-machine", daemon=True)
        self._heard_at = read_uptime()
        """When somebody could last hear this machine."""
        self._connected_since = read_uptime()
        self._was_connected = False

    def open(self) -> None:
        """Begin to take calls."""
        machine, subscribe = self._machine, self._line.subscribe
        self._heard_at = read_uptime()
        self._ticker.start()
        subscribe(wire.GATEWAY_ALIVE, self._take_alive)
        subscribe(wire.name_part(machine, "*"), self._take_part)
        subscribe(wire.name_cancel(machine, "*"), self._take_cancel)
        subscribe(wire.name_answer(machine, "*"), self._take_answer)
        subscribe(wire.name_close(machine), self._take_close)
        subscribe(wire.name_ping(machine), self._take_ping)
        self._taking = subscribe(wire.name_call(machine), self._take_call, queue=wire.QUEUE)

    def note_connected(self) -> None:
        """Note that there is a connection again; in the line's thread."""
        self._note_connection(read_uptime())

    def close(self) -> bool:
        """Take every call back, answer it, and end all sessions; False when a call goes on in spite of that."""
        with suppress(ExeoraError):
            # The next caller is told at once that nobody is here; what came by now is answered below.
            self._taking.withdraw()
        self._stopping.set()
        for call in self._list_hand():
            if not call.whole:
                self._finish(call, describe_error(_leaving()))
            self._cancel(call)
        ended = self._await_hand(END_SECONDS)
        self._end_sessions(self._tenants.end_all())
        for thread in list(self._endings):
            thread.join(END_SECONDS)
        self._workers.shutdown(wait=False, cancel_futures=True)
        return ended

    def end_everything(self) -> None:
        """End what gateways have started here, and take their calls back: they are gone for good."""
        for call in self._list_hand():
            self._cancel(call)
        self._end_sessions(self._tenants.end_all())

    # --- in the line's thread: nothing here may block ---

    def _take_call(self, message: Message) -> None:
        machine, identity = wire.split_reply(message.reply)
        if machine != self._machine or not identity:
            return  # no gateway asks like this
        if self._remember(identity):
            log.warning("a copy of call %s was not run", identity)
            return
        gateway = message.reply.split(".")[2]
        call = CallInHand(identity, gateway, message.reply, self._line, read_uptime())
        refusal = self._admit(call)
        if refusal is not None:
            call.finish(describe_error(refusal))
        else:
            call.say(wire.Kind.TAKEN)
            self._take_frame(call, message.data)

    def _remember(self, identity: str) -> bool:
        """Remember a call; gives whether it came before."""
        with self._lock:
            known = identity in self._remembered
            self._remembered.setdefault(
                identity, self._clock.now_ms() + int((_WHOLE_SECONDS + _REMEMBER_SECONDS) * 1000)
            )
            return known

    def _admit(self, call: CallInHand) -> ExeoraError | None:
        """Take a call in hand; gives what refuses it."""
        with self._lock:
            if self._stopping.is_set():
                return _leaving()
            if len(self._hand) >= self._options.at_once:
                return ToolFailed(
                    f"the machine has {self._options.at_once} calls in hand; this one has not run",
                    reason="machine_busy",
                    hint="try again when some have ended",
                )
            self._hand[call.id] = call
        return None

    def _take_part(self, message: Message) -> None:
        call = self._hand.get(message.subject.rpartition(".")[2])
        if call is not None and not call.whole:
            self._take_frame(call, message.data)

    def _take_frame(self, call: CallInHand, data: bytes) -> None:
        try:
            whole = call.frames.add(data)
            if whole is not None:
                call.whole = True
                self._workers.submit(self._run, call, whole)
        except ExeoraError as error:
            self._finish(call, describe_error(error))
        except RuntimeError:  # the workers have been sent home
            self._finish(call, describe_error(_leaving()))

    def _check(self, call: CallInHand, envelope: wire.Envelope) -> wire.Envelope:
        if envelope.version > wire.VERSION:
            raise ToolFailed(
                "the gateway speaks a newer language than this machine",
                reason="machine_outdated",
                hint="upgrade exeora",
            )
        if (envelope.call, envelope.gateway) != (call.id, call.gateway):
            raise InvalidArguments("an envelope that belongs to another call", reason="bad_message")
        with self._lock:
            self._remembered[call.id] = envelope.deadline + int(_REMEMBER_SECONDS * 1000)
        self._require_on_time(envelope.start_by)
        return envelope

    def _take_cancel(self, message: Message) -> None:
        call = self._hand.get(message.subject.rpartition(".")[2])
        if call is not None:
            self._cancel(call)

    def _take_answer(self, message: Message) -> None:
        call = self._hand.get(message.subject.rpartition(".")[2])
        if call is not None:
            call.take_answer(wire.decode(message.data))

    def _take_close(self, message: Message) -> None:
        try:
            over = wire.decode_as(wire.SessionEnd, message.data)
        except ExeoraError:
            return
        self._end_sessions(self._tenants.end_session(over.gateway, over.session))
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
            done = self._make(call, call.envelope)
        except ExeoraError as error:
            done = describe_error(error)
        except Exception:
            identity = secrets.token_hex(6)
            log.exception("bug %s in a call of the fleet", identity)
            done = describe_error(InternalError(f"internal error {identity}; see the log", data={"id": identity}))
        self._finish(call, done)
        self._changed()

    def _make(self, call: CallInHand, envelope: wire.Envelope) -> dict[str, object]:
        calls = self._require_calls(envelope.toolset)
        project = self._app.inventory.require_project(envelope.project)
        if project.id != envelope.project:
            raise InvalidArguments("a call of the fleet names its project by id", reason="bad_message")
        caller = Caller(
            Face.GATEWAY,
            envelope.client,
            self._tenants.name_session(envelope.gateway, envelope.session, read_uptime()),
            Scope(bound=project.id, granted=frozenset((ProjectId(project.id),)), read_only=envelope.read_only),
            call.cancellation,
            call.progress,
            _find_asking(call, envelope),
            _read_policy(envelope.policy),
            partial(self._require_wanted, envelope),
        )
        return describe_done(calls.make(RawCall(envelope.tool, envelope.arguments), caller))

    def _require_calls(self, toolset: str | None) -> Calls:
        if toolset is None:
            return self._app.calls
        with self._lock:
            known = self._toolsets.get(toolset)
        if known is None:
            known = open_calls(self._app, [toolset])
            with self._lock:
                self._toolsets[toolset] = known
        return known

    def _require_on_time(self, limit: int) -> None:
        now = self._clock.now_ms()
        if now > limit:
            raise ToolTimeout(
                f"the call came {(now - limit) / 1000:.1f} s too late; it has not run",
                reason="past_deadline",
                hint="call it again",
            )

    def _require_wanted(self, envelope: wire.Envelope) -> None:
        """See, right before the tool's function, that somebody still waits for it."""
        self._require_on_time(envelope.deadline)
        silent = read_uptime() - self._heard_at
        if silent > FLEET_SILENT_CALL_SECONDS:
            raise ToolTimeout(
                f"nobody could hear this machine for {silent:.0f} s; the call has not run", reason="past_deadline"
            )

    def _finish(self, call: CallInHand, done: dict[str, object]) -> None:
        if call.finish(done):
            self._drop(call)

    def _drop(self, call: CallInHand) -> None:
        with self._lock:
            self._hand.pop(call.id, None)

    # --- in the ticker's thread ---

    def _turn(self) -> None:
        said_at = 0.0
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                now = read_uptime()
                self._note_connection(now)
                self._look_at_calls(now)
                self._look_at_gateways(now)
                if now - said_at >= FLEET_ALIVE_SECONDS:
                    said_at = now
                    self._say_working()
            except Exception:
                log.exception("looking after calls of the fleet failed")

    def _note_connection(self, now: float) -> None:
        connected = self._line.connected
        if connected:
            if not self._was_connected or now - self._heard_at > FLEET_SILENT_CALL_SECONDS:
                self._connected_since = now
            if now - self._heard_at > FLEET_SILENT_CALL_SECONDS:
                self._give_up_calls("nobody could hear this machine")
            self._heard_at, self._away = now, False
        else:
            if now - self._heard_at > FLEET_SILENT_CALL_SECONDS:
                self._give_up_calls("the connection is gone")
            if now - self._heard_at > self._options.lost_seconds and not self._away:
                self._away = True
                self.end_everything()
                self._given_up()
        self._was_connected = connected

    def _give_up_calls(self, why: str) -> None:
        """Take back what nobody waits for any more: each caller has been told that its machine was lost."""
        for call in self._list_hand():
            if not call.cancellation.cancelled:
                log.warning("call %s is taken back: %s", call.id, why)
            self._cancel(call)
            if call.unsent:
                self._drop(call)

    def _look_at_calls(self, now: float) -> None:
        fleet_now = self._clock.now_ms()
        for call in self._list_hand():
            if call.unsent and call.resend():
                self._drop(call)
            elif not call.whole and now - call.came > _WHOLE_SECONDS:
                self._finish(call, describe_error(ToolTimeout("the call never came whole", reason="past_deadline")))
            elif call.envelope is not None and fleet_now > call.envelope.deadline:
                self._cancel(call)
        with self._lock:
            over = [identity for identity, until in self._remembered.items() if until < fleet_now]
            for identity in over:
                if identity not in self._hand:
                    del self._remembered[identity]

    def _look_at_gateways(self, now: float) -> None:
        if not self._was_connected:
            return  # nobody can be heard; see `_note_connection`
        for gateway, sessions in self._tenants.end_silent(now, self._connected_since).items():
            log.warning("gateway %s is not heard any more: what it started is ended", gateway)
            for call in self._list_hand():
                if call.gateway == gateway:
                    self._cancel(call)
            self._end_sessions(sessions)

    def _say_working(self) -> None:
        for call in self._list_hand():
            if not call.unsent:
                call.say(wire.Kind.WORKING)

    # --- for any thread ---

    def _list_hand(self) -> list[CallInHand]:
        with self._lock:
            return list(self._hand.values())

    def _cancel(self, call: CallInHand) -> None:
        if not call.cancellation.cancelled:
            # Whoever is told ends process trees, and that takes time.
            self._begin(call.cancellation.cancel)

    def _end_sessions(self, names: list[str]) -> None:
        for name in names:
            self._begin(partial(self._app.close_session, name))

    def _begin(self, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                work()
            except Exception:
                log.exception("ending something for the fleet failed")
            finally:
                self._endings.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="fleet-ending", daemon=True)
        self._endings.add(thread)
        thread.start()

    def _await_hand(self, seconds: float) -> bool:
        end = read_uptime() + seconds
        while self._list_hand():
            left = end - read_uptime()
            if left <= 0:
                return False
            threading.Event().wait(min(left, 0.01))
        return True


def _leaving() -> ExecutorOffline:
    return ExecutorOffline("the machine is leaving the fleet; the call has not run", reason="leaving")


def _find_asking(call: CallInHand, envelope: wire.Envelope) -> Asking:
    if envelope.asks is wire.Asks.WHILE_WAITING:
        return Asking(asker=GatewayAsker(call))
    if envelope.asks is wire.Asks.BY_RETURN:
        given = envelope.answer
        return Asking(by_return=True, answer=None if given is None else _read_answer(given))
    return Asking()


def _read_answer(given: dict[str, str]) -> SignedAnswer:
    try:
        return SignedAnswer(given["state"], Answer(given["answer"]))
    except (KeyError, ValueError) as error:
        raise InvalidArguments("an answer that cannot be read", reason="bad_message") from error


def _read_policy(text: str | None) -> Policy:
    """Read the account's policy; one that cannot be understood closes to read only."""
    return OPEN if text is None else parse_policy_file(text, Origin.ACCOUNT).policy
