"""Run calls in processes that are killed with SIGKILL at their Nth step.

A step is anything the process does to the world: every Python audit event that opens for writing, makes, renames,
removes or starts a process, and every SQL statement that changes what others can see. The product has no hook for this;
the interpreter has. What leaves the world as it was is no step, since a kill before it and one after it are the same:
unnamed files, devices, locks (the kernel releases them), reading the database, what a transaction holds until its end.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

TESTS = Path(__file__).parents[1]

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
    )
)


_ENDING = ("COMMIT", "END", "RELEASE")
_READING = ("SELECT", "BEGIN", "ROLLBACK", "PRAGMA", "SAVEPOINT")


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
        if self.armed and event in _EVENTS and not (event == "open" and _leaves_no_trace(*arguments)):
            self.step()

    def trace(self, connection: sqlite3.Connection, statement: str) -> None:
        word = statement.split(None, 1)[0].upper()
        if word in _ENDING or not (connection.in_transaction or word in _READING):
            self.step()


def _leaves_no_trace(path: object, _mode: object, flags: object) -> bool:
    if isinstance(flags, int) and not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return True
    # A folder that is opened for writing is where an unnamed file is made.
    return path in (os.devnull, os.fsencode(os.devnull)) or (isinstance(path, str | bytes) and os.path.isdir(path))


def serve() -> None:
    """Make one call for each line of input, in a forked child: the product is imported once for all."""
    import exeora_ws.app  # noqa: F401 - imported for the children

    for line in sys.stdin:
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(theirs, 1)
            os.close(ours)
            call(**json.loads(line))
            sys.stdout.flush()
            os._exit(0)
        os.close(theirs)
        with open(ours) as stream:
            printed = stream.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"code": code, "printed": printed}), flush=True)


def call(fatal: int, project: str, kind: str, name: str, arguments: dict) -> None:
    """Make one call of a tool, or of a method of `app.upkeep`; print its steps and what it came to.

    With `copying`, a new worktree is made of copies, however small it is.
    """
    from exeora_ws.app import open_app
    from exeora_ws.database import Database
    from exeora_ws.git import seeding

    if arguments.pop("copying", False):
        seeding.SEED_INDEX_BYTES = 0

    steps = Steps(fatal)
    connection_of = Database._connection

    def traced(self: Database):
        connection = connection_of(self)
        connection.set_trace_callback(partial(steps.trace, connection))
        return connection

    Database._connection = traced
    app = open_app()
    sys.addaudithook(steps.audit)
    work = (call_tool if kind == "tool" else call_upkeep)(app, project, name, arguments)
    steps.armed = True
    outcome = work()
    steps.armed = False
    print(json.dumps({"steps": steps.count, "outcome": outcome}))


def call_tool(app, project: str, name: str, arguments: dict):
    from exeora_ws.tools.call import Caller, Face, RawCall, Scope

    scope = Scope(bound=app.inventory.require_project(project).id)
    return lambda: app.calls.make(RawCall(name, arguments), Caller(Face.CLI, "killed", "s", scope)).to_dict()


def call_upkeep(app, project: str, name: str, arguments: dict):
    from exeora_ws.cancellation import Cancellation
    from exeora_ws.errors import ExeoraError

    found = app.inventory.require_project(project)
    selector = arguments.pop("place", None)
    subject = found if selector is None else app.inventory.require_place(found, selector)

    def work() -> dict | None:
        try:
            getattr(app.upkeep, name)(subject, **arguments, cancellation=Cancellation())
        except ExeoraError as refused:
            return {"error": refused.to_dict()}
        return {}

    return work


class Forker:
    """A process that makes calls in forked children, each of which may be killed at one of its steps."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.killed"],
            env=environment | {"PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, fatal: int, tool: str, project: str = "app", **arguments: object) -> dict | None:
        """Make one call, killed at step `fatal` (0: never); gives what it printed, None when it was killed."""
        return self._ask({"fatal": fatal, "project": project, "kind": "tool", "name": tool, "arguments": arguments})

    def upkeep(self, fatal: int, method: str, **arguments: object) -> dict | None:
        """The same for a method of `app.upkeep`; `place` is a selector."""
        return self._ask({"fatal": fatal, "project": "app", "kind": "upkeep", "name": method, "arguments": arguments})

    def _ask(self, asked: dict) -> dict | None:
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if answer["code"] == -signal.SIGKILL:
            return None
        assert answer["code"] == 0, answer
        return json.loads(answer["printed"])

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(30)


if __name__ == "__main__":
    serve()
