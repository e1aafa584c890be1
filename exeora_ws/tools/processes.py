"""The command tools: run_command, start_command, get_command_output, send_command_input, kill_command."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from exeora_ws.cancellation import Progress, no_progress
from exeora_ws.errors import InvalidArguments
from exeora_ws.files.sizes import count_json_bytes, keep_newest
from exeora_ws.limits import (
    OUTPUT_WAIT_MAX_MS,
    RESULT_TEXT_BYTES,
    RUN_OUTPUT_BYTES,
    RUN_TIMEOUT_DEFAULT_MS,
    RUN_TIMEOUT_MAX_MS,
    RUN_TIMEOUT_MIN_MS,
)
from exeora_ws.processes.command import SHELL, Command, Owner, make_shell_command
from exeora_ws.processes.environment import make_environment
from exeora_ws.processes.output import Stream, Tail
from exeora_ws.processes.process import Finish
from exeora_ws.processes.run import OnOutput, run
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import READS, Arguments, Call, Hints, Needs, Result, Routing, Tool
from exeora_ws.tools.working_folder import open_working_folder
from exeora_ws.workspaces.place import Place

_PROGRESS_SECONDS = 0.25
_PROGRESS_CHARACTERS = 200
_JSON_BYTES_OF_A_BYTE = 6
"""At most."""

CommandLine = Annotated[str, Meta(min_length=1, description="Shell command line, for `/bin/sh -c`.")]
Cwd = Annotated[
    str, Meta(min_length=1, description="Folder to start in: relative to the workspace, or under `~/.agents/skills/`.")
]
ProcessId = Annotated[str, Meta(min_length=1, description="As start_command gave it.")]


class RunArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of run_command."""

    command: CommandLine
    cwd: Cwd | UnsetType = UNSET
    timeout_ms: Annotated[
        int,
        Meta(
            ge=RUN_TIMEOUT_MIN_MS,
            le=RUN_TIMEOUT_MAX_MS,
            description="Wall-clock time it may take, in milliseconds; then it is ended with all it started.",
        ),
    ] = RUN_TIMEOUT_DEFAULT_MS


class StartArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of start_command."""

    command: CommandLine
    cwd: Cwd | UnsetType = UNSET


class OutputArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of get_command_output."""

    process_id: ProcessId
    cursor: Annotated[int, Meta(ge=0, description="nextCursor of the previous answer; from the start by default.")] = 0
    wait_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=OUTPUT_WAIT_MAX_MS,
            description="Wait up to this many milliseconds for something new, instead of answering at once.",
        ),
    ] = 0


class InputArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of send_command_input."""

    process_id: ProcessId
    data: Annotated[str, Meta(max_length=1_000_000, description="Written to the standard input as it is.")]
    newline: Annotated[bool, Meta(description="Add a newline: most prompts wait for one.")] = True


class KillArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of kill_command."""

    process_id: ProcessId


class BackgroundProcess(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A process that a command left running."""

    pid: int
    command: str
    """Name of the program, without its arguments."""


class Ran(Result, frozen=True, kw_only=True):
    """Result of run_command."""

    command: str
    exit_code: int | None
    signal: str | UnsetType = UNSET
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    duration_ms: int
    background_processes: list[BackgroundProcess] | UnsetType = UNSET


class StartedCommand(Result, frozen=True, kw_only=True):
    """Result of start_command."""

    process_id: str
    command: str
    pid: int


class CommandOutput(Result, frozen=True, kw_only=True):
    """Result of get_command_output."""

    process_id: str
    chunk: str
    next_cursor: int
    skipped: int
    running: bool
    exit_code: int | None


class InputSent(Result, frozen=True, kw_only=True):
    """Result of send_command_input."""

    process_id: str
    bytes_written: int


class KilledCommand(Result, frozen=True, kw_only=True):
    """Result of kill_command."""

    process_id: str
    killed: bool
    exit_code: int | None


def _run_command(call: Call[RunArguments, Services]) -> Ran:
    asked, tail = call.arguments, Tail(RUN_OUTPUT_BYTES)
    with open_command(call, asked.command, asked.cwd) as command:
        finish = run(
            call.services.supervisor,
            command,
            find_owner(call),
            capture=tail,
            timeout=asked.timeout_ms / 1000,
            cancellation=call.cancellation,
            on_output=None if call.progress is no_progress else show_newest_line(call.progress),
        )
    return show_run(asked.command, finish, tail)


def show_run(line: str, finish: Finish, tail: Tail) -> Ran:
    """Give how a command ended as results show it; of output that JSON makes longer than an answer, the newest part."""
    left = [BackgroundProcess(pid=each.pid, command=each.program) for each in finish.leftovers]
    room = RESULT_TEXT_BYTES - count_json_bytes(line)
    stdout, stderr, cut = keep_newest(tail.text(Stream.STDOUT), tail.text(Stream.STDERR), room)
    return Ran(
        command=line,
        exit_code=finish.code,
        signal=finish.signal if finish.signal is not None else UNSET,
        stdout=stdout,
        stderr=stderr,
        truncated=tail.truncated or cut,
        timed_out=finish.timed_out,
        duration_ms=round(finish.seconds * 1000),
        background_processes=left or UNSET,
    )


def _fit(tail: Tail, room: int) -> None:
    """Drop the oldest output until JSON takes no more than `room` bytes for the rest: a control character takes six."""
    while (excess := sum(count_json_bytes(tail.text(stream)) for stream in Stream) - room) > 0:
        tail.drop_oldest(-(-excess // _JSON_BYTES_OF_A_BYTE))


def _start_command(call: Call[StartArguments, Services]) -> StartedCommand:
    asked = call.arguments
    with open_command(call, asked.command, asked.cwd) as command:
        started = call.services.supervisor.start(command, find_owner(call))
    return StartedCommand(process_id=started.id, command=asked.command, pid=started.pid)


def _get_command_output(call: Call[OutputArguments, Services]) -> CommandOutput:
    asked = call.arguments
    output = call.services.supervisor.require(asked.process_id, find_owner(call)).read(
        asked.cursor, wait=asked.wait_ms / 1000, cancellation=call.cancellation
    )
    return CommandOutput(
        process_id=asked.process_id,
        chunk=output.chunk.text,
        next_cursor=output.chunk.next_cursor,
        skipped=output.chunk.skipped,
        running=output.running,
        exit_code=output.code,
    )


def _send_command_input(call: Call[InputArguments, Services]) -> InputSent:
    asked = call.arguments
    try:
        data = (asked.data + "\n" * asked.newline).encode()
    except UnicodeEncodeError:
        raise InvalidArguments("data: holds half a character (a lone surrogate)", reason="invalid_text") from None
    running = call.services.supervisor.require(asked.process_id, find_owner(call))
    return InputSent(process_id=asked.process_id, bytes_written=running.send(data, cancellation=call.cancellation))


def _kill_command(call: Call[KillArguments, Services]) -> KilledCommand:
    process_id = call.arguments.process_id
    done = call.services.supervisor.kill(process_id, find_owner(call))
    return KilledCommand(process_id=process_id, killed=done.killed, exit_code=done.code)


def find_owner(call: Call[Any, Services]) -> Owner:
    """Say for whom a call's command runs."""
    place = call.require_place()
    return Owner(place.project.id, place.workspace.id, call.session)


def make_place_environment(
    place: Place, *, interactive: bool = False, user: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Make the environment of a command in a workspace, from the user's: that of this process unless given."""
    return make_environment(
        os.environ if user is None else user,
        project=place.project.slug,
        workspace=place.workspace.slug,
        path=str(place.root),
        interactive=interactive,
    )


@contextmanager
def open_command(
    call: Call[Any, Services],
    line: str,
    cwd: str | UnsetType = UNSET,
    *,
    shell: Sequence[str] = (SHELL, "-c"),
    user: Mapping[str, str] | None = None,
    interactive: bool = False,
) -> Iterator[Command]:
    """Make the command of a shell line in a call's workspace; it has to be started inside the `with` block.

    Args:
        call: where.
        line: the shell line.
        cwd: the folder to start in; the workspace's root unless given.
        shell: what the line is handed to.
        user: the user's environment; that of this process unless given.
        interactive: for a person at a terminal.
    """
    place = call.require_place()
    environ = make_place_environment(place, user=user, interactive=interactive)
    environ |= call.services.inventory.setup.make_environment(place)
    with open_working_folder(place.root, call.services.home, None if isinstance(cwd, UnsetType) else cwd) as folder:
        yield make_shell_command(line, cwd=folder.path, environ=environ, folder=folder.descriptor, shell=shell)


def show_newest_line(progress: Progress, clock: Callable[[], float] = time.monotonic) -> OnOutput:
    """Make a reader that tells the newest whole line of output, at most four times a second."""
    said_at = -_PROGRESS_SECONDS

    def show(_stream: Stream, data: bytes) -> None:
        nonlocal said_at
        lines = data.replace(b"\r", b"\n").split(b"\n")
        newest = next((line for line in reversed(lines) if line.strip()), None)
        if newest is not None and clock() - said_at >= _PROGRESS_SECONDS:
            said_at = clock()
            progress(newest.decode("utf-8", "replace").strip()[:_PROGRESS_CHARACTERS])

    return show


_ACTS = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
_UNKNOWN = {"unknown_process": "no such process in this workspace: never started here, or ended over ten minutes ago"}
START_REASONS = {
    "cwd_gone": "the folder to start in went as the command was started",
    "folder_missing": "the workspace's own folder is gone",
    "not_a_folder": "cwd is not a folder",
    "dangling_link": "cwd is a link that leads to nothing",
    "link_loop": "the links in cwd lead in a circle",
    "outside_root": "cwd leads out of the workspace",
    "absolute_path": "cwd is absolute",
    "invalid_path": "cwd holds a NUL or half a character",
    "name_too_long": "a name in cwd is longer than the system takes",
    "invalid_text": "the command holds a NUL or half a character",
    "not_started": "the system would not start the shell; the message has its words",
    "command_too_long": "longer than the system takes as one argument",
    "shutting_down": "the connection is being closed",
}

RUN_COMMAND = Tool(
    name="run_command",
    title="Run command",
    description=(
        "Run a shell command in the workspace and wait for it to end; gives its output and exit code. Standard input "
        "is empty. The newest 200,000 bytes of both outputs together are kept, `truncated` says when there was more. "
        "When its time is over it is ended with everything it started (`timedOut`). What it leaves running when it "
        "ends by itself is named in `backgroundProcesses` and ended: use start_command for servers and watchers. "
        "`exitCode` is null after a signal or a timeout."
    ),
    arguments=RunArguments,
    result=Ran,
    hints=_ACTS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_run_command,
    reasons=START_REASONS,
    command=lambda arguments: arguments.command,
)

START_COMMAND = Tool(
    name="start_command",
    title="Start command",
    description=(
        "Start a shell command that runs on while other calls are made: a server, a watcher, a long build. Answers at "
        "once with a `processId` for get_command_output, send_command_input and kill_command. It ends by itself, by "
        "kill_command, or with this connection; nothing is left running after that."
    ),
    arguments=StartArguments,
    result=StartedCommand,
    hints=_ACTS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_start_command,
    reasons=START_REASONS | {"too_many_processes": "as many run in this project as may: `data.processIds`"},
    command=lambda arguments: arguments.command,
)

GET_COMMAND_OUTPUT = Tool(
    name="get_command_output",
    title="Read command output",
    description=(
        "Read what a started command has written, both outputs in one stream, at most 100,000 bytes a call. Pass "
        "`nextCursor` as `cursor` to read on. The newest 256,000 bytes are kept; `skipped` counts the bytes that were "
        "lost before this chunk. With `waitMs` it answers as soon as there is something new. A command that has ended "
        "stays readable for ten minutes; all is read when `running` is false and the chunk is empty."
    ),
    arguments=OutputArguments,
    result=CommandOutput,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.RECORD,
    function=_get_command_output,
    reasons=_UNKNOWN | {"cursor_out_of_range": "the cursor is beyond what was written"},
)

SEND_COMMAND_INPUT = Tool(
    name="send_command_input",
    title="Send command input",
    description=(
        "Write to the standard input of a started command, for one that asks something. A command that does not read "
        "is waited for five seconds; `bytesWritten` says how much went in, the rest is not written."
    ),
    arguments=InputArguments,
    result=InputSent,
    hints=_ACTS,
    routing=Routing.OPTIONAL,
    needs=Needs.RECORD,
    function=_send_command_input,
    reasons=_UNKNOWN
    | {
        "not_running": "it has ended",
        "input_closed": "it does not read its input any more; `data.bytesWritten` went in",
        "invalid_text": "the data holds half a character",
    },
)

KILL_COMMAND = Tool(
    name="kill_command",
    title="Kill command",
    description=(
        "End a started command with everything it started: asked first, forced after two seconds; answers when "
        "nothing is left. `killed` is false when it had ended already, which is no error."
    ),
    arguments=KillArguments,
    result=KilledCommand,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    routing=Routing.OPTIONAL,
    needs=Needs.RECORD,
    function=_kill_command,
    reasons=_UNKNOWN | {"not_killed": "some of it could not be ended: `data.pids`"},
)

PROCESS_TOOLS: tuple[Tool[Any, Any, Services], ...] = (
    RUN_COMMAND,
    START_COMMAND,
    GET_COMMAND_OUTPUT,
    SEND_COMMAND_INPUT,
    KILL_COMMAND,
)
