"""Threads for what may take its time, kept for the next; none of them keeps the process."""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

log = logging.getLogger("exeora")

Job = Callable[[], object]


class Crew:
    """Runs jobs, each in a thread. Thread-safe.

    Args:
        most: how many run at once; more wait their turn.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._waiting = 0

    def run(self, job: Job) -> None:
        """Have a job run, and wait for nothing."""
        more = False
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._threads < self._most:
                self._threads += 1
                more = True
            else:
                self._waiting += 1
        self._jobs.put(job)
        if more:
            threading.Thread(target=self._work, name="call", daemon=True).start()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except Exception:
                log.exception("a bug beside a call")
            with self._lock:
                if self._waiting:
                    self._waiting -= 1
                else:
                    self._idle += 1
