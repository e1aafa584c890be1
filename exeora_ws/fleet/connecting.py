"""`exeora connect`: one machine, from its credential to its goodbye."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from exeora_ws.app import App
from exeora_ws.errors import ExecutorOffline, ExeoraError, Forbidden, ToolFailed
from exeora_ws.fleet.clock import FleetClock, read_uptime
from exeora_ws.fleet.credentials import Credential, store_credential
from exeora_ws.fleet.line import Line, LineState
from exeora_ws.fleet.machine import Machine, MachineOptions
from exeora_ws.fleet.permissions import name_inbox
from exeora_ws.fleet.publishing import Publisher
from exeora_ws.locks import try_lock
from exeora_ws.storage import make_private_folder

log = logging.getLogger("exeora")

WAIT_SECONDS = 0.5
_NARRATE_SECONDS = 1.5
_CLOCK_SECONDS = 10.0
_PUBLISH_SECONDS = 5.0
_REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class ConnectEvent:
    """What becomes of a connection.

    `kind` is `waiting`, `connected`, `lost`, `back`, `given_up`, `warning`, `stopping` or `stopped`.
    """

    kind: str
    facts: dict[str, Any] = field(default_factory=dict)


Tell = Callable[[ConnectEvent], None]


def connect_machine(
    app: App, credential: Credential, options: MachineOptions, tell: Tell, stop: threading.Event
) -> bool:
    """Serve calls until told to stop; gives whether everything has ended.

    Args:
        app: the core; closed at the end.
        credential: a machine's. Kept in the data folder once it was accepted.
        options: see there.
        tell: told what happens, in any thread, must not block.
        stop: set from outside, also by a signal handler.

    Raises:
        ToolFailed: reason `already_connected`.
        Forbidden: reason `credential_refused`; everything has been ended.
    """
    with _alone(app), ExitStack() as leaving:
        leaving.callback(app.close)
        connection = _Connection(app, credential, options, tell, stop)
        return connection.serve()


@contextmanager
def _alone(app: App) -> Iterator[None]:
    folder = make_private_folder(app.places.data / "fleet")
    with try_lock(folder / "connect.lock") as alone:
        if not alone:
            raise ToolFailed(
                "this machine is connected already, by another exeora connect",
                reason="already_connected",
                hint="one is enough for all projects; end it first, or set EXEORA_DATA_DIR for a second machine",
            )
        yield


class _Connection:
    """One run."""

    def __init__(
        self, app: App, credential: Credential, options: MachineOptions, tell: Tell, stop: threading.Event
    ) -> None:
        self._app = app
        self._credential = credential
        self._tell = tell
        self._stop = stop
        self._options = options
        self._clock = FleetClock()
        self._line = Line(
            credential.urls,
            credential.line,
            name_inbox(credential.identity),
            name=f"exeora machine {credential.identity}",
            trust=credential.trust,
            on_state=self._note_state,
        )
        self._publisher = Publisher(app, self._line, self._clock, credential.identity, self._warn)
        self._machine = Machine(
            app,
            self._line,
            credential.identity,
            clock=self._clock,
            describe=self._publisher.describe_presence,
            options=options,
            changed=self._publisher.look,
            given_up=lambda: tell(ConnectEvent("given_up", {"seconds": options.lost_seconds})),
        )
        self._ready = False
        self._wake = threading.Event()
        self._refused_at: float | None = None

    def serve(self) -> bool:
        """Connect, serve, and leave nothing."""
        ended = True
        self._line.start()
        try:
            if self._await_connection():
                store_credential(self._app.places.data / "fleet" / "credential", self._credential)
                self._begin()
                try:
                    self._wait()
                finally:
                    self._say("stopping")
                    ended = self._machine.close()
                    self._publisher.close()
        finally:
            self._line.close()
        self._say("stopped")
        return ended

    def _await_connection(self) -> bool:
        """Wait for the first connection, however long; False when told to stop meanwhile."""
        told_at = read_uptime() + _NARRATE_SECONDS
        while not self._stop.is_set():
            if self._line.await_connected(WAIT_SECONDS):
                return True
            if read_uptime() >= told_at:
                told_at = float("inf")
                self._say("waiting", urls=list(self._credential.urls))
        return False

    def _begin(self) -> None:
        self._line.accompany(self._clock.keep)
        self._clock.await_known(_CLOCK_SECONDS)
        threading.Thread(target=self._prepare, name="fleet-prepare", daemon=True).start()
        self._machine.open()
        self._publisher.open()
        # Gateways send calls to this process once they have read of it.
        self._publisher.await_first(_PUBLISH_SECONDS)
        self._ready = True
        credential = self._credential
        self._say("connected", machine=credential.identity, name=credential.name, urls=list(credential.urls))

    def _prepare(self) -> None:
        """Load what makes calls cheaper. A failure costs only time, and later."""
        try:
            self._app.stay()
        except Exception:
            log.exception("preparing for a long life failed")

    def _wait(self) -> None:
        """Serve until told to stop, or sent away.

        Raises:
            Forbidden: the credential is not accepted any more.
        """
        while not self._stop.wait(WAIT_SECONDS):
            refused_at = self._refused_at
            if refused_at is not None and read_uptime() - refused_at > 0:
                raise Forbidden(
                    "this machine has been sent away: its credential is not accepted any more",
                    reason="credential_refused",
                    hint="exeora machine add, where the fleet's keys are, gives it a new one",
                )

    def _note_state(self, state: LineState, why: str) -> None:
        """In the line's thread."""
        if not self._ready:
            return
        if state is LineState.CONNECTED:
            self._refused_at = None
            self._machine.note_connected()
            self._publisher.begin_anew()
            self._say("back")
        elif state is LineState.LOST:
            self._say("lost")
        elif self._refused_at is None:
            # Servers that are just being set up may refuse one they will know in a moment; a revocation says so.
            patience = 0.0 if _REVOKED in why.lower() else self._options.lost_seconds
            self._refused_at = read_uptime() + patience

    def _warn(self, sentence: str) -> None:
        self._say("warning", message=sentence)

    def _say(self, kind: str, **facts: Any) -> None:
        self._tell(ConnectEvent(kind, facts))


__all__ = ["ConnectEvent", "ExecutorOffline", "ExeoraError", "connect_machine"]
