"""A child with its output piped here: what the processes room offers, in the plainest way that works."""

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

_TAIL_BYTES = 65_536


class PipedChild:
    """A running child; leaving its context kills it."""

    def __init__(self, argv: Sequence[str], cwd: str, environ: Mapping[str, str], stdin: bytes, pass_fds) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            self._process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=dict(environ),
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                pass_fds=tuple(pass_fds),
                bufsize=0,
            )
        self.stdout = self._process.stdout

    def stderr_tail(self) -> bytes:
        size = self._stderr.seek(0, 2)
        self._stderr.seek(max(size - _TAIL_BYTES, 0))
        return self._stderr.read()

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def kill(self) -> None:
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self.stdout.close()
        self._stderr.close()


def spawn_piped(
    argv: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    stdin: bytes | None = None,
    pass_fds: Sequence[int] = (),
) -> PipedChild:
    """Start it."""
    return PipedChild(argv, cwd, environ, stdin or b"", pass_fds)
