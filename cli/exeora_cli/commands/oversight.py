"""approvals and logs: questions answered, the record read."""

import threading
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer, render_policy
from exeora_cli.describing import describe_question
from exeora_cli.group import Group
from exeora_cli.session import Session, session_of
from exeora_cli.times import write_time

if TYPE_CHECKING:
    from exeora_ws.policy.audit import AuditEntry

_WAY = "approvals"
_ENTRIES = 100
_QUESTIONS = "`approvals[{id, project, workspace, tool, client, text, expires}]`; `text` is what a person is to read"

Identity = Annotated[str, typer.Argument(metavar="ID", help="As approvals list gives it.")]


def _show_or_watch(
    context: typer.Context,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, show each question as it comes, and ask at a terminal.")
    ] = False,
) -> None:
    """Answer what a policy wants confirmed. While somebody watches, clients' calls wait for an answer."""
    session = session_of(context)
    if context.invoked_subcommand is None:
        _watch(session) if watch else _list(session)
    elif watch:
        raise InvalidArguments("--watch: takes no command", reason="conflicting_fields")


approvals_group = Group("Agents", "approvals", "Answer what a policy wants confirmed.", main=_show_or_watch)
group = Group("Agents")


@approvals_group.command(
    "list",
    """
    exeora approvals list
    exeora approvals --watch
    """,
    f"{_QUESTIONS}. With `--watch` one object a line: `event` (`approval_asked` or `approval_closed`), `id`, ….",
)
def list_(ctx: typer.Context) -> None:
    """List the questions that wait, with all there is to know."""
    _list(session_of(ctx))


@approvals_group.command("allow", "exeora approvals allow mfqwcylb", "`id` and `status`: `allowed`.")
def allow(ctx: typer.Context, identity: Identity) -> None:
    """Say yes: the very call that was asked about runs."""
    _answer(session_of(ctx), identity, allowed=True)


@approvals_group.command("deny", "exeora approvals deny mfqwcylb", "`id` and `status`: `declined`.")
def deny(ctx: typer.Context, identity: Identity) -> None:
    """Say no."""
    _answer(session_of(ctx), identity, allowed=False)


@group.command(
    "logs",
    """
    exeora logs
    exeora --project api logs --limit 20
    exeora logs --follow --tool run_command
    """,
    (
        "`entries[{id, time, client, face, project, workspace, tool, outcome, durationMs}]`, oldest first. `outcome` "
        "is `OK` or an error's code; it and `durationMs` are null while a call runs, and for one whose end nobody "
        "wrote. With `--follow` one entry a line."
    ),
)
def logs(
    ctx: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with each call as it ends.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many at most.")] = _ENTRIES,
    tool: Annotated[str | None, typer.Option("--tool", metavar="TOOL", help="Only calls of this tool.")] = None,
) -> None:
    """Show the record of calls, newest last: who called what, where, and what became of it.

    It holds no arguments, no output and no file names, and is kept for 90 days or 100,000 calls.
    """
    session = session_of(ctx)
    session.refuse_workspace("logs")
    named = session.options.project
    project = None if named is None else str(session.app.inventory.require_project(named).slug)
    from exeora_ws.policy.audit import follow_log, read_log

    database = session.app.services.database
    entries = read_log(database, limit=limit, project=project, tool=tool)
    shown = [_describe(entry) for entry in entries]
    if not follow:
        session.show({"entries": shown}, render_policy.show_log)
        return
    with session.interruptible("following") as cancellation:
        # A call that still runs is told when it ends, and so is whatever began after it.
        ended = list(takewhile(lambda entry: entry.outcome is not None, entries))
        for each in shown[: len(ended)]:
            _print_entry(session, each)
        last = ended[-1].id if ended else entries[0].id - 1 if entries else None
        for entry in follow_log(database, cancellation, after=last, project=project):
            if tool in (None, entry.tool):
                _print_entry(session, _describe(entry))
        cancellation.raise_if_cancelled()


def _print_entry(session: Session, entry: dict[str, Any]) -> None:
    if session.options.json:
        answer.print_document(entry)
    else:
        answer.print_lines([render_policy.show_entry(entry)])


def _describe(entry: "AuditEntry") -> dict[str, Any]:
    return {
        "id": entry.id,
        "time": write_time(entry.time_ms / 1000),
        "client": entry.client,
        "face": entry.face,
        "project": entry.project,
        "workspace": entry.workspace,
        "tool": entry.tool,
        "outcome": entry.outcome,
        "durationMs": entry.duration_ms,
    }


def _list(session: Session) -> None:
    session.refuse_workspace("approvals")
    named = session.options.project
    project = None if named is None else str(session.app.inventory.require_project(named).slug)
    session.app.attendance.mark_seen()
    waiting = session.app.approvals.list_pending(project)
    session.show({"approvals": [describe_question(pending) for pending in waiting]}, render_policy.show_questions)


def _answer(session: Session, identity: str, *, allowed: bool) -> None:
    session.refuse_globals("approvals")
    session.app.attendance.mark_seen()
    if allowed:
        session.app.approvals.allow(identity, _WAY)
    else:
        session.app.approvals.decline(identity, _WAY)
    result = {"id": identity, "status": "allowed" if allowed else "declined"}
    session.show(result, render_policy.show_answered)


def _watch(session: Session) -> None:
    """Be there until interrupted; whoever cannot be asked here answers with `allow` and `deny` elsewhere."""
    session.refuse_globals("approvals --watch")
    from exeora_cli.desk import Desk

    def tell(kind: str, facts: Any) -> None:
        if session.options.json:
            answer.print_document({"event": kind, **facts})
        elif kind == "approval_asked":
            waits = "{tool} in workspace {workspace} of project {project} waits: exeora approvals allow {id}"
            answer.print_lines([waits.format_map(facts)])
        else:
            answer.print_lines(["{id}: {status}".format_map(facts)])

    with session.interruptible("watching") as cancellation, session.app.attendance.hold():
        Desk(session.app, tell, threading.Lock(), may_ask=not session.options.json).attend(cancellation)
        cancellation.raise_if_cancelled()
