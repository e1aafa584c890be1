"""Starts server processes quickly: one process has everything imported and forks each of them.

python forge.py, with a socket as its standard input, over which `Forge` speaks to it.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_BYTES = 1_000_000


class Forge:
    """The process that forks, as a test sees it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._socket, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            self._process = subprocess.Popen([sys.executable, __file__], stdin=far, env=environment)

    def start(self, kind: str, words: list[str], environment: dict[str, str], folder: Path, streams: list[int]) -> int:
        """Start a server with these three streams; gives its pid."""
        asked = json.dumps([kind, words, environment, str(folder)]).encode()
        socket.send_fds(self._socket, [asked], streams)
        return json.loads(self._socket.recv(_BYTES))

    def wait(self, pid: int) -> int:
        """Wait for the end of one; gives its exit code, negative for a signal."""
        self._socket.send(json.dumps(pid).encode())
        return json.loads(self._socket.recv(_BYTES))

    def close(self) -> None:
        self._socket.close()
        self._process.wait(10)


def _serve() -> None:
    import exeora_ws.serve.behind  # noqa: F401 - what is imported now is not imported by each

    with socket.socket(fileno=0) as asked:
        while True:
            text, streams, _, _ = socket.recv_fds(asked, _BYTES, 3)
            if not text:
                return
            match json.loads(text):
                case int() as pid:
                    answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                case [kind, words, environment, folder]:
                    answer = os.fork()
                    if answer == 0:
                        _become(kind, words, environment, folder, streams)
            for stream in streams:
                os.close(stream)
            asked.send(json.dumps(answer).encode())


def _become(kind: str, words: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> None:
    code = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 100)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        if kind == "fixture":
            from support.mcp_server import serve_on_stdio

            serve_on_stdio(*words)
            code = 0
        else:
            from exeora_cli.main import main

            sys.argv = ["exeora", *words]
            code = main()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
