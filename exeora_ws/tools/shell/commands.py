"""Commands at a shell: run on its own terminal, and started in the host, so that they outlive it."""

import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from exeora_ws.errors import ToolFailed
from exeora_ws.limits import RUN_OUTPUT_BYTES
from exeora_ws.names import WorkspaceId
from exeora_ws.processes.client import HostClient
from exeora_ws.processes.command import Command, Output
from exeora_ws.processes.everywhere import Seen, list_everywhere
from exeora_ws.processes.output import Tail
from exeora_ws.processes.records import Records, stop_process
from exeora_ws.processes.run import OnOutput, run
from exeora_ws.processes.terminal import run_at_terminal
from exeora_ws.tools.processes import (
    GET_COMMAND_OUTPUT,
    KILL_COMMAND,
    RUN_COMMAND,
    SEND_COMMAND_INPUT,
    START_COMMAND,
    BackgroundProcess,
    CommandLine,
    CommandOutput,
    Cwd,
    InputArguments,
    InputSent,
    KillArguments,
    KilledCommand,
    OutputArguments,
    Ran,
    StartArguments,
    StartedCommand,
    find_owner,
    open_command,
    show_run,
)
from exeora_ws.tools.services import Services
from exeora_ws.tools.shell import host
from exeora_ws.tools.spec import Arguments, Call, Result, Tool

_SLICE_SECONDS = 0.5
"""How long one question to the host waits for news: a caller that goes away is noticed that soon."""

AnyTool = Tool[Any, Any, Services]
_RUN: AnyTool = RUN_COMMAND


class ShellRunArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of run_command at a shell, where a command may take as long as it likes."""

    command: CommandLine
    cwd: Cwd | UnsetType = UNSET
    timeout_ms: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class RanHere(Result, frozen=True, kw_only=True):
    """Result of a command that had our own input and outputs."""

    command: str
    status: int
    """Its exit code, or 128 and the number of the signal that ended it."""
    timed_out: bool
    background_processes: list[BackgroundProcess] | UnsetType = UNSET


def join_words(words: list[str]) -> tuple[str, bool]:
    """Give the command line that words of a shell mean, and whether its words are run as they are, without a shell.

    One word is a shell line. Several are an argument vector: the line is what stands in questions and is judged, and
    `shlex.split` gives the words back.
    """
    if len(words) == 1:
        return words[0], False
    first, *rest = words
    # A shell would take it for a variable that is set, and so would whoever judges the line.
    quoted = "'" + first.replace("'", "'\"'\"'") + "'" if "=" in first else shlex.quote(first)
    return f"{quoted} {shlex.join(rest)}", True


def run_here(*, direct: bool, interactive: bool) -> AnyTool:
    """Give run_command on this process's own input and outputs; to be called in the main thread.

    Args:
        direct: run the words of the line without a shell.
        interactive: the outputs are a person's terminal.
    """

    def run_command(call: Call[ShellRunArguments, Services]) -> RanHere:
        asked, records = call.arguments, Records(call.services.database)
        try:
            with _open(call, asked.command, asked.cwd, direct=direct, interactive=interactive) as command:
                ended = run_at_terminal(
                    command, find_owner(call), records, timeout=_seconds(asked), is_there=_make_check(call)
                )
        finally:
            records.close()
        left = [BackgroundProcess(pid=each.pid, command=each.program) for each in ended.leftovers]
        return RanHere(
            command=asked.command,
            status=ended.status,
            timed_out=ended.timed_out,
            background_processes=left or UNSET,
        )

    return replace(_RUN, arguments=ShellRunArguments, result=RanHere, function=run_command)


def run_captured(*, direct: bool, on_output: OnOutput | None = None) -> AnyTool:
    """Give run_command without the tool's time limit; `on_output` is told everything as it comes."""

    def run_command(call: Call[ShellRunArguments, Services]) -> Ran:
        asked, tail = call.arguments, Tail(RUN_OUTPUT_BYTES)
        with _open(call, asked.command, asked.cwd, direct=direct) as command:
            finish = run(
                call.services.supervisor,
                command,
                find_owner(call),
                capture=tail,
                timeout=_seconds(asked),
                cancellation=call.cancellation,
                on_output=on_output,
            )
        return show_run(asked.command, finish, tail)

    return replace(_RUN, arguments=ShellRunArguments, function=run_command)


def status_of(result: dict[str, Any]) -> int | None:
    """Give the exit code that a shell shows for a result of run_command; None for one that ran out of time."""
    if result["timedOut"]:
        return None
    code = result["exitCode"]
    if code is not None:
        return int(code)
    name = str(result.get("signal", "SIGKILL"))
    number = signal.Signals[name].value if name in signal.Signals.__members__ else int(name.removeprefix("SIG"))
    return 128 + number


def start_in_host(*, direct: bool) -> AnyTool:
    """Give start_command for a command that outlives the shell it was started from."""

    def start_command(call: Call[StartArguments, Services]) -> StartedCommand:
        asked = call.arguments
        with _open(call, asked.command, asked.cwd, direct=direct) as command:
            started = HostClient(call.services.places, host.MODULE).start(command, find_owner(call))
        return StartedCommand(process_id=started.id, command=asked.command, pid=started.pid)

    return replace(START_COMMAND, function=start_command)


def read_from_host(show: Callable[[dict[str, Any]], None] | None = None, *, follow: bool = False) -> AnyTool:
    """Give get_command_output for what the host keeps.

    Args:
        show: is handed every chunk, as results show it, up to the end of what is there; without it one chunk is the
            result.
        follow: go on until the command has ended and all was read.
    """

    def get_command_output(call: Call[OutputArguments, Services]) -> CommandOutput:
        asked, host = call.arguments, _find_host(call)
        if show is None:
            return _show_output(asked.process_id, host.read(asked.process_id, asked.cursor, wait=asked.wait_ms / 1000))
        cursor, patience = asked.cursor, _SLICE_SECONDS if follow else 0.0
        while True:
            call.cancellation.raise_if_cancelled()
            output = host.read(asked.process_id, cursor, wait=patience)
            cursor = output.chunk.next_cursor
            shown = _show_output(asked.process_id, output)
            if shown.chunk or shown.skipped:
                show(msgspec.to_builtins(shown))
            elif not (follow and output.running):
                return shown

    return replace(GET_COMMAND_OUTPUT, function=get_command_output)


def send_to_host(*, end: bool) -> AnyTool:
    """Give send_command_input for what the host keeps; `end` closes the input after that."""

    def send_command_input(call: Call[InputArguments, Services]) -> InputSent:
        asked = call.arguments
        data = (asked.data + "\n" * asked.newline).encode("utf-8", "surrogateescape")
        return InputSent(
            process_id=asked.process_id, bytes_written=_find_host(call).send(asked.process_id, data, end=end)
        )

    return replace(SEND_COMMAND_INPUT, function=send_command_input)


def _kill_command(call: Call[KillArguments, Services]) -> KilledCommand:
    process_id = call.arguments.process_id
    seen = _require_seen(call)
    if seen.in_host:
        done = HostClient(call.services.places).kill(process_id)
        return KilledCommand(process_id=process_id, killed=done.killed, exit_code=done.code)
    stopped = stop_process(call.services.database, process_id)
    return KilledCommand(process_id=process_id, killed=stopped is not None, exit_code=None)


KILL_ANYWHERE: AnyTool = replace(KILL_COMMAND, function=_kill_command)
"""kill_command for whatever runs, whichever server started it."""


def list_processes(services: Services) -> list[Seen]:
    """List every command of this user's that runs, or has ended in the host and can still be read; oldest first."""
    return list_everywhere(services.database, HostClient(services.places))


@contextmanager
def _open(
    call: Call[Any, Services], line: str, cwd: str | UnsetType, *, direct: bool, interactive: bool = False
) -> Iterator[Command]:
    with open_command(call, line, cwd, interactive=interactive) as command:
        # Taken from the line, which is what was judged and allowed.
        yield replace(command, argv=tuple(shlex.split(line))) if direct else command


def _make_check(call: Call[Any, Services]) -> Callable[[str], bool]:
    registry = call.services.inventory.registry
    return lambda workspace: registry.find_root(WorkspaceId(workspace)) is not None


def _seconds(asked: ShellRunArguments) -> float | None:
    return None if isinstance(asked.timeout_ms, UnsetType) else asked.timeout_ms / 1000


def _require_seen(call: Call[Any, Services]) -> Seen:
    """See that the process is one of the place that the call was judged for."""
    place = call.require_place()
    for seen in list_processes(call.services):
        if seen.id == call.arguments.process_id and seen.workspace == place.workspace.id:
            return seen
    raise ToolFailed("there is no such process in this workspace", reason="unknown_process", hint="exeora ps")


def _find_host(call: Call[Any, Services]) -> HostClient:
    if not _require_seen(call).in_host:
        raise ToolFailed(
            "the process belongs to a server, and only that server's clients read it or write to it",
            reason="not_in_host",
            hint="exeora start keeps a command where every shell reaches it; exeora kill ends this one",
        )
    return HostClient(call.services.places)


def _show_output(process_id: str, output: Output) -> CommandOutput:
    return CommandOutput(
        process_id=process_id,
        chunk=output.chunk.text,
        next_cursor=output.chunk.next_cursor,
        skipped=output.chunk.skipped,
        running=output.running,
        exit_code=output.code,
    )
