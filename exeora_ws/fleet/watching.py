"""What a machine looks after beside its calls: that it and gateways are heard, that no call outlives its time."""

import logging
import threading
from collections.abc import Callable

from exeora_ws.errors import ToolTimeout
from exeora_ws.fleet import wire
from exeora_ws.fleet.clock import FleetClock, read_uptime
from exeora_ws.fleet.endings import Endings
from exeora_ws.fleet.hand import describe_error
from exeora_ws.fleet.line import Line
from exeora_ws.fleet.taken import WHOLE_SECONDS, Taken
from exeora_ws.fleet.tenancy import Tenants
from exeora_ws.limits import FLEET_ALIVE_SECONDS, FLEET_SILENT_CALL_SECONDS

log = logging.getLogger("exeora")

_TICK_SECONDS = 0.5


class Watch:
    """Looks twice a second, in a thread of its own.

    Args:
        line: the connection.
        clock: the fleet's time.
        taken: the calls in hand.
        tenants: whose sessions live here.
        endings: ends calls and sessions.
        lost_seconds: how long the connection may be gone before everything is ended.
        given_up: told when it was.
    """

    def __init__(
        self,
        line: Line,
        clock: FleetClock,
        taken: Taken,
        *,
        tenants: Tenants,
        endings: Endings,
        lost_seconds: float,
        given_up: Callable[[], None],
    ) -> None:
        self._line = line
        self._clock = clock
        self._taken = taken
        self._tenants = tenants
        self._endings = endings
        self._lost_seconds = lost_seconds
        self._given_up = given_up
        self._away = False
        self._ticked_at = read_uptime()
        """When it last looked: a long time ago where the whole machine was suspended."""
        self._heard_since = read_uptime()
        """Since when this machine hears and is heard."""
        self._was_heard = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._turn, name="fleet-watch", daemon=True)

    def open(self) -> None:
        """Begin."""
        self._ticked_at = read_uptime()
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._stopping.set()

    def find_heard_at(self) -> float:
        """Give when this machine could last be heard, by `read_uptime`."""
        return min(self._line.alive_at, self._ticked_at)

    def note_connection(self) -> None:
        """See whether this machine can be heard, and has been all the while."""
        now = read_uptime()
        silent, asleep = now - self._line.alive_at, now - self._ticked_at
        self._ticked_at = now
        if max(silent, asleep) > FLEET_SILENT_CALL_SECONDS:
            self._give_up_calls()
        heard = self._line.connected and silent <= FLEET_SILENT_CALL_SECONDS
        if heard:
            if not self._was_heard or asleep > FLEET_SILENT_CALL_SECONDS:
                self._heard_since = now
            self._away = False
        elif silent > self._lost_seconds and not self._away:
            self._away = True
            self._endings.cancel(self._taken.list())
            self._endings.end_sessions(self._tenants.end_all())
            self._given_up()
        self._was_heard = heard

    def _turn(self) -> None:
        said_at = 0.0
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                self.note_connection()
                self._look_at_calls()
                self._look_at_gateways()
                if read_uptime() - said_at >= FLEET_ALIVE_SECONDS:
                    said_at = read_uptime()
                    self._say_working()
            except Exception:
                log.exception("looking after calls of the fleet failed")

    def _give_up_calls(self) -> None:
        """Take back what nobody waits for any more: each caller has been told that its machine was lost."""
        calls = self._taken.list()
        for call in calls:
            if not call.cancellation.cancelled:
                log.warning("call %s is taken back: nobody could hear this machine", call.id)
            if call.unsent:
                self._taken.drop(call)
        self._endings.cancel(calls)

    def _look_at_calls(self) -> None:
        now, fleet_now = read_uptime(), self._clock.now_ms()
        for call in self._taken.list():
            if call.unsent and call.resend():
                self._taken.drop(call)
            elif not call.whole and now - call.came > WHOLE_SECONDS:
                late = ToolTimeout("the call never came whole; it has not run", reason="past_deadline")
                self._taken.finish(call, describe_error(late))
            elif call.envelope is not None and fleet_now > call.envelope.deadline:
                self._endings.cancel([call])
        self._taken.forget()

    def _look_at_gateways(self) -> None:
        if not self._was_heard:
            return  # nobody can be heard
        for gateway, sessions in self._tenants.end_silent(read_uptime(), self._heard_since).items():
            log.warning("gateway %s is not heard any more: what it started is ended", gateway)
            self._endings.cancel(call for call in self._taken.list() if call.gateway == gateway)
            self._endings.end_sessions(sessions)

    def _say_working(self) -> None:
        for call in self._taken.list():
            if not call.unsent:
                call.say(wire.Kind.WORKING)
