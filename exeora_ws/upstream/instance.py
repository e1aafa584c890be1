"""One running server: launched in one directory, shaken hands with, its tools listed; then called until it is closed.

A failure says in which phase, with the exit code and the end of the error output, scrubbed of every secret.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from exeora_ws import __version__
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError, ToolFailed, ToolTimeout
from exeora_ws.upstream.launcher import find_launcher, find_working_directory, make_environment
from exeora_ws.upstream.listing import Listing, list_tools
from exeora_ws.upstream.messages import Message
from exeora_ws.upstream.peer import Connection, ConnectionLost, OnProgress, Peer, ProtocolError, RemoteError
from exeora_ws.upstream.redaction import make_redactor
from exeora_ws.upstream.server import Program, Server
from exeora_ws.upstream.transport_stdio import Spawn, StdioConnection

log = logging.getLogger("exeora")

OFFERED_VERSION = "2025-11-25"
KNOWN_VERSIONS = frozenset((OFFERED_VERSION, "2025-06-18", "2025-03-26", "2024-11-05"))

LIST_SECONDS = 30.0
"""How long a page of a running server's list may take."""

STDERR_BYTES = 16_384
"""How much error output the spawner keeps; a tail of that length is taken for cut."""

STDERR_SHOWN = 4_000
"""Characters of error output in an error."""


class Phase(StrEnum):
    """How far a server has come."""

    LAUNCH = "launch"
    INITIALIZE = "initialize"
    LIST = "tools/list"
    CALL = "tools/call"


@dataclass(frozen=True)
class Surroundings:
    """What a server is started with.

    Args:
        spawn: starts a child with pipes, its whole tree under one handle.
        environ: gives the user's environment for children, without tokens of ours.
        start_seconds: how long launch, handshake and listing may take together (a first `npx` downloads).
    """

    spawn: Spawn
    environ: Callable[[], Mapping[str, str]]
    start_seconds: float = 180.0


class Instance:
    """A server in one directory. Thread-safe; `start` is called once, by one thread.

    Args:
        server: what to run.
        directory: where a call acts; a remote server has none of its own.
        surroundings: with what.
        on_list_changed: told when the server says that its tools are others now; must return at once.
    """

    def __init__(
        self,
        server: Server,
        directory: Path,
        surroundings: Surroundings,
        on_list_changed: Callable[[], None],
    ) -> None:
        self.server = server
        self.directory = directory
        self.version: str | None = None
        self.about: Message = {}
        """What the server says of itself: `serverInfo`."""
        self._surroundings = surroundings
        self._redactor = make_redactor(server)
        self._on_list_changed = on_list_changed
        self._peer = Peer(self._take_notification)
        self._connection: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._listing_lock = threading.Lock()
        self._listing: Listing | None = None
        self._stale = 0
        self._deadline: float | None = None
        """When a start must be through."""

    @property
    def alive(self) -> bool:
        """Whether it can be asked; a process that has ended since is found out here."""
        if self._closed or self._peer.lost is not None:
            return False
        connection = self._connection
        return connection is None or not isinstance(connection, StdioConnection) or connection.running

    @property
    def last_listing(self) -> Listing | None:
        """Its tools as it last said them; nobody is asked."""
        return self._listing

    def start(self) -> None:
        """Launch, shake hands, list the tools.

        Raises:
            ToolFailed: reason `upstream_failed`, with `data` {server, phase, exitCode?, stderr?}. It is closed then.
        """
        self._deadline = time.monotonic() + self._surroundings.start_seconds
        steps = {Phase.LAUNCH: self._launch, Phase.INITIALIZE: self._shake_hands, Phase.LIST: self.list_tools}
        for phase, step in steps.items():
            try:
                step()
            except (ExeoraError, RemoteError, ProtocolError, ConnectionLost) as error:
                failure = self.explain(phase, error)
                self.close()
                raise failure from error
            except BaseException:
                self.close()
                raise
        self._deadline = None

    def list_tools(self) -> Listing:
        """Give its tools as of now: asks again only after it has said that they changed.

        Raises:
            ToolTimeout, RemoteError, ProtocolError, ConnectionLost: it did not say them.
        """
        with self._listing_lock:
            stale = self._stale
            if self._listing is None or stale:
                self._listing = list_tools(self._ask)
                with self._lock:
                    # A change that was announced while we read is still to be read.
                    self._stale -= stale
            return self._listing

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        seconds: float,
        cancellation: Cancellation | None,
        on_progress: OnProgress | None,
    ) -> Message:
        """Call a tool by the server's own name; gives the raw result. Raises as `Peer.request`."""
        params = {"name": tool, "arguments": dict(arguments)}
        return self._peer.request(
            "tools/call", params, seconds=seconds, cancellation=cancellation, on_progress=on_progress
        )

    def explain(self, phase: Phase, error: Exception) -> ToolFailed:
        """Say what went wrong, as a caller may read it."""
        data: dict[str, Any] = {"server": self.server.name, "phase": str(phase)}
        answered = isinstance(error, RemoteError | ProtocolError)
        if self._connection is not None and not (answered and phase is Phase.CALL):
            data |= self._describe_process(self._connection)
        if isinstance(error, RemoteError):
            data |= self._describe_answer(error)
        what = self._redactor.scrub(str(error) or type(error).__name__)
        if isinstance(error, ToolTimeout) and self._deadline is not None:
            what = f"not through within {self._surroundings.start_seconds:g} s"
        ended = f" (exit code {data['exitCode']})" if "exitCode" in data else ""
        return ToolFailed(
            f"upstream server {self.server.name!r}: {phase}: {what}{ended}",
            reason=_name_reason(phase, error),
            hint=None if phase is Phase.CALL else f"exeora upstream check {self.server.name}",
            data=data,
        )

    def close(self) -> None:
        """End it, its whole tree with it. May be called at any time, and twice."""
        with self._lock:
            self._closed = True
            connection = self._connection
        self._peer.lose(ConnectionLost("it was stopped"))
        if connection is not None:
            connection.close()

    def scrub(self, value: Any) -> Any:
        """Take every secret of this server out of a JSON value."""
        return self._redactor.scrub_value(value)

    def _describe_process(self, connection: Connection) -> dict[str, Any]:
        described: dict[str, Any] = {}
        if (code := connection.exit_code()) is not None:
            described["exitCode"] = code
        if tail := self._redactor.scrub_tail(connection.stderr_tail(), limit=STDERR_BYTES).strip():
            described["stderr"] = tail[-STDERR_SHOWN:]
        return described

    def _describe_answer(self, error: RemoteError) -> dict[str, Any]:
        described: dict[str, Any] = {"upstreamCode": self.scrub(error.code)}
        if error.data is not None:
            described["upstreamData"] = self.scrub(error.data)
        return described

    def _launch(self) -> None:
        connection = self._connect()
        with self._lock:
            if not self._closed:
                self._connection = connection
                self._peer.attach(connection)
                return
        connection.close()
        raise ConnectionLost("it was stopped")

    def _connect(self) -> Connection:
        reach = self.server.reach
        if not isinstance(reach, Program):
            # Loaded for remote servers only: it takes a tenth of a second.
            from exeora_ws.upstream.transport_http import HttpConnection  # noqa: PLC0415

            return HttpConnection(reach, self._peer)
        environ = make_environment(self.server, reach, self._surroundings.environ())
        argv = [find_launcher(reach.command, environ), *reach.args]
        child = self._surroundings.spawn(argv, cwd=str(find_working_directory(reach, self.directory)), environ=environ)
        return StdioConnection(child, self._peer)

    def _shake_hands(self) -> None:
        hello = {
            "protocolVersion": OFFERED_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "exeora", "version": __version__},
        }
        answer = self._peer.request("initialize", hello, seconds=self._patience(), withdraw=False)
        version = answer.get("protocolVersion")
        if version not in KNOWN_VERSIONS:
            raise ProtocolError(f"it speaks protocol version {str(version)[:40]!r}, which we do not")
        self.version = version
        about = answer.get("serverInfo")
        self.about = self.scrub(about) if isinstance(about, dict) else {}
        if self._connection is not None:
            self._connection.begin(version)
        self._peer.notify("notifications/initialized")

    def _ask(self, method: str, params: Mapping[str, Any]) -> Message:
        return self._peer.request(method, params, seconds=self._patience())

    def _patience(self) -> float:
        if self._deadline is None:
            return min(LIST_SECONDS, self._surroundings.start_seconds)
        return max(0.0, self._deadline - time.monotonic())

    def _take_notification(self, method: str) -> None:
        if method == "notifications/tools/list_changed":
            with self._lock:
                self._stale += 1
            self._on_list_changed()


def _name_reason(phase: Phase, error: Exception) -> str:
    if phase is not Phase.CALL:
        return "upstream_failed"
    if isinstance(error, RemoteError):
        return "upstream_error"
    return "upstream_protocol" if isinstance(error, ProtocolError) else "upstream_lost"
