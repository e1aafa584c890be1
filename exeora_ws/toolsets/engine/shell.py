"""run_shell: a command in the workspace, waited for, or started in the background as one plain program."""

import re
from typing import Annotated

from msgspec import UNSET, Meta

from exeora_ws.errors import InvalidArguments
from exeora_ws.files.sizes import keep_newest
from exeora_ws.limits import RESULT_TEXT_BYTES, RUN_OUTPUT_BYTES, RUN_TIMEOUT_MAX_MS
from exeora_ws.processes.output import Stream, Tail
from exeora_ws.processes.process import Finish
from exeora_ws.processes.run import run
from exeora_ws.tools.processes import START_REASONS, find_owner, open_command, show_newest_line
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Call, Hints, Needs, Routing, Tool
from exeora_ws.toolsets.engine.words import Said, render_failure, render_said
from exeora_ws.toolsets.wording import SnakeArguments

SERVER_LOG = ".server.log"
_EARLY_SECONDS = 0.3
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_PARTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\n"), "a newline"),
    (re.compile(r"&&"), "&&"),
    (re.compile(r"\|\|"), "||"),
    (re.compile(r";"), ";"),
    (re.compile(r"(?<![<>&])&(?![>&])"), "&"),
    (re.compile(r"^[A-Za-z_]\w*="), "a variable in front"),
    (re.compile(r"^(?:cd|export|source|\.)(?:\s|$)"), "a prefix that only a shell knows"),
)


class ShellArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of run_shell."""

    command: Annotated[str, Meta(min_length=1, description="Shell command line.")]
    background: Annotated[
        bool, Meta(description="Start it and answer at once: for servers. One plain program, no compound command.")
    ] = False


def find_compound(command: str) -> str | None:
    """Name what keeps a command line from being one plain program; None when nothing does. Quoted text is no syntax."""
    bare = _QUOTED.sub("_", command.strip())
    return next((name for pattern, name in _PARTS if pattern.search(bare)), None)


def _run_shell(call: Call[ShellArguments, Services]) -> Said:
    return _start(call) if call.arguments.background else _run(call)


def _run(call: Call[ShellArguments, Services]) -> Said:
    tail = Tail(RUN_OUTPUT_BYTES)
    with open_command(call, call.arguments.command) as command:
        finish = run(
            call.services.supervisor,
            command,
            find_owner(call),
            capture=tail,
            timeout=RUN_TIMEOUT_MAX_MS / 1000,
            cancellation=call.cancellation,
            on_output=show_newest_line(call.progress),
        )
    text, errors, cut = keep_newest(tail.text(Stream.STDOUT), tail.text(Stream.STDERR), RESULT_TEXT_BYTES)
    if errors:
        text += f"\nSTDERR:\n{errors}"
    notes = _list_notes(finish, truncated=tail.truncated or cut)
    return Said(text=f"{text}\nExit code: {_show_code(finish)}", notice="; ".join(notes) or UNSET)


def _show_code(finish: Finish) -> str:
    if finish.timed_out:
        return f"none (ended after {RUN_TIMEOUT_MAX_MS // 1000} s)"
    return str(finish.code) if finish.code is not None else f"none ({finish.signal})"


def _list_notes(finish: Finish, *, truncated: bool) -> list[str]:
    notes = ["only the newest of the output is shown: there was more"] if truncated else []
    if finish.leftovers:
        left = ", ".join(f"{each.program} ({each.pid})" for each in finish.leftovers)
        notes.append(f"it left running, and what was ended: {left}")
    return notes


def _start(call: Call[ShellArguments, Services]) -> Said:
    line = call.arguments.command.strip()
    compound = find_compound(line)
    if compound is not None:
        raise InvalidArguments(
            f"command: holds {compound}, and in the background only one plain program can be started",
            reason="not_plain",
            hint="wrap it: sh -c '<script>'",
        )
    with open_command(call, f"exec {line} > {SERVER_LOG} 2>&1 < /dev/null") as command:
        started = call.services.supervisor.start(command, find_owner(call))
    running = call.services.supervisor.require(started.id, find_owner(call))
    if running.wait_end(_EARLY_SECONDS, call.cancellation):
        code = _show_code(running.process.require_finish())
        return Said(text=f"It has ended already. Its output is in {SERVER_LOG}.\nExit code: {code}")
    return Said(
        text=f"Started in the background (pid {started.pid}). Its output goes to {SERVER_LOG}: read_logs with source "
        f"file and target {SERVER_LOG} shows it. It ends with this connection."
    )


RUN_SHELL = Tool(
    name="run_shell",
    title="Run a shell command",
    description=(
        "Run a shell command in the workspace root; gives its output, then STDERR if there is any, then the exit code. "
        "It may take five minutes. With `background` one plain program is started and left running (a dev server), its "
        "output in .server.log; a compound command needs sh -c '<script>' then. For looking at files use search_files, "
        "list_files and read_file."
    ),
    arguments=ShellArguments,
    result=Said,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_run_shell,
    reasons={
        **START_REASONS,
        "not_plain": "in the background, only one plain program can be started",
        "too_many_processes": "as many run in this project as may",
    },
    command=lambda arguments: arguments.command,
    render=render_said,
    render_error=render_failure,
)
