"""run, each, start, ps, output, send, kill."""

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments, ToolFailed, ToolTimeout

from exeora_cli import answer, render_processes
from exeora_cli.completion import complete_process
from exeora_cli.group import Group
from exeora_cli.session import Session, session_of
from exeora_cli.stdin import decode_text, read_stdin
from exeora_cli.times import write_time

if TYPE_CHECKING:
    from exeora_ws.processes.everywhere import Seen

group = Group("Commands")

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="-- COMMAND…",
        help="Several words are run as they are, one quoted word is a shell line.",
        show_default=False,
    ),
]
Cwd = Annotated[
    str | None, typer.Option("--cwd", metavar="FOLDER", help="Where to start, relative to the workspace's root.")
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0.001, help="End it after that, with all it started."),
]
ProcessId = Annotated[
    str, typer.Argument(metavar="PROCESS", help="As start and ps give it.", autocompletion=complete_process)
]


@group.command(
    "run",
    """
    exeora run -- make test
    exeora run -w feature/login -- npm run build
    exeora run 'make test | tee log'
    exeora run --json --timeout 60 -- pytest -q
    """,
    (
        "The result of the tool `run_command`: `command`, `exitCode` or null, `signal?`, `stdout`, `stderr`, "
        "`truncated`, `timedOut`, `durationMs`, `backgroundProcesses[{pid, command}]?`."
    ),
    takes_command=True,
)
def run(ctx: typer.Context, words: Words, cwd: Cwd = None, timeout: Timeout = None) -> None:
    """Run a command in a workspace and give its exit code.

    It has this terminal, or whatever stdin, stdout and stderr are, to itself, and gets the signals that come. What it
    leaves running is ended and named. With --json its output is kept instead, the newest 200,000 bytes.
    """
    session = session_of(ctx)
    from exeora_ws.tools.shell.commands import join_words, run_captured, run_here, status_of

    line, direct = join_words(words)
    project, arguments = _locate(session, {"command": line, "cwd": cwd, "timeoutMs": _milliseconds(timeout)})
    if session.options.json:
        result = session.make(run_captured(direct=direct), arguments, project)
        answer.print_document(result)
        status = status_of(result)
        raise typer.Exit(answer.FAILED if status is None else status)
    result = session.make(
        run_here(direct=direct, interactive=answer.at_terminal()), arguments, project, shows_itself=True
    )
    answer.narrate(render_processes.tell_leftovers(result))
    if result["timedOut"]:
        raise ToolTimeout(f"the command took longer than {timeout:g} s and was ended", reason="timed_out")
    raise typer.Exit(result["status"])


@group.command(
    "each",
    """
    exeora each -- git status --short
    exeora each --jobs 2 -- make test
    exeora each --json 'git log -1 --format=%s'
    """,
    (
        "`workspaces[{workspace, …}]`, each with the result of `run_command` or an `error` as commands give it, and "
        "`failed`, how many failed."
    ),
    takes_command=True,
)
def each(
    ctx: typer.Context,
    words: Words,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="How many at once; one a processor.")
    ] = None,
    cwd: Cwd = None,
    timeout: Timeout = None,
) -> None:
    """Run a command in every workspace of the project, several at once; a table follows the output.

    Each line of output begins with its workspace. The exit code is 1 when it failed in any of them.
    """
    session = session_of(ctx)
    session.refuse_workspace("each")
    project = session.require_project()
    from exeora_cli.side_by_side import SideBySide

    running = SideBySide(session, project, words, {"cwd": cwd, "timeoutMs": _milliseconds(timeout)})
    results = running.run(jobs or os.cpu_count() or 1)
    failed = sum(1 for result in results if not render_processes.succeeded(result))
    if session.options.json:
        answer.print_document({"workspaces": results, "failed": failed})
    else:
        answer.print_lines(render_processes.show_table(results))
    raise typer.Exit(answer.FAILED if failed else answer.DONE)


@group.command(
    "start",
    """
    exeora start -- npm run dev
    exeora -w feature/login start 'python -m http.server 8080'
    id=$(exeora start -- make watch)
    """,
    "The result of `start_command`: `processId`, `command`, `pid`.",
    takes_command=True,
)
def start(ctx: typer.Context, words: Words, cwd: Cwd = None) -> None:
    """Start a command that runs on when this shell has gone, and print its id.

    `ps` lists it, `output` shows what it writes, `send` writes to it, `kill` ends it. At most 8 run in a project.
    """
    session = session_of(ctx)
    from exeora_ws.tools.shell.commands import join_words, start_in_host

    line, direct = join_words(words)
    project, arguments = _locate(session, {"command": line, "cwd": cwd})
    result = session.make(start_in_host(direct=direct), arguments, project)
    session.show(result, lambda made: render_processes.show_started(made, arguments["workspace"]))


@group.command(
    "ps",
    """
    exeora ps
    exeora ps --all
    exeora -w feature/login ps --json
    """,
    (
        "`processes[{processId, kind, project, workspace, command, pid, startedAt, running, exitCode, signal?, "
        "readable}]`. `kind` is `run` for one that somebody waits for, else `start`; `exitCode` is null while it runs "
        "and after a signal; `readable` says whether output and send reach it."
    ),
)
def ps(
    ctx: typer.Context,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also what has ended and can still be read.")] = False,
) -> None:
    """List what runs, whichever shell or server started it: in all projects, or in the one that is named."""
    session = session_of(ctx)
    shown = [_describe(session, seen) for seen in _list_processes(session) if seen.running or everything]
    session.show({"processes": _filter(session, shown)}, render_processes.show_processes)


@group.command(
    "output",
    """
    exeora output prc_0123456789abcdef01234567
    exeora output prc_0123456789abcdef01234567 --follow
    exeora output prc_0123456789abcdef01234567 --json --cursor 4096 --wait 10
    """,
    (
        "The result of `get_command_output`: `processId`, `chunk`, `nextCursor`, `skipped`, `running`, `exitCode` or "
        "null. With `--follow` one document a line, for each chunk, and a last one when it has ended."
    ),
)
def output(
    ctx: typer.Context,
    process: ProcessId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it has ended.")] = False,
    cursor: Annotated[
        int | None, typer.Option("--cursor", metavar="BYTE", help="Where to go on; the start by default.")
    ] = None,
    wait: Annotated[
        float | None, typer.Option("--wait", metavar="SECONDS", help="With --json: wait for something new, 30 at most.")
    ] = None,
) -> None:
    """Print what a started command wrote: the newest 256,000 bytes are kept, for ten minutes after its end."""
    session = session_of(ctx)
    json = session.options.json
    if wait is not None and (follow or not json):
        raise InvalidArguments("--wait: only with --json and without --follow", reason="conflicting_fields")
    project, arguments = _find_process(session, process)
    arguments |= _given({"cursor": cursor, "waitMs": _milliseconds(wait)})
    from exeora_ws.tools.shell.commands import read_from_host

    if json and not follow:
        answer.print_document(session.make(read_from_host(), arguments, project))
        return
    show = render_processes.print_chunk_document if json else render_processes.print_chunk
    last = session.make(read_from_host(show, follow=follow), arguments, project, shows_itself=True)
    if json:
        answer.print_document(last)
    else:
        answer.narrate(render_processes.tell_state(last))


@group.command(
    "send",
    """
    exeora send prc_0123456789abcdef01234567 yes
    exeora send prc_0123456789abcdef01234567 --no-newline q
    generate | exeora send prc_0123456789abcdef01234567 --end
    """,
    "The result of `send_command_input`: `processId`, `bytesWritten`.",
)
def send(
    ctx: typer.Context,
    process: ProcessId,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What to write; stdin by default.")] = None,
    newline: Annotated[bool, typer.Option("--newline/--no-newline", help="End TEXT with a newline.")] = True,
    end: Annotated[bool, typer.Option("--end", help="Close its input after that.")] = False,
) -> None:
    """Write to a started command's input. It fails when the command does not take all of it within five seconds."""
    session = session_of(ctx)
    project, arguments = _find_process(session, process)
    if text is not None:
        arguments |= {"data": text, "newline": newline}
    else:
        arguments |= {"data": decode_text(read_stdin("what to write"), "what to write"), "newline": False}
    from exeora_ws.tools.shell.commands import send_to_host

    result = session.make(send_to_host(end=end), arguments, project)
    wanted = len(arguments["data"].encode("utf-8", "surrogateescape")) + arguments["newline"]
    if result["bytesWritten"] < wanted:
        raise ToolFailed(
            f"{result['bytesWritten']} of {wanted} bytes were written: the command does not read on",
            reason="input_not_read",
            data=result,
        )
    session.show(result, render_processes.show_sent)


@group.command(
    "kill",
    """
    exeora kill prc_0123456789abcdef01234567
    """,
    "The result of `kill_command`: `processId`, `killed`, `exitCode` or null. `killed` is false when it had ended.",
)
def kill(ctx: typer.Context, process: ProcessId) -> None:
    """End a command with everything it started, whichever shell or server started it."""
    session = session_of(ctx)
    project, arguments = _find_process(session, process)
    from exeora_ws.tools.shell.commands import KILL_ANYWHERE

    session.show(session.make(KILL_ANYWHERE, arguments, project), render_processes.show_killed)


def _locate(session: Session, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    project = session.require_project()
    return project, {**_given(arguments), "workspace": session.choose_workspace(project)}


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))


def _list_processes(session: Session) -> "list[Seen]":
    from exeora_ws.tools.shell.commands import list_processes

    return list_processes(session.app.services)


def _find_process(session: Session, process: str) -> tuple[Any, dict[str, Any]]:
    """Give the project of a process, and arguments that name it where it runs: its id says that, not the directory."""
    seen = next((each for each in _list_processes(session) if each.id == process), None)
    if seen is None:
        raise ToolFailed(f"there is no process {process!r}", reason="unknown_process", hint="exeora ps --all")
    project = session.app.inventory.require_project(seen.project)
    session.require_selected(project, seen.workspace)
    return project, {"processId": process, "workspace": seen.workspace}


def _describe(session: Session, seen: "Seen") -> dict[str, Any]:
    project, workspace = session.name_place(seen.project, seen.workspace)
    facts = {
        "processId": seen.id,
        "kind": seen.kind,
        "project": project,
        "workspace": workspace,
        "command": seen.line,
        "pid": seen.pid,
        "startedAt": write_time(seen.since),
        "running": seen.running,
        "exitCode": seen.code,
        "readable": seen.in_host,
    }
    return facts if seen.signal is None else {**facts, "signal": seen.signal}


def _filter(session: Session, shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if session.options.project is None and session.options.workspace is None:
        return shown
    project = session.find_project()
    if project is None:
        raise InvalidArguments("the current directory is in no project", reason="no_project", hint="pass --project")
    mine = [facts for facts in shown if facts["project"] == project.slug]
    if session.options.workspace is None:
        return mine
    slug = session.resolve(project, session.options.workspace)
    return [facts for facts in mine if facts["workspace"] == slug]
