"""Answers `list --status --json`, as `listing.py` does, with the core and without the program that parses commands."""

from exeora_ws.app import open_app
from exeora_ws.errors import ExeoraError

from exeora_cli.answer import render_document
from exeora_cli.snapshot import Unusual
from exeora_cli.state_rows import describe_overview


def render_states(project_id: str) -> bytes:
    """Look at every workspace of a project; gives the document.

    Raises:
        Unusual: something is wrong, which the slow way says.
    """
    try:
        app = open_app()
        project = app.inventory.require_project(project_id)
        known = {seen.workspace.id: describe_overview(seen) for seen in app.look_at_all(project)}
        order = [workspace.id for workspace in app.inventory.registry.list_workspaces(project.id)]
    except ExeoraError:
        raise Unusual from None
    return render_document({"workspaces": [known[each] for each in order if each in known]})
