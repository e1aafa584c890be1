"""The threads that read the wire, and do what it asks for.

Handing a call from one thread to another costs a tenth of a millisecond on a busy machine, as much as many calls take.
So there is no thread that only reads: all that have nothing to do wait for the wire, the kernel wakes one of them, and
that one takes what has come and does it. Meanwhile another waits for what comes next.
"""

import logging
import select
import threading
from collections.abc import Callable

from exeora_ws.serve.crew import Crew, Job
from exeora_ws.serve.pipes import TooLong
from exeora_ws.serve.reception import Arrival

log = logging.getLogger("exeora")

Receive = Callable[[bytes | TooLong], Job | None]
"""Takes a line, in order, and gives what there is to do about it, which may take its time."""


class Readers:
    """Reads one wire to its end.

    Args:
        arrival: the wire.
        receive: takes each line.
        crew: does what readers do not do themselves.
        ended: called at the end of the input.
        most: how many read and work at once.
    """

    def __init__(self, arrival: Arrival, receive: Receive, crew: Crew, ended: Callable[[], None], *, most: int) -> None:
        self._arrival = arrival
        self._receive = receive
        self._crew = crew
        self._ended = ended
        self._most = most
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting = 0
        self._armed = False

    def start(self) -> None:
        """Begin."""
        try:
            self._wire = select.epoll(sizehint=1)
            self._wire.register(self._arrival.reader.descriptor, select.EPOLLIN)
            self._wire.unregister(self._arrival.reader.descriptor)  # nobody waits yet
        except (AttributeError, PermissionError):  # not on Linux; or the input is a file, which is never waited for
            threading.Thread(target=self._read_alone, name="wire in", daemon=True).start()
        else:
            self._add(self._begin)

    def _read_alone(self) -> None:
        try:
            while (line := self._arrival.read()) is not None:
                job = self._receive(line)
                if job is not None:
                    self._crew.run(job)
        except Exception:
            log.exception("a bug ended a session")
        self._ended()

    def _add(self, work: Callable[[], None]) -> None:
        self._threads += 1
        threading.Thread(target=work, name="call", daemon=True).start()

    def _begin(self) -> None:
        """Do first what has come already."""
        self._take(self._arrival.take_ready())
        self._work()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._waiting += 1
            self._wire.poll(maxevents=1)
            with self._lock:
                self._waiting -= 1
            self._take(self._arrival.reader.read_some())

    def _take(self, lines: "list[bytes | TooLong]") -> None:
        """Take lines, in order; then let the next thread read, and do what the last of them asks for."""
        try:
            jobs = [job for line in lines if (job := self._receive(line)) is not None]
        except Exception:
            log.exception("a bug ended a session")
            self._ended()
            return
        is_read = self._see_to_the_next() if jobs else False
        if self._arrival.reader.ended:
            self._ended()
        else:
            self._arm()
        for job in jobs[:-1] if is_read else jobs:
            self._crew.run(job)
        if is_read:
            jobs[-1]()

    def _see_to_the_next(self) -> bool:
        """Whether another thread waits for the wire, so that this one may be busy.

        What takes a call back must be read also when all are busy.
        """
        with self._lock:
            if self._waiting:
                return True
            if self._threads < self._most:
                self._add(self._work)
                return True
            return False

    def _arm(self) -> None:
        """Let one thread be woken. Told once and then no more until this is asked again: no two read at once."""
        events = select.EPOLLIN | select.EPOLLONESHOT
        (self._wire.modify if self._armed else self._wire.register)(self._arrival.reader.descriptor, events)
        self._armed = True
