"""Lists of workspaces beyond the plain one: with the state of each, and of every project."""

import sys
from typing import TYPE_CHECKING, Any

from exeora_cli import answer
from exeora_cli.describing import describe_workspace
from exeora_cli.plain import align, list_lines
from exeora_cli.session import Session
from exeora_cli.state_rows import HEADING, describe_overview, make_row

if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Project

Facts = dict[str, Any]


def show(session: Session, *, stated: bool, all_projects: bool) -> None:
    """Show the list, project by project."""
    inventory = session.app.inventory
    here = session.find_project()
    projects = inventory.list_projects() if all_projects else [here] if here is not None else []
    if not projects:
        show_none(session)
        return
    found = {project.slug: _list(session, project, stated=stated) for project in projects}
    if session.options.json:
        extra = [{"project": slug} if all_projects else {} for slug, rows in found.items() for _ in rows]
        rows = [row for rows in found.values() for row in rows]
        answer.print_document({"workspaces": [row | more for row, more in zip(rows, extra, strict=True)]})
        return
    around = session.find_around_quietly()
    current = None if around is None else around.workspace.id
    for slug, rows in found.items():
        if all_projects:
            answer.print_lines([f"{slug}:"])
        lines = align([HEADING, *(make_row(row, current) for row in rows)]) if stated else list_lines(rows, current)
        answer.print_lines(lines)


def _list(session: Session, project: "Project", *, stated: bool) -> list[Facts]:
    """Give the rows, main first; at a terminal say on the way how many are known."""
    workspaces = session.app.inventory.list_workspaces(project)
    if not stated:
        find_fault = session.app.inventory.find_fault
        return [describe_workspace(w) | {"available": find_fault(project, w) is None} for w in workspaces]
    known: dict[str, Facts] = {}
    for seen in session.app.upkeep.look_at_all(project):
        known[seen.workspace.id] = describe_overview(seen)
        _paint(len(known), len(workspaces))
    return [known[w.id] for w in workspaces if w.id in known]


def _paint(done: int, total: int) -> None:
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
