"""What `exeora run` does at a terminal, for tests: run the line, say what was left, exit with its status."""

import os
import sys
from pathlib import Path

from exeora_ws.database import Database
from exeora_ws.processes.command import Owner, make_shell_command
from exeora_ws.processes.records import Records
from exeora_ws.processes.schema import PROCESS_MIGRATIONS
from exeora_ws.processes.terminal import run_at_terminal

database, line = sys.argv[1:]
records = Records(Database(Path(database), {"processes": PROCESS_MIGRATIONS}))
command = make_shell_command(line, cwd="/tmp", environ=dict(os.environ))
ended = run_at_terminal(command, Owner("prj_a", "wsp_a", "s"), records)
print(f"left={[left.program for left in ended.leftovers]} status={ended.status}", file=sys.stderr, flush=True)
sys.exit(ended.status)
