"""A server that is killed by tests: starts what it is told over one database, then says so and waits."""

import os
import sys
import threading
import time
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.database import Database
from exeora_ws.processes.command import Owner, make_shell_command
from exeora_ws.processes.output import Tail
from exeora_ws.processes.records import Records
from exeora_ws.processes.run import run
from exeora_ws.processes.schema import PROCESS_MIGRATIONS
from exeora_ws.processes.spawn import get_server_tag
from exeora_ws.processes.supervisor import Supervisor

database, kind, workspace, *lines = sys.argv[1:]
supervisor = Supervisor(records=Records(Database(Path(database), {"processes": PROCESS_MIGRATIONS})))
for line in lines:
    command = make_shell_command(line, cwd="/", environ=dict(os.environ))
    owner = Owner("prj_a", workspace, "s")
    if kind == "start":
        supervisor.start(command, owner)
    else:
        more = {"capture": Tail(1000), "timeout": None, "cancellation": Cancellation()}
        threading.Thread(target=run, args=(supervisor, command, owner), kwargs=more, daemon=True).start()
while len(supervisor._running) < len(lines):
    time.sleep(0.01)
print(get_server_tag(), flush=True)
time.sleep(300)
