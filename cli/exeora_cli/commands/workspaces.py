"""create, list, git-list, attach, detach, remove, path."""

import os
from typing import Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer, render
from exeora_cli.completion import complete_workspace
from exeora_cli.group import Group
from exeora_cli.session import Session, explain_no_project, session_of

group = Group("Workspaces")

Named = Annotated[
    str,
    typer.Argument(
        metavar="WORKSPACE", help="Slug, id, branch, - or @.", autocompletion=complete_workspace, show_default=False
    ),
]
MaybeNamed = Annotated[
    str | None,
    typer.Argument(
        metavar="WORKSPACE", help="Slug, id, branch, - or @.", autocompletion=complete_workspace, show_default=False
    ),
]
Name = Annotated[str | None, typer.Option("--name", help="Display name; the branch by default.")]
Slug = Annotated[str | None, typer.Option("--slug", help="Selector of the workspace; derived from the branch.")]


@group.command(
    "create",
    """
    exeora create feature/login
    exeora create hotfix --from v2.1
    exeora create feature/login --reuse
    cd "$(exeora create feature/login)"
    """,
    (
        "The result of the tool `create_workspace`: `workspace{id, slug, name, branch, path, managed}`, "
        "`base{ref, commit}`, `created`, `setup{status}`."
    ),
)
def create(
    ctx: typer.Context,
    branch: Annotated[str, typer.Argument(metavar="BRANCH", help="Branch to make, or with --reuse to use.")],
    base: Annotated[
        str | None, typer.Option("--from", metavar="REF", help="Where the new branch starts; HEAD of the source.")
    ] = None,
    reuse: Annotated[bool, typer.Option("--reuse", help="Use a local branch that exists.")] = False,
    name: Name = None,
    slug: Slug = None,
) -> None:
    """Make a workspace for a branch and print its path.

    The branch starts at the workspace around the current directory, or the one given with -w. Repeated, it answers
    with the workspace that is there.
    """
    session = session_of(ctx)
    project = session.require_project()
    arguments = _given({"branch": branch, "from": base, "name": name, "slug": slug})
    if reuse:
        arguments["reuseExistingBranch"] = True
    arguments["workspace"] = session.choose_workspace(project)
    session.show(session.make("create_workspace", arguments, project), render.show_created)


@group.command(
    "list",
    """
    exeora list
    exeora list --json
    exeora --project api list
    """,
    (
        "The result of `list_workspaces`: `workspaces[{id, slug, name, branch, managed, available, path}]`, "
        "`main` first. `branch` is null where HEAD is detached."
    ),
)
def list_(ctx: typer.Context) -> None:
    """List the project's workspaces, main first, without asking Git.

    `*` marks the one around the current directory.
    """
    session = session_of(ctx)
    session.refuse_workspace("list")
    project = session.find_project()
    if project is None:
        _show_none(session)
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
        _show_none(session)
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
    project, slug = _require_named(session, "detach", workspace)
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
) -> None:
    """Remove a workspace: its folder and what runs in it. The branch stays unless asked.

    The workspace must be named: the current directory's is never meant by itself.
    """
    session = session_of(ctx)
    project, slug = _require_named(session, "remove", workspace)
    arguments = {"workspace": slug, "force": force, "deleteBranch": delete_branch}
    session.show(session.make("remove_workspace", arguments, project), render.show_removed)


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


def _show_none(session: Session) -> None:
    """Answer a list where there is no project: nothing, and what to do about it."""
    if session.options.json:
        answer.print_document({"workspaces": []})
        return
    answer.narrate(
        ["this directory is in no project yet"],
        hint="exeora create BRANCH makes a project of the repository around it, and a first workspace",
    )


def _require_named(session: Session, command: str, workspace: str | None) -> tuple[Any, str]:
    """Give project and slug for a command that never means the current directory's workspace by itself."""
    if workspace is not None:
        session.options.take("workspace", workspace)
    if session.options.workspace is None:
        raise InvalidArguments(
            f"{command} needs a workspace to be named",
            reason="missing_workspace",
            hint=f"exeora {command} WORKSPACE; exeora list names them",
        )
    project = session.require_project()
    return project, session.resolve(project, session.options.workspace)
