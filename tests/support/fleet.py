"""A fleet on loopback: real nats-servers, a gateway's side that a test holds in its hand, a network that can be cut."""

import json
import os
import queue
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from exeora_ws.app import App
from exeora_ws.errors import ExeoraError
from exeora_ws.fleet import wire
from exeora_ws.fleet.buckets import Bucket, ensure_buckets
from exeora_ws.fleet.connecting import ConnectEvent, connect_machine
from exeora_ws.fleet.credentials import Credential, Keys
from exeora_ws.fleet.documents import PresenceRecord, ProjectRecord, name_presence_key, unpack_project
from exeora_ws.fleet.frames import Assembler, split
from exeora_ws.fleet.line import Line, Message
from exeora_ws.fleet.machine import MachineOptions
from exeora_ws.fleet.permissions import INVENTORY_BUCKET, PRESENCE_BUCKET, name_inbox
from exeora_ws.fleet.roster import Roster
from exeora_ws.fleet.server import NatsServer, start_server
from exeora_ws.fleet.server_config import Cluster, ServerOptions


def find_free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@contextmanager
def run_server(folder: Path, keys: Keys, port: int = 0) -> Iterator[NatsServer]:
    with closing(start_server(keys, ServerOptions(folder, port=port))) as server:
        yield server


@contextmanager
def run_cluster(folder: Path, keys: Keys, count: int = 3) -> Iterator[list[NatsServer]]:
    """Several servers as one; it has a leader when this comes back."""
    ports = [find_free_port() for _ in range(count)]
    routes = tuple(f"127.0.0.1:{port}" for port in ports)
    servers: list[NatsServer] = []
    try:
        for number, port in enumerate(ports):
            cluster = Cluster("fleet", port, routes)
            options = ServerOptions(folder / str(number), name=f"n{number}", cluster=cluster)
            servers.append(start_server(keys, options))
        with operating(keys, tuple(server.url for server in servers)) as hand:
            end = time.monotonic() + 20
            while True:
                with suppress(Exception):
                    ensure_buckets(hand.state, replicas=count)
                    break
                assert time.monotonic() < end, "the cluster has no leader"
                time.sleep(0.2)
        yield servers
    finally:
        for server in servers:
            server.close()


class Heard:
    """What a machine said of one call."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.nobody = False
        self._news = threading.Condition()
        self._frames = Assembler()

    def take(self, message: Message) -> None:
        with self._news:
            if message.nobody:
                self.nobody = True
            elif (whole := self._frames.add(message.data)) is not None:
                self.said.append(wire.decode(whole))
            self._news.notify_all()

    def kinds(self) -> list[str]:
        return [said["kind"] for said in self.said]

    def wait(self, kind: str, seconds: float = 10.0) -> dict[str, Any]:
        """Wait until something of that kind was said; gives it."""

        def found() -> bool:
            return self.nobody or kind in self.kinds()

        with self._news:
            assert self._news.wait_for(found, seconds), f"{kind} was not said: {self.said}"
        assert not self.nobody, "nobody is there"
        return next(said for said in self.said if said["kind"] == kind)

    def done(self, seconds: float = 10.0) -> dict[str, Any]:
        return self.wait("done", seconds)

    def error(self, seconds: float = 10.0) -> dict[str, Any]:
        return self.done(seconds)["error"]


class Hand:
    """A gateway's side, by hand: sends envelopes as a test wants them, and keeps what comes back."""

    def __init__(self, keys: Keys, urls: tuple[str, ...]) -> None:
        self.keys, self.urls = keys, urls
        self.gateway = wire.new_gateway_id()
        credential = keys.make_gateway("hand", urls)
        assert credential.state is not None
        inbox = name_inbox(self.gateway)
        self.line = Line(urls, credential.line, inbox, name="hand")
        self.state = Line(urls, credential.state, inbox, name="hand state")
        self.roster = Roster(keys, self.state)
        self._heard: dict[str, Heard] = {}
        self._instances: dict[str, str] = {}
        self._alive = threading.Event()
        self._beating: threading.Thread | None = None

    def open(self) -> None:
        for line in (self.line, self.state):
            line.open()
        self.line.subscribe(wire.name_replies(self.gateway), self._take)

    def close(self) -> None:
        self._alive.set()
        for line in (self.line, self.state):
            line.close()

    def live(self) -> None:
        """Say that this gateway is there, now and until `die`."""
        self._alive = silent = threading.Event()
        data = wire.encode(wire.Alive(gateway=self.gateway))

        def beat() -> None:
            while True:
                self.line.post(wire.GATEWAY_ALIVE, data)
                if silent.wait(0.5):
                    return

        threading.Thread(target=beat, daemon=True).start()

    def die(self) -> None:
        self._alive.set()

    def _take(self, message: Message) -> None:
        heard = self._heard.get(wire.split_reply(message.subject)[1])
        if heard is not None:
            heard.take(message)

    def now(self) -> int:
        return int(time.time() * 1000)

    def envelope(self, project: str, tool: str, arguments: dict[str, Any] | None = None, **facts: Any) -> wire.Envelope:
        now = self.now()
        usual: dict[str, Any] = {
            "call": wire.new_call_id(),
            "gateway": self.gateway,
            "start_by": now + 10_000,
            "deadline": now + 60_000,
            "project": project,
            "tool": tool,
            "arguments": arguments or {},
            "session": "session-1",
            "client": "hand",
        }
        return wire.Envelope(**usual | facts)

    def send(self, machine: str, envelope: wire.Envelope) -> Heard:
        heard = self.listen(envelope.call)
        first, *rest = split(wire.encode(envelope), self.line.max_payload)
        reply = wire.name_reply(self.gateway, machine, envelope.call)
        self.line.publish(self.name_call(machine), first, reply=reply)
        for frame in rest:
            self.line.post(wire.name_part(machine, envelope.call), frame)
        return heard

    def listen(self, call: str) -> Heard:
        """Keep what is said of a call."""
        heard = self._heard[call] = Heard()
        return heard

    def name_call(self, machine: str) -> str:
        """Where the process that serves as this machine takes calls, as far as is known."""
        with suppress(ExeoraError):
            entry = Bucket(self.state, PRESENCE_BUCKET).find(name_presence_key(machine))
            if entry is not None:
                self._instances[machine] = wire.decode_as(PresenceRecord, entry.value or b"").instance
        return wire.name_call(machine, self._instances.get(machine, ""))

    def call(
        self, machine: str, project: str, tool: str, arguments: dict[str, Any] | None = None, **facts: Any
    ) -> Heard:
        return self.send(machine, self.envelope(project, tool, arguments, **facts))


@contextmanager
def operating(keys: Keys, urls: tuple[str, ...]) -> Iterator[Hand]:
    hand = Hand(keys, urls)
    try:
        hand.open()
        yield hand
    finally:
        hand.close()


class Wire:
    """A TCP proxy on loopback: a cable that can be cut, so that neither end is told."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._passing = threading.Event()
        self._passing.set()
        self._over = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._passing.clear()

    def mend(self) -> None:
        self._passing.set()

    def close(self) -> None:
        self._over.set()
        self._passing.set()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self._passing.wait()
        with near, suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as far:
            ends = {near: far, far: near}
            while not self._over.is_set():
                for end in select.select(list(ends), [], [], 0.2)[0]:
                    self._passing.wait()
                    data = end.recv(65_536)
                    if not data:
                        return
                    ends[end].sendall(data)


def make_credential(hand: Hand, name: str = "laptop", port: int | None = None) -> Credential:
    """Add a machine; its way to the server may lead through a cable that can be cut."""
    urls = hand.urls if port is None else (f"nats://127.0.0.1:{port}",)
    return hand.roster.add(name, urls)


def kill(server: NatsServer) -> None:
    """End a server as a power cut would."""
    os.kill(server.pid, 9)
    assert server.wait_for_end(5)


class MachineHere:
    """A connected machine in this process."""

    def __init__(self, app: App, credential: Credential, options: MachineOptions) -> None:
        self.app, self.credential = app, credential
        self.id = credential.identity
        self.stop = threading.Event()
        self.events: list[ConnectEvent] = []
        self.error: BaseException | None = None
        self.ended: bool | None = None
        self._news = threading.Condition()
        self._options = options
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.ended = connect_machine(self.app, self.credential, self._options, self._take, self.stop)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        with self._news:
            self._news.notify_all()

    def _take(self, event: ConnectEvent) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def wait(self, kind: str, seconds: float = 10.0) -> ConnectEvent:
        with self._news:
            found = self._news.wait_for(lambda: kind in self.kinds() or self.error is not None, seconds)
        if self.error is not None and kind not in self.kinds():
            raise self.error
        assert found, self.kinds()
        return next(event for event in self.events if event.kind == kind)

    def join(self, seconds: float = 10.0) -> None:
        self._thread.join(seconds)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self.stop.set()
        self.join()


@contextmanager
def connected(app: App, credential: Credential, **options: Any) -> Iterator[MachineHere]:
    machine = MachineHere(app, credential, MachineOptions(**options))
    try:
        machine.wait("connected")
        yield machine
    finally:
        machine.close()


def find_record(hand: Hand, machine: str, project: str) -> ProjectRecord | None:
    """What a machine has published of a project."""
    entry = Bucket(hand.state, INVENTORY_BUCKET).find(f"{machine}.{project}")
    return None if entry is None or entry.value is None else unpack_project(entry.value)


class Connect:
    """A running `exeora connect --json`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.seen: list[dict] = []
        self._lines: queue.Queue[dict | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def wait(self, kind: str, seconds: float = 20.0) -> dict:
        """Wait for the next event of a kind."""
        end = time.monotonic() + seconds
        while True:
            event = self._lines.get(timeout=max(0.01, end - time.monotonic()))
            assert event is not None, (self.seen, self.process.stderr.read())
            self.seen.append(event)
            if event["event"] == kind:
                return event

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float, str]:
        """End it; gives its exit code, how long that took, and its error output."""
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(15)
        assert self.process.stderr is not None
        return code, time.monotonic() - began, self.process.stderr.read().decode()
