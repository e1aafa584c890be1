"""Run one call in a process that is killed with SIGKILL at its Nth step. Run as `python -m support.killed`.

A step is anything the process does to the world: every Python audit event that opens for writing, makes, renames,
removes or starts a process, and every SQL statement. The product has no hook for this; the interpreter has.
"""

import json
import os
import signal
import sys

_EVENTS = frozenset(
    (
        "open",
        "os.mkdir",
        "os.rename",
        "os.remove",
        "os.rmdir",
        "os.link",
        "os.symlink",
        "os.truncate",
        "subprocess.Popen",
        "os.posix_spawn",
        "shutil.rmtree",
        "shutil.copyfile",
        "fcntl.flock",
    )
)


class Steps:
    """Counts steps while armed, and kills the process at one of them."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.count = 0
        self.armed = False

    def step(self, *_: object) -> None:
        if not self.armed:
            return
        self.count += 1
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.armed and event in _EVENTS and not (event == "open" and _reads(arguments)):
            self.step()


def _reads(arguments: tuple[object, ...]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)


def main() -> None:
    fatal, project, tool, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    from exeora_ws.app import open_app
    from exeora_ws.database import Database
    from exeora_ws.tools.call import Caller, Face, RawCall, Scope

    steps = Steps(fatal)
    connection_of = Database._connection

    def traced(self: Database):
        connection = connection_of(self)
        connection.set_trace_callback(steps.step)
        return connection

    Database._connection = traced
    app = open_app()
    sys.addaudithook(steps.audit)
    scope = Scope(bound=app.inventory.require_project(project).id)
    steps.armed = True
    outcome = app.calls.make(RawCall(tool, arguments), Caller(Face.CLI, "killed", "s", scope))
    steps.armed = False
    print(json.dumps({"steps": steps.count, "outcome": outcome.to_dict()}))


if __name__ == "__main__":
    main()
