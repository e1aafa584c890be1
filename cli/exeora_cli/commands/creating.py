"""create: a workspace for a branch, a tag, a commit, a request."""

from typing import Annotated, Any

import typer

from exeora_cli import render
from exeora_cli.completion import complete_branch
from exeora_cli.describing import describe_workspace
from exeora_cli.direct import run_deed
from exeora_cli.directive import direct_to
from exeora_cli.group import Group
from exeora_cli.parameters import Name, Slug
from exeora_cli.previous import store_previous
from exeora_cli.session import Session, Shown, session_of

group = Group("Workspaces")


@group.command(
    "create",
    """
    exeora create feature/login
    exeora create hotfix --from v2.1
    exeora create feature/login --reuse
    exeora create origin/feature/login
    exeora create pr:123
    exeora create v2.1 --detach --slug old
    exeora create idea --with-changes --switch
    """,
    (
        "The result of the tool `create_workspace`: `workspace{id, slug, name, branch, path, managed}`, "
        "`base{ref, commit}`, `created`, `setup{status, …}`; also `behind{ref, commits}` (what was last fetched), "
        "`moved{staged, unstaged, untracked, sourceKept}`, `dryRun`, each null where it does not apply."
    ),
)
def create(
    ctx: typer.Context,
    branch: Annotated[
        str | None,
        typer.Argument(
            metavar="BRANCH",
            help="Branch to make or --reuse; REMOTE/BRANCH; pr:N, mr:N or an address; with --detach a commit.",
            autocompletion=complete_branch,
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="REF",
            help="Where the new branch starts; HEAD of the source.",
            autocompletion=complete_branch,
        ),
    ] = None,
    reuse: Annotated[bool, typer.Option("--reuse", help="Use a local branch that exists.")] = False,
    name: Name = None,
    slug: Slug = None,
    detach: Annotated[bool, typer.Option("--detach", help="On no branch; needs --slug or --name.")] = False,
    with_changes: Annotated[
        bool, typer.Option("--with-changes", help="Move the source's uncommitted changes along.")
    ] = False,
    fetch: Annotated[bool, typer.Option("--fetch", help="Fetch the base's remote first.")] = False,
    remote: Annotated[str | None, typer.Option("--remote", help="Remote of a request or a fetch.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be made.")] = False,
    switch: Annotated[bool, typer.Option("--switch", "-s", help="Take the shell there.")] = False,
) -> None:
    """Make a workspace for a branch and print its path.

    The branch starts at the workspace around the current directory, or the one given with -w. Repeated, it answers
    with the workspace that is there.
    """
    session = session_of(ctx)
    project = session.require_project()
    source = session.choose_workspace(project)
    place = session.app.inventory.require_place(project, source)
    further = detach or with_changes or fetch or dry_run or remote is not None or branch is None
    if further or session.app.upkeep.is_further(place, str(branch), reuse=reuse):
        result = _create_further(
            session,
            place,
            branch,
            base=base,
            reuse=reuse,
            name=name,
            slug=slug,
            detach=detach,
            with_changes=with_changes,
            fetch=fetch,
            remote=remote,
            dry_run=dry_run,
        )
    else:
        asked = {"branch": branch, "from": base, "name": name, "slug": slug, "reuseExistingBranch": reuse or None}
        arguments = {key: value for key, value in asked.items() if value is not None}
        made = session.make("create_workspace", arguments | {"workspace": source}, project)
        behind = session.app.upkeep.count_behind(place, made["base"]["ref"], made["base"]["commit"])
        result = made | {"behind": _describe_behind(behind), "moved": None, "dryRun": False}
    if not (switch and direct_to(result["workspace"]["path"])):
        session.show(result, render.show_created)
        return
    store_previous(session.app.places, project.id, place.workspace.id)
    session.show(result, lambda facts: Shown([], render.show_created(facts).notes))


def _create_further(session: Session, place: Any, what: str | None, **asked: Any) -> dict[str, Any]:
    dry = asked["dry_run"] and not asked["fetch"]  # a fetch moves the remote's branches, whatever else is done
    made = run_deed(
        session,
        "create_workspace",
        place,
        lambda cancellation: session.app.upkeep.create(place, what, **asked, cancellation=cancellation),
        arguments={"branch": what, **asked},
        changes=not dry,
        listed_as=() if dry else ("create_workspace",),
    )
    from exeora_ws.app import describe_setup

    creation, moved = made.creation, made.moved
    return {
        "workspace": describe_workspace(creation.workspace),
        "base": {"ref": creation.base.ref, "commit": creation.base.commit},
        "created": creation.created,
        "setup": describe_setup(made.prepared),
        "behind": _describe_behind(made.behind),
        "moved": None
        if moved is None
        else {
            "staged": moved.staged,
            "unstaged": moved.unstaged,
            "untracked": moved.untracked,
            "sourceKept": moved.source_kept,
        },
        "dryRun": made.dry_run,
    }


def _describe_behind(behind: tuple[str, int] | None) -> dict[str, Any] | None:
    return None if behind is None else {"ref": behind[0], "commits": behind[1]}
