"""The fleet's time, as this process knows it: the NATS servers' clock, carried on by one of our own that only grows."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime

import nats.errors
from nats.aio.client import Client

from exeora_ws.errors import ExecutorOffline
from exeora_ws.fleet.permissions import CLOCK

log = logging.getLogger("exeora")

_SAMPLES = 3
_SECONDS = 2.0
_AGAIN_SECONDS = 60.0
_SOON_SECONDS = 2.0


def read_uptime() -> float:
    """Give seconds that only grow, and go on while the machine is suspended where the system has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class FleetClock:
    """Knows the fleet's time. Thread-safe.

    Exact to `error_ms`: half the time that the best of three questions and its answer took. Two servers of a cluster
    may differ by more; their clocks are to be kept by NTP.

    Args:
        uptime: seconds that only grow.
    """

    def __init__(self, uptime: Callable[[], float] = read_uptime) -> None:
        self._uptime = uptime
        self._known = threading.Event()
        self._offset = 0.0
        self.error_ms = float("inf")

    def await_known(self, seconds: float) -> None:
        """Wait until the time is known.

        Raises:
            ExecutorOffline: reason `fleet_unreachable`.
        """
        if not self._known.wait(seconds):
            raise ExecutorOffline("the servers of the fleet do not tell their time", reason="fleet_unreachable")

    def now_ms(self) -> int:
        """Give the fleet's time in milliseconds since 1970; our own where it was never learnt."""
        if not self._known.is_set():
            return int(time.time() * 1000)
        return int((self._uptime() + self._offset) * 1000)

    async def keep(self, client: Client) -> None:
        """Learn the time on a connection, and again every minute. A `Companion` of a line."""
        while True:
            try:
                await self._learn(client)
                pause = _AGAIN_SECONDS
            except (nats.errors.Error, OSError, ValueError, KeyError) as error:
                log.debug("the fleet's time is not known: %r", error)
                pause = _SOON_SECONDS
            await asyncio.sleep(pause)

    async def _learn(self, client: Client) -> None:
        samples = [await self._ask(client) for _ in range(_SAMPLES)]
        way, self._offset = min(samples)
        self.error_ms = way * 500
        self._known.set()

    async def _ask(self, client: Client) -> tuple[float, float]:
        """Give the seconds of one question's way, there and back, and what to add to the uptime."""
        asked = self._uptime()
        answer = await client.request(CLOCK, b"", timeout=_SECONDS)
        answered = self._uptime()
        told = datetime.fromisoformat(json.loads(answer.data)["server"]["time"]).timestamp()
        return answered - asked, told - (asked + answered) / 2
