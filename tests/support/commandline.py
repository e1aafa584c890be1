"""The real `exeora`: as a process of its own, or in this one where hundreds of calls are made."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "exeora_cli.main")


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error of the one JSON document on stderr (its last line: narration may stand before it)."""
        document = json.loads(self.err.splitlines()[-1])
        assert document["schema"] == 1
        return document["error"]


def child_environment(sealed: dict[str, str]) -> dict[str, str]:
    """The environment in which a child finds the code under test."""
    return {**sealed, "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "cli"), str(TOP / "tests")])}


class CommandLine:
    """Runs `exeora` in a folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment

    def __call__(self, *words: str, folder: Path | None = None, stdin: str = "", **environment: str) -> Done:
        """Run it as a process to its end."""
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=folder or self.folder,
            env=child_environment(self.environment) | environment,
            input=stdin.encode(),
            capture_output=True,
            check=False,
        )
        decoded = [stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr)]
        return Done(done.returncode, *decoded)

    def start(self, *words: str, folder: Path | None = None) -> "subprocess.Popen[bytes]":
        """Start it and let it run."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=folder or self.folder,
            env=child_environment(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def inline(self, *words: str, folder: Path | None = None, slow: bool = False, stdin: str | bytes = b"") -> Done:
        """Run it in this process; with `slow`, past the hot commands."""
        from exeora_cli import main, program

        streams = sys.stdout, sys.stderr, sys.argv, os.getcwd(), sys.stdin
        given = stdin if isinstance(stdin, bytes) else stdin.encode()
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        try:
            os.chdir(folder or self.folder)
            sys.stdout, sys.stderr, sys.argv = out, err, ["exeora", *words]
            sys.stdin = io.TextIOWrapper(io.BytesIO(given), "utf-8")
            code = program.run(list(words)) if slow else main.main()
        finally:
            sys.stdout, sys.stderr, sys.argv = streams[:3]
            os.chdir(streams[3])
            sys.stdin = streams[4]
        return Done(code, *(stream.buffer.getvalue().decode("utf-8", "surrogateescape") for stream in (out, err)))
