"""Many machines of a fleet, simulated: light answerers that speak the fleet's language, and callers at a given pace.

Each machine has a connection and a credential of its own; what it says a call came to was made up beforehand. Gateways
and nats-servers are the real ones. Calls begin when the clock says so, whether or not those before have been answered,
and each is timed from then: a gateway that falls behind shows it.

    python -m support.simulation machines    a process of machines; its task is one line of JSON on standard input
    python -m support.simulation callers     a process of callers; likewise
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from exeora_ws.fleet import nats_jwt, wire
from exeora_ws.fleet.buckets import INVENTORY_BUCKET, MACHINES_BUCKET, SLUGS_BUCKET, Bucket
from exeora_ws.fleet.documents import (
    MachineRecord,
    PolicyRecord,
    ProjectRecord,
    WorkspaceRecord,
    name_project_key,
    pack_project,
)
from exeora_ws.fleet.permissions import name_inbox
from nats.aio.client import Client
from nats.aio.msg import Msg

from support.gateway import Fleet, Gateway, eventually

INSTANCE = "simulated"
ANSWER = {"path": "README.md", "content": "line\n" * 200, "truncated": False, "totalLines": 200}
"""About a kilobyte, as `read_file` answers."""
_TOGETHER = 25
_IDLE_SECONDS = 10.0
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "simulation", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


# --- a process of machines ---


async def _live_as_machine(task: dict[str, Any], urls: list[str]) -> None:
    client, identity = Client(), task["id"]

    async def answer(message: Msg) -> None:
        await client.publish(message.reply, _TAKEN)
        await client.publish(message.reply, _DONE)

    async def hear(_message: Msg) -> None:
        pass

    async def present(message: Msg) -> None:
        await client.publish(message.reply, b"{}")

    await client.connect(
        urls,
        user_jwt_cb=lambda: bytearray(task["jwt"].encode()),
        signature_cb=lambda nonce: nats_jwt.sign_nonce(task["seed"], nonce),
        inbox_prefix=name_inbox(identity).encode(),
        max_reconnect_attempts=-1,
    )
    await client.subscribe(wire.name_call(identity, INSTANCE), cb=answer)
    await client.subscribe(wire.GATEWAY_ALIVE, cb=hear)
    await client.subscribe(wire.name_ping(identity), cb=present)
    await client.flush()


_TAKEN = wire.encode({"kind": wire.Kind.TAKEN})
_DONE = wire.encode({"kind": wire.Kind.DONE, "structured": ANSWER})


async def _run_machines(task: dict[str, Any]) -> None:
    machines = task["machines"]
    for start in range(0, len(machines), _TOGETHER):
        group = machines[start : start + _TOGETHER]
        await asyncio.gather(*(_live_as_machine(machine, task["urls"]) for machine in group))
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


# --- a process of callers ---


class _Caller:
    """One connection to a gateway, kept open; a call at a time."""

    def __init__(self, host: str, port: int, secret: str) -> None:
        self._host, self._port, self._secret = host, port, secret
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def call(self, slug: str) -> bool:
        """Call a project; whether it was answered with a result."""
        if time.perf_counter() - self._used > _IDLE_SECONDS:
            self.close()  # a server may just be closing it
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        params = {"name": "read_file", "arguments": {"path": "README.md"}, "_meta": _META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        writer.write(
            f"POST /p/{slug}/mcp HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Authorization: Bearer {self._secret}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: read_file\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        answer = await self._read(reader)
        self._used = time.perf_counter()
        done = b'"isError":false' in answer.replace(b" ", b"")
        if not done:
            print(answer.decode("utf-8", "replace")[:500], file=sys.stderr)
        return done

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.decode().split("\r\n"))
        }
        if "content-length" in fields:
            return await reader.readexactly(int(fields["content-length"]))
        body = b""
        while size := int((await reader.readline()).strip() or b"0", 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        return body

    def close(self) -> None:
        """Begin with a new connection next time."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _run_callers(task: dict[str, Any]) -> None:
    pick, gateways = random.Random(1), task["gateways"]
    idle: list[list[_Caller]] = [[] for _ in gateways]
    taken: list[tuple[float, float, bool]] = []
    begun = time.perf_counter()

    async def make(number: int) -> None:
        due, which = number / task["rate"], number % len(gateways)
        await asyncio.sleep(max(0.0, begun + due - time.perf_counter()))
        caller = idle[which].pop() if idle[which] else _Caller(*gateways[which], task["secret"])
        try:
            done = await asyncio.wait_for(caller.call(pick.choice(task["slugs"])), 30)
        except (OSError, ValueError, EOFError, TimeoutError):
            done = False
            caller.close()
        taken.append((due, time.perf_counter() - begun - due, done))
        idle[which].append(caller)

    await asyncio.gather(*(make(number) for number in range(int(task["rate"] * task["seconds"]))))
    print(json.dumps(taken), flush=True)


# --- the whole of it ---


@dataclass(frozen=True)
class Call:
    """When a call was due (seconds after the first), how long it took from then, whether it was answered."""

    due: float
    took: float
    done: bool


@dataclass(frozen=True)
class Used:
    """What a process used: seconds of processor, bytes of memory at the end (unshared)."""

    processor: float
    memory: int


@dataclass(frozen=True)
class Figures:
    """What came of it."""

    calls: list[Call]
    gateways: list[Used]
    nats: Used
    machines: Used

    def percentile(self, share: float, calls: Sequence[Call] | None = None) -> float:
        """The time within which so many of a hundred calls were answered."""
        took = sorted(call.took for call in (self.calls if calls is None else calls))
        return took[min(len(took) - 1, int(len(took) * share / 100))]

    def window(self, start: float, end: float) -> list[Call]:
        """The calls that were due within some seconds."""
        return [call for call in self.calls if start <= call.due < end]


class Simulation:
    """A fleet with simulated machines, each with one project.

    Args:
        folder: where it lives.
        machines: how many.
        processes: in how many processes.
        gateways: how many of those.
    """

    def __init__(self, folder: Path, machines: int, *, processes: int = 2, gateways: int = 1) -> None:
        self.fleet = Fleet(folder)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.slugs = [f"project-{number}" for number in range(machines)]
        tasks = self._register(machines)
        for number in range(processes):
            self._start_machines(tasks[number::processes])
        self.gateways: list[Gateway] = [self.fleet.start_gateway() for _ in range(gateways)]
        self.secret = self.fleet.make_token()
        eventually(lambda: self._count_slugs() == machines, 120)

    def _register(self, count: int) -> list[dict[str, str]]:
        """Add machines and publish what they have, as they would."""
        tasks = []
        with self.fleet.connected() as (lines, now_ms):
            machines, inventory = Bucket(lines.state, MACHINES_BUCKET), Bucket(lines.state, INVENTORY_BUCKET)
            for number in range(count):
                identity, project = wire.new_machine_id(), f"prj_simulated{number:07d}"
                made = self.fleet.keys.make_machine(identity, f"machine-{number}", self.fleet.urls)
                record = MachineRecord(name=made.name, public=made.line.public, added=time.time())
                machines.put(identity, wire.encode(record), 0)
                inventory.put(
                    name_project_key(identity, project), pack_project(_describe(identity, project, number, now_ms()))
                )
                tasks.append({"id": identity, "jwt": made.line.jwt, "seed": made.line.seed})
        return tasks

    def _start_machines(self, tasks: list[dict[str, str]]) -> None:
        process = _start("machines")
        assert process.stdin is not None
        process.stdin.write(json.dumps({"urls": self.fleet.urls, "machines": tasks}).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        self._processes.append(process)

    def _count_slugs(self) -> int:
        with self.fleet.connected() as (lines, _):
            return len(Bucket(lines.state, SLUGS_BUCKET).list())

    def load(self, rate: float, seconds: float) -> Figures:
        """Call at a pace for a while."""
        gateways = [url.url.removeprefix("http://").split(":") for url in self.gateways]
        task = {
            "gateways": [(host, int(port)) for host, port in gateways],
            "secret": self.secret,
            "slugs": self.slugs,
            "rate": rate,
            "seconds": seconds,
        }
        pids = [gateway.process.pid for gateway in self.gateways]
        nats, machines = self.fleet.servers[0].pid, [process.pid for process in self._processes]
        before = {pid: _read_processor(pid) for pid in (*pids, nats, *machines)}
        with _start("callers") as callers:
            out, _ = callers.communicate(json.dumps(task).encode() + b"\n")
        used = {pid: Used(_read_processor(pid) - before[pid], _read_memory(pid)) for pid in before}
        all_machines = Used(sum(used[pid].processor for pid in machines), sum(used[pid].memory for pid in machines))
        calls = [Call(*each) for each in json.loads(out)]
        return Figures(calls, [used[pid] for pid in pids], used[nats], all_machines)

    def close(self) -> None:
        """End all of it."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            process.wait(10)
        self.fleet.close()


@contextmanager
def simulating(folder: Path, machines: int, **options: Any) -> Iterator[Simulation]:
    simulation = Simulation(folder, machines, **options)
    try:
        yield simulation
    finally:
        simulation.close()


def _describe(machine: str, project: str, number: int, at: int) -> ProjectRecord:
    workspaces = [
        WorkspaceRecord(
            id=f"wsp_{number:06d}{each:02d}",
            slug="main" if each == 0 else f"topic-{each}",
            name="main" if each == 0 else f"topic/{each}",
            branch="main" if each == 0 else f"topic/{each}",
            managed=each > 0,
            available=True,
            path=f"/home/somebody/project-{number}/{each}",
        )
        for each in range(5)
    ]
    return ProjectRecord(
        machine=machine, instance=INSTANCE, id=project, slug=f"project-{number}", name=f"project-{number}",
        workspaces=workspaces, policy=PolicyRecord(mode="allow_all"), at=at,
    )  # fmt: skip


def _start(role: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "support.simulation", role],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _read_processor(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _read_memory(pid: int) -> int:
    return int(psutil.Process(pid).memory_full_info().uss)


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    asyncio.run({"machines": _run_machines, "callers": _run_callers}[sys.argv[1]](given))
