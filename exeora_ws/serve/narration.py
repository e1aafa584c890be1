"""Progress of one call to its client, from threads: the newest line, some a second at most."""

import threading

from exeora_ws.serve.crew import Crew
from exeora_ws.serve.messages import write_notification
from exeora_ws.serve.questions import Write
from exeora_ws.serve.sayings import FLUSH_SECONDS, INTERVAL_SECONDS, Said, Sayings


class Narration:
    """Tells a client how its call gets on.

    Args:
        token: what the client knows the call by.
        write: writes to it.
        crew: for the thread that sends, once there is something to be sent.
    """

    def __init__(self, token: int | str, write: Write, crew: Crew) -> None:
        self._token = token
        self._write = write
        self._crew = crew
        self._news = threading.Event()
        self._ended = threading.Event()
        self._turn = threading.Lock()
        self._begun = False
        self._sayings = Sayings(self._wake)
        self.say = self._sayings.say

    def _wake(self) -> None:
        begun, self._begun = self._begun, True
        if begun:
            self._news.set()
        else:
            self._crew.run(self._pump)

    def _pump(self) -> None:
        while not self._ended.is_set():
            self._news.clear()
            with self._turn:
                if self._ended.is_set():
                    return
                if (said := self._sayings.take_line()) is not None:
                    self._send(said)
                self._send_steps()
            self._ended.wait(INTERVAL_SECONDS)
            self._news.wait()

    def _send_steps(self) -> None:
        while (said := self._sayings.take_step()) is not None:
            self._send(said)

    def _send(self, said: Said) -> None:
        number, total, line = said
        params = {"progressToken": self._token, "progress": number}
        if total is not None:
            params["total"] = total
        if line is not None:
            params["message"] = line
        self._write(write_notification("notifications/progress", params))

    def end(self) -> None:
        """Send the steps that still wait: the answer is next. A client that does not read is not waited for."""
        if not self._begun:
            return
        if self._turn.acquire(timeout=FLUSH_SECONDS):
            self._ended.set()
            try:
                self._send_steps()
            finally:
                self._turn.release()
        self._ended.set()
        self._news.set()
