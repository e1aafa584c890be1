"""Killing a call of `app.upkeep` at every step."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def run_upkeep(environment: dict[str, str], fatal: int, method: str, **arguments: object) -> dict | None:
    """One call, killed at step `fatal`; gives what it printed when that was not reached."""
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_upkeep", str(fatal), "app", method, json.dumps(arguments)],
        env=environment | {"PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"},
        capture_output=True,
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)
