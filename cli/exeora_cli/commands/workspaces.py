"""list, git-list, attach, detach, remove, path."""

import os
import sys
from typing import Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer, listing, removing, render
from exeora_cli.group import Group
from exeora_cli.listing import show_none
from exeora_cli.parameters import MaybeNamed, Name, Slug
from exeora_cli.session import explain_no_project, session_of

group = Group("Workspaces")


@group.command(
    "list",
    """
    exeora list
    exeora list --fast
    exeora list --status --json
    exeora list --all-projects
    """,
    (
        "The result of `list_workspaces`: `workspaces[{id, slug, name, branch, managed, available, path}]`, "
        "`main` first. `branch` is null where HEAD is detached. With --status each has also `fault`, `locked`, "
        "`processes`, `staged`, `modified`, `untracked`, `conflicted`, `operation`, `head`, `committedAt`, "
        "`base{ref, ahead, behind}`, `upstream{ref, ahead, behind}`, `problem`, null where that cannot be told; with "
        "--all-projects also `project` (the slug)."
    ),
)
def list_(
    ctx: typer.Context,
    fast: Annotated[bool, typer.Option("--fast", help="From the registry alone, without asking Git.")] = False,
    status: Annotated[bool, typer.Option("--status", help="With the state of each, also for a program.")] = False,
    all_projects: Annotated[bool, typer.Option("--all-projects", help="Of every project.")] = False,
) -> None:
    """List the project's workspaces, main first; at a terminal with the state of each.

    `*` marks the one around the current directory; + staged, ! modified, ? untracked, x conflicted files; commits
    ahead (+) and behind (-).
    """
    session = session_of(ctx)
    session.refuse_workspace("list")
    if fast and status:
        raise InvalidArguments("list: pass one of --fast and --status", reason="conflicting_fields")
    stated = status or not (fast or session.options.json or not sys.stdout.isatty())
    if all_projects or stated:
        listing.show(session, stated=stated, all_projects=all_projects)
        return
    project = session.find_project()
    if project is None:
        show_none(session)
        return
    around = None if session.options.json else session.find_around_quietly()
    here = around.workspace.id if around is not None else None
    session.show(session.make("list_workspaces", {}, project), lambda result: render.show_list(result, here))


@group.command(
    "git-list",
    """
    exeora git-list
    exeora git-list --json
    """,
    (
        "The result of `list_git_workspaces`: `workspaces[{path, branch, head, detached, main, locked?, "
        "prunable?, connected}]`. `connected` is null for a worktree without a slug; `locked` and `prunable` "
        "are absent unless they apply, and hold the reason, perhaps empty."
    ),
)
def git_list(ctx: typer.Context) -> None:
    """List every worktree of the repository, connected or not, also broken and locked ones."""
    session = session_of(ctx)
    session.refuse_workspace("git-list")
    project = session.find_project()
    if project is None:
        show_none(session)
        return
    session.show(session.make("list_git_workspaces", {}, project), render.show_git_list)


@group.command(
    "attach",
    """
    exeora attach ../app-review
    exeora attach --branch feature/login
    exeora attach .
    """,
    "The result of `attach_workspace`: `workspace{…}` as of `create`.",
)
def attach(
    ctx: typer.Context,
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", help="The worktree's folder.", show_default=False)
    ] = None,
    branch: Annotated[str | None, typer.Option("--branch", help="Or: the branch it has checked out.")] = None,
    name: Name = None,
    slug: Slug = None,
) -> None:
    """Connect a worktree that something else made, and print its path. It stays as it is, and its owner's."""
    session = session_of(ctx)
    session.refuse_workspace("attach")
    project = session.require_project()
    # The current directory is the caller's and not the core's: a relative path means nothing there.
    folder = None if path is None else str(session.folder / os.path.expanduser(path))
    arguments = _given({"path": folder, "branch": branch, "name": name, "slug": slug})
    session.show(session.make("attach_workspace", arguments, project), render.show_attached)


@group.command(
    "detach",
    """
    exeora detach feature-login
    """,
    ("The result of `detach_workspace`: `workspace{…}`, `detached`, and `stoppedProcesses` where something ran in it."),
)
def detach(ctx: typer.Context, workspace: MaybeNamed = None) -> None:
    """Disconnect a workspace and end what runs in it. Its folder and branch stay."""
    session = session_of(ctx)
    project, slug = removing.require_named(session, "detach", workspace)
    session.show(session.make("detach_workspace", {"workspace": slug}, project), render.show_detached)


@group.command(
    "remove",
    """
    exeora remove feature-login
    exeora remove feature/login --delete-branch
    exeora remove feature-login --force
    """,
    (
        "The result of `remove_workspace`: `workspace{…}`, `removed`, `branchDeleted`; present only where "
        "they apply: `branchKept{reason, message}`, `ignoredFiles[…]` with `ignoredFilesTotal`, "
        "`stoppedProcesses[…]`, `restorableUntil`, `note`."
    ),
)
def remove(
    ctx: typer.Context,
    workspace: MaybeNamed = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Remove uncommitted changes too.")] = False,
    delete_branch: Annotated[
        bool, typer.Option("--delete-branch", help="Delete the branch as well, if it is merged.")
    ] = False,
    now: Annotated[bool, typer.Option("--now", help="Free the disk at once: it cannot be brought back.")] = False,
) -> None:
    """Remove a workspace: its folder and what runs in it. The branch stays unless asked.

    The workspace must be named: the current directory's is never meant by itself. A shell that stands in it is taken to
    main (see shell-init).
    """
    removing.remove(session_of(ctx), workspace, force=force, delete_branch=delete_branch, now=now)


@group.command(
    "path",
    """
    cd "$(exeora path feature-login)"
    exeora path
    exeora path main
    """,
    "`workspace` (the slug) and `path`.",
)
def path(ctx: typer.Context, workspace: MaybeNamed = None) -> None:
    """Print where a workspace is; without a name, the one around the current directory."""
    session = session_of(ctx)
    if workspace is not None:
        session.options.take("workspace", workspace)
    project = session.find_project()
    if project is None:
        raise explain_no_project()
    place = session.app.inventory.require_place(project, session.choose_workspace(project))
    session.app.inventory.require_available(place, files=False)
    if session.options.json:
        answer.print_document({"workspace": place.workspace.slug, "path": str(place.root)})
    else:
        answer.print_lines([str(place.root)])


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
