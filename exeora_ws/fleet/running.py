"""One call of the fleet, made the way of every call: who calls, what they may reach, how long it is wanted."""

import threading
from collections.abc import Callable
from functools import partial

from exeora_ws.app import App, open_calls
from exeora_ws.errors import InvalidArguments, ToolTimeout
from exeora_ws.fleet import wire
from exeora_ws.fleet.clock import FleetClock, read_uptime
from exeora_ws.fleet.hand import CallInHand, GatewayAsker, describe_done
from exeora_ws.fleet.tenancy import Tenants
from exeora_ws.limits import FLEET_SILENT_CALL_SECONDS
from exeora_ws.names import ProjectId
from exeora_ws.policy.gate import Answer, SignedAnswer
from exeora_ws.policy.layer import parse_policy_file
from exeora_ws.policy.rules import OPEN, Origin, Policy
from exeora_ws.tools.call import Asking, Caller, Calls, Face, RawCall, Scope


class Runner:
    """Makes calls. Thread-safe.

    Args:
        app: the core.
        clock: the fleet's time.
        tenants: whose sessions live here.
        heard_at: gives when this machine could last be heard, by `read_uptime`.
    """

    def __init__(self, app: App, clock: FleetClock, tenants: Tenants, heard_at: Callable[[], float]) -> None:
        self._app = app
        self._clock = clock
        self._tenants = tenants
        self._heard_at = heard_at
        self._lock = threading.Lock()
        self._toolsets: dict[str, Calls] = {}

    def make(self, call: CallInHand, envelope: wire.Envelope) -> dict[str, object]:
        """Have the core run a call; gives its answer.

        Raises:
            ExeoraError: it does not get as far as the way of a call.
        """
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

    def require_on_time(self, limit: int) -> None:
        """See that a time has not passed; raises `ToolTimeout`, reason `past_deadline`."""
        now = self._clock.now_ms()
        if now > limit:
            raise ToolTimeout(
                f"the call came {(now - limit) / 1000:.1f} s too late; it has not run",
                reason="past_deadline",
                hint="call it again",
            )

    def _require_wanted(self, envelope: wire.Envelope) -> None:
        """See, right before the tool's function, that somebody still waits for it."""
        self.require_on_time(envelope.deadline)
        silent = read_uptime() - self._heard_at()
        if silent > FLEET_SILENT_CALL_SECONDS:
            raise ToolTimeout(
                f"nobody could hear this machine for {silent:.0f} s; the call has not run", reason="past_deadline"
            )


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
