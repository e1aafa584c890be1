"""A user who may not do everything: root is refused nothing, so what the system refuses is tried as somebody else."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[2]

# The folder is `sys.argv[1]`; whatever the code leaves in `told` is what the test gets.
_PROLOGUE = """
import ctypes, difflib, json, os, sys
from pathlib import Path
import pathspec
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError
from exeora_ws.files.editing import Keeping, edit_file, write_file
from exeora_ws.files.hunks import Hunk
from exeora_ws.files.listing import list_folder, list_tree
from exeora_ws.files.operation import Operation
from exeora_ws.files.patch import apply_patch
from exeora_ws.files.reach import Reach
from exeora_ws.files.reading import read_text
from exeora_ws.files.replacing import Replacement
from exeora_ws.files.ripgrep import Patience, Ripgrep, find_ripgrep
from exeora_ws.files.searching import Query, search
from exeora_ws.files.snapshots import Snapshots
from exeora_ws.processes.piped import spawn_piped
program = find_ripgrep(os.environ)
if os.geteuid() == 0:  # only now: the interpreter's own files may be closed to others
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
top = Path(sys.argv[1])
reach = Reach(top, top.parent)
keeping = Keeping(top.parent / "locks", Snapshots(top.parent / "snapshots"), "session-1", Cancellation())
ripgrep = Ripgrep(program, spawn_piped, os.environ)
patience = Patience(Cancellation())
def refused(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except ExeoraError as error:
        return [str(error.code), error.reason]
"""


@contextmanager
def open_folder_for_all() -> Iterator[Path]:
    """Make an empty root that anybody may enter and write; pytest's own folders are closed to others."""
    outer = Path(tempfile.mkdtemp(dir="/tmp", prefix="exeora-somebody-"))
    try:
        outer.chmod(0o777)
        top = outer / "app"
        top.mkdir()
        top.chmod(0o777)
        yield top
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", str(outer)], check=True)
        shutil.rmtree(outer)


def tell_as_somebody(code: str, top: Path) -> Any:
    """Run code as an ordinary user, with a reach over `top`; gives what it put into `told`."""
    environment = {**os.environ, "HOME": str(top.parent), "TMPDIR": str(top.parent), "PYTHONPATH": str(TOP)}
    done = subprocess.run(
        [sys.executable, "-c", f"{_PROLOGUE}\n{code}\nprint(json.dumps(told))", str(top)],
        env=environment,
        cwd="/",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)
