"""A program on a terminal of its own, and what stands on its screen; it has a second one, as real terminals do."""

import fcntl
import os
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path

import pyte

_ALTERNATE = re.compile(rb"\x1b\[\?1049[hl]")


class Screen:
    """Runs a program; `lines` is what a person sees now."""

    def __init__(self, words, environ, folder: Path, *, columns: int = 120, rows: int = 30) -> None:
        # We hold its end open too: the terminal lives on when the program has gone, as a person's does.
        self.master, self._terminal = os.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self.pid = os.fork()
        if self.pid == 0:
            os.login_tty(self._terminal)
            os.close(self.master)
            os.chdir(folder)
            os.execvpe(words[0], list(words), environ)
        self.settings: list | None = None
        self.sent = b""
        self._main, self._other = pyte.Screen(columns, rows), pyte.Screen(columns, rows)
        self._streams = {False: pyte.ByteStream(self._main), True: pyte.ByteStream(self._other)}
        self.alternate = False

    @property
    def lines(self) -> list[str]:
        shown = self._other if self.alternate else self._main
        return [line.rstrip() for line in shown.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def main_text(self) -> str:
        return "\n".join(line.rstrip() for line in self._main.display).strip()

    def type(self, data: str) -> None:
        os.write(self.master, data.encode())

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_for(self, *texts: str, without: str | None = None, seconds: float = 30) -> str:
        """Wait until all stands on the screen, and `without` does not."""
        deadline = time.monotonic() + seconds
        while any(text not in self.text for text in texts) or (without is not None and without in self.text):
            assert time.monotonic() < deadline, f"waited for {texts}, there is:\n{self.text}"
            assert self._read(0.1) is not False, (
                f"it ended; waited for {texts}, there is:\n{self.text}\n{self.main_text}"
            )
        return self.text

    def wait_until(self, come, seconds: float = 30) -> None:
        """Wait for what happens elsewhere, reading on meanwhile."""
        deadline = time.monotonic() + seconds
        while not come():
            assert time.monotonic() < deadline, self.text
            self._read(0.02)

    def end(self) -> int:
        """Wait for its end; gives its exit code, and keeps in `settings` how it left the terminal."""
        deadline = time.monotonic() + 60
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            assert time.monotonic() < deadline, self.text
            self._read(0.02)
        while self._read(0):
            pass
        self.settings = termios.tcgetattr(self._terminal)
        os.close(self._terminal)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)

    def read_settings(self) -> list:
        """The terminal's modes: whether it echoes, takes lines, and so on."""
        return termios.tcgetattr(self._terminal)

    def _read(self, seconds: float) -> bool | None:
        if not select.select([self.master], [], [], seconds)[0]:
            return None
        try:
            block = os.read(self.master, 65_536)
        except OSError:
            return False
        self.sent += block
        at = 0
        for match in _ALTERNATE.finditer(block):
            self._streams[self.alternate].feed(block[at : match.start()])
            self.alternate = match[0].endswith(b"h")
            at = match.end()
        self._streams[self.alternate].feed(block[at:])
        return bool(block)
