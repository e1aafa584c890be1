"""A folder with an `exeora` to put on the PATH of a real shell."""

import shlex
import subprocess
import sys
from pathlib import Path

from support.commandline import child_environment


def install(folder: Path, sealed: dict[str, str]) -> dict[str, str]:
    """Make the program and give the environment in which shells find it."""
    folder.mkdir()
    program = folder / "exeora"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m exeora_cli.main "$@"\n')
    program.chmod(0o755)
    environment = child_environment(sealed)
    return environment | {"PATH": f"{folder}:{environment['PATH']}"}


def run_shell(shell: str, script: str, folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a script in a real shell without start-up files, to its end."""
    words = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}[shell]
    return subprocess.run(
        [*words, script], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
