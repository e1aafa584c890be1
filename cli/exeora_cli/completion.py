"""Completes projects and workspaces for typer's shell scripts, where `hot_completion` leaves it to the slow way."""

import os

import typer
from exeora_ws.errors import ExeoraError

from exeora_cli.fast import COMPLETION_VARIABLE
from exeora_cli.session import session_of


def prepare() -> None:
    """Make typer's forms of answers known, when it is a shell that asks."""
    if COMPLETION_VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]  # typer's own, not in its __all__

        completion_init()


def complete_workspace(ctx: typer.Context) -> list[str]:
    """Give what names a workspace of the project: the slugs, then the branches that are no slug."""
    session = session_of(ctx)
    try:
        project = session.find_project()
        workspaces = session.app.inventory.list_workspaces(project) if project is not None else []
    except ExeoraError:
        return []
    slugs = [str(w.slug) for w in workspaces]
    branches = {w.branch for w in workspaces if w.branch is not None}
    return slugs + sorted(branches - set(slugs))


def complete_branch(ctx: typer.Context) -> list[str]:
    """Give the local branches, and those of remotes as they were fetched last."""
    return _list_branches(ctx, remotes=True)


def complete_local_branch(ctx: typer.Context) -> list[str]:
    """Give the local branches."""
    return _list_branches(ctx, remotes=False)


def _list_branches(ctx: typer.Context, *, remotes: bool) -> list[str]:
    session = session_of(ctx)
    try:
        project = session.find_project()
        return list(session.app.upkeep.list_branches(project, remotes=remotes)) if project is not None else []
    except ExeoraError:
        return []


def complete_project(ctx: typer.Context) -> list[str]:
    """Give the projects' slugs."""
    try:
        return [str(p.slug) for p in session_of(ctx).app.inventory.list_projects()]
    except ExeoraError:
        return []


def complete_tool(ctx: typer.Context) -> list[str]:
    """Give the tools' names."""
    return list(session_of(ctx).app.calls.catalog)


def complete_process(ctx: typer.Context) -> list[str]:
    """Give the ids of the commands that run."""
    from exeora_ws.tools.shell.commands import list_processes

    try:
        return [seen.id for seen in list_processes(session_of(ctx).app.services)]
    except ExeoraError:
        return []


def complete_setting(ctx: typer.Context) -> list[str]:
    """Give the settings' names."""
    from exeora_ws.settings import KEYS

    del ctx
    return [key.typed for key in KEYS]


def complete_token(ctx: typer.Context) -> list[str]:
    """Give the ids of the tokens that open something."""
    import time

    from exeora_ws.serve.tokens import TokenBook

    try:
        tokens = TokenBook(session_of(ctx).app.places).list()
    except ExeoraError:
        return []
    return [token.id for token in tokens if token.is_valid(time.time())]


def complete_upstream(ctx: typer.Context) -> list[str]:
    """Give the names of the configured upstream servers."""
    from exeora_ws.upstream.reports import list_servers

    session = session_of(ctx)
    try:
        project = session.find_project()
        found = list_servers(session.app.places.mcp_file, None if project is None else project.root, os.environ)
    except ExeoraError:
        return []
    return [server["name"] for server in found.servers]
