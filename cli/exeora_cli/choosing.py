"""Have a person choose a workspace: in the picker at a terminal, else from a numbered list."""

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer, numbered_list
from exeora_cli.plain import show_text
from exeora_cli.session import Session
from exeora_cli.state_rows import describe_overview, make_row, show_age, summarise

if TYPE_CHECKING:
    from exeora_ws.cancellation import Cancellation
    from exeora_ws.workspaces.place import Project

    from exeora_cli.fuzzy import Row
    from exeora_cli.previews import Lines

_COMMITS = 10
_FILES = 12
_SHORT = 8


def choose_workspace(session: Session, project: "Project") -> str:
    """Ask which workspace of a project is meant; gives its slug.

    Raises:
        InvalidArguments: reason `nothing_chosen`.
        Exit: told to end meanwhile, with the signal's code.
    """
    slug = _pick(session, project) if _has_terminal() else numbered_list.choose(_list_states(session, project))
    if slug is None:
        raise InvalidArguments("no workspace was chosen", reason="nothing_chosen", hint="exeora switch WORKSPACE")
    return slug


def _has_terminal() -> bool:
    drawn = sys.stderr.isatty() or sys.stdout.isatty()
    return sys.stdin.isatty() and drawn and os.environ.get("TERM", "dumb") != "dumb"


def _find_here(session: Session) -> str | None:
    around = session.find_around_quietly()
    return None if around is None else around.workspace.id


def _list_states(session: Session, project: "Project") -> list["Row"]:
    """Give the rows of the numbered list, which is printed once: with all there is to know."""
    here = _find_here(session)
    seen = {o.workspace.id: describe_overview(o) for o in session.app.upkeep.look_at_all(project)}
    return [make_row(seen[w.id], here)[1:] for w in session.app.inventory.list_workspaces(project) if w.id in seen]


def _pick(session: Session, project: "Project") -> str | None:
    """Show the picker, at once: the rows are the registry's, the rest is looked up while it stands there."""
    from exeora_cli import picker

    here = _find_here(session)
    rows = [
        (str(w.slug), w.branch or "-", "(here)" if w.id == here else "")
        for w in session.app.inventory.list_workspaces(project)
    ]

    def load(slug: str, cancellation: "Cancellation") -> "Lines":
        app = session.app
        try:
            place = app.inventory.require_place(project, slug)
            return describe_preview(app.upkeep.preview(place, commits=_COMMITS, cancellation=cancellation))
        finally:
            app.services.database.close()

    try:
        return picker.choose(rows, load)
    except picker.Ended as ended:
        raise typer.Exit(answer.SIGNALLED + ended.number) from None


def describe_preview(preview: Any) -> "Lines":
    """Give a workspace's state and last commits, a line each."""
    facts = describe_overview(preview.overview)
    lines: Lines = [("bold", facts["slug"]), ("dim", facts["path"]), *summarise(facts), ("", "")]
    lines += _list_files(preview.overview.changes)
    now = time.time()
    for commit in preview.commits:
        lines.append(("", f"{commit.id[:_SHORT]}  {show_age(now - commit.at):>6}  {show_text(commit.subject)}"))
    return lines


def _list_files(changes: Any) -> "Lines":
    kinds = (
        ("x", "red", "conflicted"),
        ("+", "green", "staged"),
        ("!", "yellow", "unstaged"),
        ("?", "cyan", "untracked"),
    )
    every = [(style, f"{sign} {show_text(path)}") for sign, style, kind in kinds for path in getattr(changes, kind, ())]
    more: Lines = [("dim", f"and {len(every) - _FILES} more")] if len(every) > _FILES else []
    return [*every[:_FILES], *more, ("", "")] if every else []
