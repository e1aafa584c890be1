"""Which git is installed."""

import os
import re

from exeora_ws.git.command import clean_environment, decode, find_git, run
from exeora_ws.limits import GIT_READ_SECONDS

OLDEST = (2, 38)
"""The oldest git with everything that is asked of it: `merge-tree --write-tree`."""


def read_git_version() -> tuple[int, int] | None:
    """Ask git for its version; None when there is none, or it says nothing of the kind.

    Raises:
        ToolFailed: reason `git_failed`, when it cannot be started.
    """
    program = find_git()
    if program is None:
        return None
    said = decode(run([program, "version"], clean_environment(os.environ), seconds=GIT_READ_SECONDS).out)
    found = re.search(r"(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None
