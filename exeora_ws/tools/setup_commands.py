"""How a workspace's set-up commands run: as every other command, for a session of their own."""

from collections.abc import Mapping

from exeora_ws.cancellation import Cancellation
from exeora_ws.late import Late
from exeora_ws.limits import SETUP_OUTPUT_BYTES
from exeora_ws.processes.command import Owner, make_shell_command
from exeora_ws.processes.output import Stream, Tail
from exeora_ws.processes.run import run
from exeora_ws.processes.supervisor import Supervisor
from exeora_ws.tools.processes import make_place_environment
from exeora_ws.workspaces.place import Place
from exeora_ws.workspaces.setup import Ran, RunLine

_SESSION = "setup"


class _Mixed:
    """The end of both outputs, in the order they were written."""

    def __init__(self) -> None:
        self.tail = Tail(SETUP_OUTPUT_BYTES)

    def append(self, _stream: Stream, data: bytes) -> None:
        self.tail.append(Stream.STDOUT, data)


def make_line_runner(supervisor: Late[Supervisor]) -> RunLine:
    """Give what runs a shell line in a place and waits for its end."""

    def run_line(
        place: Place, line: str, environment: Mapping[str, str], seconds: float, cancellation: Cancellation
    ) -> Ran:
        environ = make_place_environment(place) | dict(environment)
        command = make_shell_command(line, cwd=str(place.root), environ=environ)
        owner = Owner(place.project.id, place.workspace.id, _SESSION)
        capture = _Mixed()
        finish = run(supervisor(), command, owner, capture=capture, timeout=seconds, cancellation=cancellation)
        return Ran(finish.code, finish.timed_out, capture.tail.text(Stream.STDOUT))

    return run_line
