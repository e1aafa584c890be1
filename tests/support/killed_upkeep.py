"""Run one call of `app.upkeep` in a process that is killed with SIGKILL at its Nth step; see `support.killed`."""

import json
import sys

from support.killed import Steps


def main() -> None:
    fatal, project, method, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    from exeora_ws.app import open_app
    from exeora_ws.cancellation import Cancellation
    from exeora_ws.database import Database
    from exeora_ws.errors import ExeoraError

    steps = Steps(fatal)
    connection_of = Database._connection

    def traced(self: Database):
        connection = connection_of(self)
        connection.set_trace_callback(steps.step)
        return connection

    Database._connection = traced
    app = open_app()
    sys.addaudithook(steps.audit)
    found = app.inventory.require_project(project)
    selector = arguments.pop("place", None)
    subject = found if selector is None else app.inventory.require_place(found, selector)
    steps.armed = True
    error = None
    try:
        getattr(app.upkeep, method)(subject, **arguments, cancellation=Cancellation())
    except ExeoraError as refused:
        error = refused.to_dict()
    steps.armed = False
    print(json.dumps({"steps": steps.count, "error": error}))


if __name__ == "__main__":
    main()
