"""restore: undo a removal, and what is there to undo."""

from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import typer
from exeora_ws.errors import ApprovalDeclined, ApprovalTimeout, ExeoraError, Forbidden, InvalidArguments

from exeora_cli import answer
from exeora_cli.describing import describe_workspace
from exeora_cli.direct import run_deed
from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Session, Shown, explain_no_project, session_of
from exeora_cli.wording import for_shell

group = Group("Workspaces")


@group.command(
    "restore",
    """
    exeora restore
    exeora restore feature-login
    exeora restore --list
    """,
    (
        "`workspace{id, slug, name, branch, path, managed}`, `branchMade` (the branch was gone and is back), `commit`. "
        "With --list: `removed[{id, slug, branch, removedAt, restorableUntil, bytes}]`, latest first. With --empty: "
        "`deleted` and `left`, how many went and how many could not go yet."
    ),
)
def restore(
    ctx: typer.Context,
    removed: Annotated[
        str | None, typer.Argument(metavar="REMOVED", help="Slug or id; the one removed last.", show_default=False)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List what can be brought back.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Come back at its commit, on no branch.")] = False,
    empty: Annotated[
        bool,
        typer.Option("--empty", help="Delete everything removed for good, at once; of one project with --project."),
    ] = False,
) -> None:
    """Bring a removed workspace back: files, index, branch, ignored files, slug and id.

    What was removed can come back for seven days, or until removed workspaces together take too much room.
    """
    session = session_of(ctx)
    session.refuse_workspace("restore")
    if list_ + empty + (removed is not None) > 1:
        raise InvalidArguments("restore: name a workspace, or pass one of --list and --empty", reason="usage")
    if empty:
        _empty(session)
        return
    project = session.find_project()
    if project is None:
        raise explain_no_project()
    if list_:
        _show_list(session, project)
        return
    done = run_deed(
        session,
        "restore_workspace",
        project,
        lambda cancellation: session.app.upkeep.restore(project, removed, detach=detach, cancellation=cancellation),
        arguments={"removed": removed, "detach": detach},
    )
    facts = {"workspace": describe_workspace(done.workspace), "branchMade": done.branch_made, "commit": done.commit}
    notes = [f"restored workspace {done.workspace.slug!r}"]
    if done.branch_made:
        notes.append(f"its branch {done.workspace.branch!r} is back, at {str(done.commit)[:10]}")
    session.show(facts, lambda _: Shown([str(done.workspace.path)], notes))


def _empty(session: Session) -> None:
    """Empty the trash of the project that is named, else of every project; each one's policy is asked first."""
    named = session.find_project() if session.options.project is not None else None
    where = [named] if named is not None else [*session.app.upkeep.list_with_trash(), None]
    deleted = left = 0
    refused: list[ExeoraError] = []
    for project in where:
        try:
            went, stayed = run_deed(session, "empty_trash", project, partial(_empty_one, session, project))
            deleted, left = deleted + went, left + stayed
        except (Forbidden, ApprovalDeclined, ApprovalTimeout) as error:
            if len(where) == 1:
                raise
            refused.append(error)
    notes = [f"not deleted yet: {left} (files resist, or somebody is at work); they are tried again"] if left else []
    lines = [f"deleted for good: {deleted}"]
    session.show({"deleted": deleted, "left": left}, lambda _: Shown(lines, notes))
    for refusal in refused:
        answer.print_error(for_shell(refusal), json=session.options.json)
    if refused or left:
        raise typer.Exit(answer.REFUSED if refused else answer.FAILED)


def _empty_one(session: Session, project: Any, _: Any) -> tuple[int, int]:
    went, stayed = session.app.upkeep.empty_trash(project)
    return went, stayed


def _show_list(session: Session, project: Any) -> None:
    removed = [
        {
            "id": r.workspace.id,
            "slug": r.workspace.slug,
            "branch": r.workspace.branch,
            "removedAt": _show_time(r.removed_at),
            "restorableUntil": _show_time(r.until),
            "bytes": r.size,
        }
        for r in session.app.upkeep.list_removed(project)
    ]
    session.show({"removed": removed}, lambda facts: Shown(align([_row(each) for each in facts["removed"]])))


def _row(removed: dict[str, Any]) -> tuple[str, ...]:
    branch = "-" if removed["branch"] is None else show_text(removed["branch"])
    return removed["slug"], branch, f"removed {removed['removedAt']}", f"until {removed['restorableUntil']}"


def _show_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
