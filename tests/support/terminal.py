"""A program on a terminal of its own, as a person has it."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, words, environ, folder=None):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(folder or ".")
            os.execvpe(words[0], words, environ)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", 33, 99, 0, 0))
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def wait_for(self, text, seconds=10):
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            assert self._read(0.1) is not False, self.text

    def _read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return None
        try:
            block = os.read(self.master, 4096)
        except OSError:
            return False
        self.text += re.sub(r"\x1b\[\?2004[hl]\r?", "", self._decoder.decode(block)).replace("\r\n", "\n")
        return bool(block)

    def type(self, data):
        os.write(self.master, data)

    def finish(self):
        while self._read(10):
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)
