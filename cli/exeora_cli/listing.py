"""Lists of workspaces beyond the plain one: with the state of each, and of every project."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from exeora_cli import answer
from exeora_cli.colours import wants_colour
from exeora_cli.describing import describe_workspace
from exeora_cli.live_table import LiveTable, can_paint, lay_out
from exeora_cli.plain import list_lines
from exeora_cli.session import Session
from exeora_cli.state_rows import HEADING, choose_styles, describe_overview, make_row, make_waiting_row

if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Project, Workspace

Facts = dict[str, Any]


def show(session: Session, *, stated: bool, all_projects: bool) -> None:
    """Show the list, project by project."""
    inventory = session.app.inventory
    here = session.find_project()
    projects = inventory.list_projects() if all_projects else [here] if here is not None else []
    if not projects:
        show_none(session)
    elif session.options.json:
        found = [(project, row) for project in projects for row in _list(session, project, stated=stated)]
        rows = [row | ({"project": project.slug} if all_projects else {}) for project, row in found]
        answer.print_document({"workspaces": rows})
    else:
        around = session.find_around_quietly()
        current = None if around is None else around.workspace.id
        for project in projects:
            if all_projects:
                answer.print_lines([f"{project.slug}:"])
            _show_rows(session, project, current, stated=stated)


def _show_rows(session: Session, project: "Project", current: str | None, *, stated: bool) -> None:
    if not stated:
        answer.print_lines(list_lines(_list(session, project, stated=False), current))
    elif can_paint():
        _paint(session, project, current)
    else:
        rows = _list(session, project, stated=True)
        cells = [HEADING, *(make_row(row, current) for row in rows)]
        styles = [("dim",) * len(HEADING), *(choose_styles(row, current) for row in rows)]
        answer.print_lines(lay_out(cells, styles, coloured=wants_colour(sys.stdout)), styled=True)


def _paint(session: Session, project: "Project", current: str | None) -> None:
    """Show every row at once, with what the registry knows, and each in full as soon as it is known."""
    workspaces = session.app.inventory.list_workspaces(project)
    known: dict[str, Facts] = {}
    table = LiveTable(HEADING)
    table.paint(*_make_rows(workspaces, known, current))
    for _ in _look(session, project, known):
        if table.is_due:
            table.paint(*_make_rows(workspaces, known, current))
    table.finish(*_make_rows([w for w in workspaces if w.id in known], known, current))


def _make_rows(
    workspaces: "list[Workspace]", known: dict[str, Facts], current: str | None
) -> tuple[list[Any], list[Any]]:
    rows = [make_row(known[w.id], current) if w.id in known else make_waiting_row(w, current) for w in workspaces]
    styles = [choose_styles(known[w.id], current) if w.id in known else ("dim",) * len(HEADING) for w in workspaces]
    return rows, styles


def _list(session: Session, project: "Project", *, stated: bool) -> list[Facts]:
    """Give the rows, main first."""
    workspaces = session.app.inventory.list_workspaces(project)
    if not stated:
        find_fault = session.app.inventory.find_fault
        return [describe_workspace(w) | {"available": find_fault(project, w) is None} for w in workspaces]
    known: dict[str, Facts] = {}
    for _ in _look(session, project, known):
        _tell_progress(len(known), len(workspaces))
    return [known[w.id] for w in workspaces if w.id in known]


def _look(session: Session, project: "Project", known: dict[str, Facts]) -> Iterator[None]:
    """Put the state of one workspace after the other into `known`, as the answers come."""
    for seen in session.app.upkeep.look_at_all(project):
        known[seen.workspace.id] = describe_overview(seen)
        yield


def _tell_progress(done: int, total: int) -> None:
    if sys.stderr.isatty() and total > 1:
        sys.stderr.write("\r\x1b[K" if done == total else f"\r\x1b[Klooking: {done} of {total}")
        sys.stderr.flush()


def show_none(session: Session) -> None:
    """Answer a list where there is no project: nothing, and what to do about it."""
    if session.options.json:
        answer.print_document({"workspaces": []})
        return
    answer.narrate(
        ["this directory is in no project yet"],
        hint="exeora create BRANCH makes a project of the repository around it, and a first workspace",
    )
