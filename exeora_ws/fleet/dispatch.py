"""All machines, as a gateway calls them: its calls in flight, who is there, and the ends of sessions."""

import queue
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from nats.aio.client import Client

from exeora_ws.errors import ExeoraError
from exeora_ws.fleet import wire
from exeora_ws.fleet.line import Line, Message
from exeora_ws.fleet.remote import Answered, RemoteCall, Sending
from exeora_ws.limits import FLEET_ALIVE_SECONDS, FLEET_LOST_SECONDS, FLEET_START_SECONDS
from exeora_ws.tools.call import Asking, Caller

_PING_SECONDS = 0.4
_FLUSH_SECONDS = 1.0


class Machines:
    """All machines, as a gateway calls them. Thread-safe.

    Args:
        line: the connection that calls travel on.
        gateway: our id.
        now_ms: the fleet's time.
        policy: gives the account's policy as TOML; None where there is none.
    """

    def __init__(self, line: Line, gateway: str, now_ms: Callable[[], int], policy: Callable[[], str | None]) -> None:
        self._line = line
        self.gateway = gateway
        self._now_ms = now_ms
        self._policy = policy
        self._lock = threading.Lock()
        self._waiting: dict[str, RemoteCall] = {}
        self._visited: dict[str, set[wire.MachineId]] = {}
        """Where each session's calls have been: these are told when it ends."""
        self._endings: dict[str, _Ending] = {}
        self._pings: dict[str, queue.SimpleQueue[Message]] = {}

    def open(self) -> None:
        """Hear what machines say to us, and say every two seconds that we are there."""
        self._line.subscribe(wire.name_replies(self.gateway), self._take)
        self._say_alive()

    def _say_alive(self) -> None:
        self._line.post(wire.GATEWAY_ALIVE, wire.encode(wire.Alive(gateway=self.gateway)))
        self._repeat_endings()
        self._line.call_later(FLEET_ALIVE_SECONDS, self._say_alive)

    def call(self, sending: Sending, caller: Caller) -> Answered:
        """Have a machine do a call; gives what it answered.

        Raises:
            ExecutorOffline: nobody is there to run it; reason `connection_lost` where it may have run all the same.
            ToolTimeout: it takes longer than the tool may.
            Cancelled: the caller took it back.
            ExeoraError: what the call came to on the machine.
        """
        waiting = RemoteCall(sending, caller, wire.new_call_id(), self._line)
        with self._lock:
            self._visited.setdefault(caller.session, set()).add(sending.machine)
            self._waiting[waiting.call] = waiting
        try:
            return waiting.run(self._write(waiting))
        finally:
            with self._lock:
                del self._waiting[waiting.call]

    def _write(self, waiting: RemoteCall) -> wire.Envelope:
        sending, caller = waiting.sending, waiting.caller
        now, answer = self._now_ms(), caller.asking.answer
        return wire.Envelope(
            call=waiting.call,
            gateway=self.gateway,
            start_by=now + int(FLEET_START_SECONDS * 1000),
            deadline=now + int(sending.seconds * 1000),
            project=sending.project,
            tool=sending.tool,
            arguments=dict(sending.arguments),
            toolset=sending.toolset,
            client=caller.client,
            session=caller.session,
            read_only=caller.scope.read_only,
            policy=self._policy(),
            asks=_find_way(caller.asking),
            answer=None if answer is None else {"state": answer.state, "answer": answer.answer.value},
        )

    def _take(self, message: Message) -> None:
        """Hand a message to the call it is about; in the line's thread."""
        machine, call = wire.split_reply(message.subject)
        with self._lock:
            waiting, pings = self._waiting.get(call), self._pings.get(call)
            if self._endings.get(call, _NO_ENDING).machine == machine and not message.nobody:
                del self._endings[call]
        if pings is not None:
            pings.put(message)
        elif waiting is not None and waiting.sending.machine == machine:
            waiting.heard.put(message)

    def find_online(self, machines: Collection[wire.MachineId]) -> set[wire.MachineId]:
        """Ask machines whether they are there; those that have not said so in a moment are not.

        Of one that is not connected, the servers say so at once.
        """
        ping, said = wire.new_call_id(), queue.SimpleQueue[Message]()
        asked, silent, online = list(machines), set[wire.MachineId](), set[wire.MachineId]()
        end = time.monotonic() + _PING_SECONDS
        with self._lock:
            self._pings[ping] = said
        try:
            for machine in asked:
                self._line.post(wire.name_ping(machine), b"{}", reply=wire.name_reply(self.gateway, machine, ping))
            while self._line.connected and len(online) + len(silent) < len(asked):
                message = said.get(timeout=max(0.0, end - time.monotonic()))
                machine = wire.MachineId(wire.split_reply(message.subject)[0])
                (silent if message.nobody else online).add(machine)
        except queue.Empty:
            pass
        finally:
            with self._lock:
                del self._pings[ping]
        return online & set(asked)

    def close_session(self, session: str) -> None:
        """Have the machines where a session's calls have been end what it started.

        One that cannot hear it now is told again, until it has heard or has given us up.
        """
        data = wire.encode(wire.SessionEnd(gateway=self.gateway, session=session))
        until = time.monotonic() + FLEET_LOST_SECONDS
        with self._lock:
            machines = self._visited.pop(session, set())
            begun = {wire.new_call_id(): _Ending(machine, data, until) for machine in machines}
            self._endings |= begun
        for identity, ending in begun.items():
            self._send_ending(identity, ending)

    def _repeat_endings(self) -> None:
        now = time.monotonic()
        with self._lock:
            self._endings = {identity: ending for identity, ending in self._endings.items() if ending.until > now}
            left = list(self._endings.items())
        for identity, ending in left:
            self._send_ending(identity, ending)

    def _send_ending(self, identity: str, ending: "_Ending") -> None:
        reply = wire.name_reply(self.gateway, ending.machine, identity)
        self._line.post(wire.name_close(ending.machine), ending.data, reply=reply)

    def close(self) -> None:
        """See that what was said has left."""
        with suppress(ExeoraError):
            self._line.run(_flush, _FLUSH_SECONDS)


async def _flush(client: Client) -> None:
    await client.flush()


@dataclass(frozen=True, slots=True)
class _Ending:
    """The end of a session, as long as its machine has not said that it heard."""

    machine: wire.MachineId
    data: bytes
    until: float


_NO_ENDING = _Ending(wire.MachineId(""), b"", 0.0)


def _find_way(asking: Asking) -> wire.Asks:
    if asking.by_return:
        return wire.Asks.BY_RETURN
    return wire.Asks.NOBODY if asking.asker is None else wire.Asks.WHILE_WAITING
