"""Programs as they are measured: started without a shell, their output read through a pipe to its end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_CHUNK_BYTES = 65_536


class CommandFailed(Exception):
    """A program that is measured did not do its work, so that its time means nothing."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, the folder it runs in, and its whole environment."""

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    good_codes: tuple[int, ...] = (0,)

    def with_variables(self, **variables: str) -> "Command":
        """The same with more in its environment."""
        return replace(self, environment={**self.environment, **variables})

    def run(self) -> None:
        """Run it to its end, reading and dropping its output. What it costs us to start it is a `posix_spawn`."""
        os.chdir(self.folder)  # nothing else runs in this process meanwhile
        pid, output = spawn(self.argv, self.environment)
        os.chdir("/")  # the folder may go
        with open(output, "rb", buffering=0) as stream:
            while stream.read(_CHUNK_BYTES):
                pass
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in self.good_codes:
            raise CommandFailed(f"{' '.join(self.argv)}: {code}\n{self.read_complaints()}")

    def check(self) -> str:
        """Run it once outside any measurement; gives its output."""
        done = subprocess.run(
            self.argv, cwd=self.folder, env=dict(self.environment), capture_output=True, text=True, check=False
        )
        if done.returncode not in self.good_codes:
            raise CommandFailed(f"{' '.join(self.argv)}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def read_complaints(self) -> str:
        """Run it again for what it writes to stderr."""
        done = subprocess.run(
            self.argv, cwd=self.folder, env=dict(self.environment), capture_output=True, text=True, check=False
        )
        return done.stderr


def spawn(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, int]:
    """Start a program with empty input and stderr nowhere; gives its pid and where its output comes out."""
    output, far = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, far, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
        return os.posix_spawn(argv[0], argv, environment, file_actions=actions), output
    finally:
        os.close(far)
        os.close(null)


def capture(argv: Sequence[str]) -> str:
    """Give what a program prints, both outputs."""
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    ).stdout
