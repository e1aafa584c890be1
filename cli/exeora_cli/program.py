"""The whole program: every group of commands, the global options, and what an error comes to."""

import signal
import sys
from typing import Annotated, Any

import typer
from exeora_ws import __version__
from exeora_ws.errors import ExeoraError, InternalError, InvalidArguments
from exeora_ws.serve.log import keep_log
from exeora_ws.settings import find_places
from typer.main import get_command

from exeora_cli import answer, completion
from exeora_cli.bug_log import record_bug, with_log_path
from exeora_cli.commands import GROUPS
from exeora_cli.group import Program, show_help, spread_options
from exeora_cli.output import tell_unwritten
from exeora_cli.session import Session
from exeora_cli.wording import for_shell

NAME = "exeora"
_USAGE_HINT = "exeora --help, or exeora COMMAND --help"


def run(words: list[str]) -> int:
    """Run a command line; gives the exit code."""
    keep_log(find_places())
    session = Session()
    json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        return _run(words, session)
    except (answer.ReaderGone, BrokenPipeError):
        return answer.quiet_pipe()
    except KeyboardInterrupt:
        return answer.SIGNALLED + signal.SIGINT
    except Exception as error:  # noqa: BLE001  every error is told in one way
        return explain(error, json=json, speaks_tools=session.speaks_tools)


def explain(error: Exception, *, json: bool, speaks_tools: bool = False) -> int:
    """Say on stderr what a command failed of; gives the exit code.

    Args:
        error: what it raised.
        json: whether as a document.
        speaks_tools: whether the caller wrote a tool's own fields, and is answered in them.
    """
    places = find_places()
    keep_log(places)
    if isinstance(error, answer.Unwritten) and isinstance(error.__cause__, OSError):
        return tell_unwritten(error.__cause__)
    if isinstance(error, ExeoraError):
        told = with_log_path(error, places.log) if isinstance(error, InternalError) else error
    elif isinstance(error, typer.TyperException):
        told = InvalidArguments(_plain(error.format_message()), reason="usage", hint=_USAGE_HINT)
    else:  # whatever else it is, it is a bug: logged, and told without its text
        told = with_log_path(record_bug(error), places.log)
    answer.print_error(told if speaks_tools else for_shell(told), json=json)
    return answer.exit_code(told)


def _run(words: list[str], session: Session) -> int:
    completion.prepare()
    try:
        code = build()(words, prog_name=NAME, standalone_mode=False, obj=session)
    finally:
        session.close()
    sys.stdout.flush()
    return code if isinstance(code, int) else answer.DONE


def build() -> Any:
    """Build the program's commands."""
    Program.groups = GROUPS
    root = typer.Typer(
        cls=Program,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback(invoke_without_command=True, epilog=_OVERVIEW)(_take_globals)
    for group in GROUPS:
        group.add_to(root)
    program = get_command(root)
    spread_options(program)
    return program


def _show_version(value: bool) -> None:
    if value:
        answer.print_lines([f"{NAME} {__version__}"])
        raise typer.Exit


def _take_globals(
    context: typer.Context,
    global_project: Annotated[
        str | None,
        typer.Option(
            "--project", metavar="PROJECT", help="Project, by slug or id.", autocompletion=completion.complete_project
        ),
    ] = None,
    global_workspace: Annotated[
        str | None,
        typer.Option(
            "-w",
            "--workspace",
            metavar="WORKSPACE",
            help="Workspace: slug, id, branch, - (the previous one) or @ (the one around this directory).",
            autocompletion=completion.complete_workspace,
        ),
    ] = None,
    global_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document; errors as JSON on stderr.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Git workspaces for people and for agents: every branch its own worktree, every action where it was sent."""
    del global_project, global_workspace, global_json, version  # `spread_options` has them taken, wherever they stand
    show_help(context)


_OVERVIEW = """\b
Examples:
  exeora create feature/login        make a workspace for a new branch, print its path
  cd "$(exeora path feature/login)"  go there
  exeora list                        what there is
  exeora remove feature/login        take it away again
  exeora mcp                         serve this project to an agent over stdio
"""


def _plain(message: str) -> str:
    """One line, and no capital at the start, as our own messages are."""
    text = " ".join(message.split()).rstrip(".")
    return text[:1].lower() + text[1:]
