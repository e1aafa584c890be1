"""`exeora mcp` for one project and the default tools: its client is answered before the core is loaded.

Nothing is written and no line is read before it is sure that this is the way; then there is no way back.
"""

import os

from exeora_cli.data_folder import find_config_file
from exeora_cli.snapshot import Snapshot, Unusual

TYPE_CHECKING = False
if TYPE_CHECKING:
    from exeora_ws.serve.reception import Arrival


def serve(selector: "str | None") -> int:
    """Serve a project over stdio until the client or a signal ends it; gives the exit code.

    Args:
        selector: the project's slug or id; None for the one around the current directory.

    Raises:
        Unusual: nothing was done; this is for the slow way.
    """
    snapshot = Snapshot(os.environ)
    project = snapshot.find_around()[0] if selector is None else snapshot.require_project(selector)
    config_file = find_config_file(os.environ)
    if config_file is None:
        raise Unusual
    from exeora_ws.serve.courtesies import Courtesies
    from exeora_ws.serve.manual import HOUSE_MANUAL
    from exeora_ws.serve.peer import Peer
    from exeora_ws.serve.pipes import LineReader, LineWriter, StandardStreams
    from exeora_ws.serve.reception import Arrival, Reception, find_listing

    with StandardStreams() as streams:
        arrival = Arrival(LineReader(streams.wire_in), LineWriter(streams.wire_out), Peer())
        courtesies = Courtesies(HOUSE_MANUAL, account=False)
        try:
            Reception(arrival, courtesies, lambda: find_listing(project["root"], config_file)).receive()
        except OSError:  # the client has gone
            return 0
        return _serve_on(project["id"], arrival)


def _serve_on(project: str, arrival: "Arrival") -> int:
    """Open the core and let it go on where the reception has stopped."""
    try:
        from exeora_ws.app import open_app
        from exeora_ws.names import ProjectId
        from exeora_ws.serve.stdio import serve_arrived
        from exeora_ws.tools.call import Scope

        app = open_app()
        app.upstreams.report_to(_report)
        try:
            serve_arrived(app, Scope(bound=ProjectId(project)), arrival)
        finally:
            app.close()
    except Exception as error:  # noqa: BLE001  told as every command's is
        from exeora_cli.program import explain

        return explain(error, json=False, speaks_tools=False)
    return 0


def _report(line: str) -> None:
    # Clients show a server's error output where they say what is wrong with it.
    from exeora_cli import answer

    answer.narrate([line])
