"""Calls in flight while a machine, a gateway and a nats-server are killed and come back: none twice, none late."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import anyio
import pytest

from support.gateway import ERAS, run_world, until_true

pytestmark = pytest.mark.anyio

NAMED = {
    ("LOCAL_EXECUTOR_OFFLINE", "machine_offline"),
    ("LOCAL_EXECUTOR_OFFLINE", "connection_lost"),
    ("LOCAL_EXECUTOR_OFFLINE", "fleet_unreachable"),
    ("LOCAL_EXECUTOR_OFFLINE", "leaving"),
    ("TOOL_TIMEOUT", "past_deadline"),
    ("CANCELLED", None),
}
NOT_RUN = {"machine_offline", "fleet_unreachable", "leaving", "past_deadline"}


@dataclass
class Told:
    """What a caller was told of one call, and when."""

    number: str
    code: str
    reason: str | None
    at: float


@dataclass
class Callers:
    """Some callers, each in a thread with a client of its own, calling one project after the other until the end."""

    world: object
    over: threading.Event = field(default_factory=threading.Event)
    told: list[Told] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, count):
        for number in range(count):
            thread = threading.Thread(target=anyio.run, args=(self._live, number))
            thread.start()
            self.threads.append(thread)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), "a caller waits for ever"

    async def _live(self, number):
        made = 0
        while not self.over.is_set():
            gateway = self.world.gateways[(number + made) % 2]
            try:
                async with gateway.connect(ERAS[number % 2], self.world.secret) as client:
                    while not self.over.is_set() and gateway in self.world.gateways:
                        made += 1
                        await self._call(client, f"{number}.{made}", ("web", "app-two")[made % 2], made)
            except BaseException as error:
                if isinstance(error, AssertionError):
                    raise
                await anyio.sleep(0.1)

    async def _call(self, client, number, project, made):
        self.told.append(told := Told(number, "TRANSPORT", None, float("inf")))
        command = f"sleep {0.4 if made % 3 == 0 else 0}; echo {number} $(date +%s.%N) >> calls.txt"
        answer = await client.call_tool("run_command", {"project": project, "command": command})
        told.at = time.time()
        error = answer.structured_content.get("error", {})
        told.code, told.reason = error.get("code", "OK"), error.get("reason")


def read_runs(world):
    """Which calls ran, and when each did its work."""
    runs = []
    for name, slug in (("one", "web"), ("two", "app")):
        file = world.projects[name][slug].root / "calls.txt"
        if file.exists():
            runs += [line.split() for line in file.read_text().splitlines()]
    return [(number, float(at)) for number, at in runs]


async def serves(world):
    for gateway in world.gateways:
        for project in ("web", "app-two"):

            async def runs(gateway=gateway, project=project):
                async with gateway.connect("2026-07-28", world.secret) as client:
                    return not (await client.call_tool("run_command", {"project": project, "command": "true"})).is_error

            await until_true(runs, 20)


async def test_no_call_runs_twice_or_late_and_each_caller_is_told(tmp_path):
    with run_world(tmp_path) as world:
        fleet, callers = world.fleet, Callers(world)
        callers.start(4)
        try:
            await anyio.sleep(1)
            world.one.kill()
            await anyio.sleep(0.5)
            await anyio.to_thread.run_sync(fleet.start_again, "one")
            await anyio.sleep(1)
            killed = world.gateways[0]
            killed.kill()
            world.gateways[0] = await anyio.to_thread.run_sync(fleet.start_gateway)
            await anyio.sleep(1)
            fleet.kill_server()
            await anyio.sleep(0.5)
            await anyio.to_thread.run_sync(fleet.start_server)
            await anyio.sleep(2)
        finally:
            await anyio.to_thread.run_sync(callers.end)
        await serves(world)
        check(callers.told, read_runs(world))
        assert {told.code for told in callers.told} >= {"OK", "LOCAL_EXECUTOR_OFFLINE"}


def check(told, runs):
    counted, when = Counter(number for number, _ in runs), dict(runs)
    assert [number for number, count in counted.items() if count > 1] == []
    for each in told:
        ran = when.get(each.number)
        if each.code == "OK":
            assert ran is not None, f"{each} was not done"
        elif each.code != "TRANSPORT":
            assert (each.code, each.reason) in NAMED, each
            assert ran is None or ran <= each.at + 0.1, f"{each} ran {ran - each.at:.1f} s late"
            assert ran is None or each.reason not in NOT_RUN, f"{each} ran"
    print(Counter((each.code, each.reason) for each in told))
    answered = [each for each in told if each.code == "OK"]
    assert len(answered) > 20, told
