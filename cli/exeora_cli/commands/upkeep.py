"""lock, unlock, rename, adopt, prune: keeping workspaces in order."""

from typing import Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli.describing import describe_workspace
from exeora_cli.direct import require_place, run_deed
from exeora_cli.directive import direct_to, leave_if_gone
from exeora_cli.group import Group
from exeora_cli.parameters import MaybeNamed, Named
from exeora_cli.plain import align, show_text
from exeora_cli.session import Shown, session_of

group = Group("Workspaces")


@group.command("lock", 'exeora lock feature-login --reason "on a stick"', "`workspace` (the slug) and `reason`.")
def lock(
    ctx: typer.Context,
    workspace: MaybeNamed = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; quoted by whoever is refused.")] = "",
) -> None:
    """Lock a workspace: nothing removes or prunes it, git neither."""
    session = session_of(ctx)
    place = require_place(session, workspace)
    upkeep = session.app.upkeep
    run_deed(
        session,
        "lock_workspace",
        place,
        lambda cancellation: upkeep.lock(place, reason, cancellation=cancellation),
        arguments={"reason": reason or None},
    )
    facts = {"workspace": place.workspace.slug, "reason": reason}
    session.show(facts, lambda _: Shown([f"locked {place.workspace.slug}"]))


@group.command(
    "unlock",
    "exeora unlock feature-login",
    "`workspace` (the slug), and `reason`: why it was locked, null if it was not.",
)
def unlock(ctx: typer.Context, workspace: MaybeNamed = None) -> None:
    """Unlock a workspace."""
    session = session_of(ctx)
    place = require_place(session, workspace)
    upkeep = session.app.upkeep
    reason = run_deed(
        session, "unlock_workspace", place, lambda cancellation: upkeep.unlock(place, cancellation=cancellation)
    )
    said = "was not locked" if reason is None else f"unlocked{': it was locked for ' + reason if reason else ''}"
    facts = {"workspace": place.workspace.slug, "reason": reason}
    session.show(facts, lambda _: Shown([f"{place.workspace.slug} {show_text(said)}"]))


@group.command(
    "rename",
    """
    exeora rename feature-login feature/sign-in
    exeora rename feature-login short --keep-branch
    """,
    "`before` and `after`, each `{id, slug, name, branch, path, managed}`.",
)
def rename(
    ctx: typer.Context,
    workspace: Named,
    branch: Annotated[str, typer.Argument(metavar="BRANCH", help="The new name of its branch.")],
    slug: Annotated[str | None, typer.Option("--slug", help="The new slug; derived from the branch.")] = None,
    keep_branch: Annotated[bool, typer.Option("--keep-branch", help="Rename slug and folder alone.")] = False,
    keep_folder: Annotated[bool, typer.Option("--keep-folder", help="Leave the folder where it is.")] = False,
) -> None:
    """Rename a workspace: branch, slug and folder together, or nothing. What was changed in it stays.

    A folder that exeora did not make stays where it is.
    """
    session = session_of(ctx)
    place = require_place(session, workspace)
    around = session.find_around_quietly()
    wanted = {"slug": slug, "keep_branch": keep_branch, "keep_folder": keep_folder}
    done = run_deed(
        session,
        "rename_workspace",
        place,
        lambda cancellation: session.app.upkeep.rename(
            place, branch, slug=slug, keep_branch=keep_branch, keep_folder=keep_folder, cancellation=cancellation
        ),
        arguments={"branch": branch, **wanted},
    )
    if around is not None and around.workspace.id == done.after.id:
        direct_to(str(done.after.path))
    facts = {"before": describe_workspace(done.before), "after": describe_workspace(done.after)}
    note = f"{done.before.slug!r} is {done.after.slug!r} now, on branch {done.after.branch!r}"
    session.show(facts, lambda _: Shown([str(done.after.path)], [note]))


@group.command(
    "adopt",
    "exeora adopt",
    "`connected[{id, slug, name, branch, path, managed}]`, `skipped[{path, reason, message}]`.",
)
def adopt(ctx: typer.Context) -> None:
    """Connect every worktree of the repository that something else made: git, an agent, an editor."""
    session = session_of(ctx)
    session.refuse_workspace("adopt")
    project = session.require_project()
    done = run_deed(
        session,
        "adopt_worktrees",
        project,
        lambda cancellation: session.app.upkeep.adopt(project, cancellation=cancellation),
        listed_as=("attach_workspace",),
    )
    facts = {
        "connected": [describe_workspace(w) for w in done.connected],
        "skipped": [{"path": str(s.path), "reason": s.reason, "message": s.message} for s in done.skipped],
    }
    lines = align([(str(w.slug), show_text(w.branch or "-"), show_text(str(w.path))) for w in done.connected])
    notes = [f"skipped {s.path.name!r}: {s.message}" for s in done.skipped]
    session.show(facts, lambda _: Shown(lines, notes or ([] if lines else ["everything is connected already"])))


@group.command(
    "prune",
    """
    exeora prune --merged --dry-run
    exeora prune --merged
    exeora prune --missing
    """,
    (
        "`workspaces[{slug, branch, action, evidence, into, kept, detail, branchDeleted}]`: `action` is `removed`, "
        "`would_remove` or `kept`; `kept` says why, `evidence` how it is merged; both may be null."
    ),
)
def prune(
    ctx: typer.Context,
    merged: Annotated[bool, typer.Option("--merged", help="Those whose work is in their base.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Those whose folder is gone.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be removed.")] = False,
    keep_branches: Annotated[bool, typer.Option("--keep-branches", help="Leave the branches.")] = False,
    age: Annotated[float, typer.Option("--min-age", metavar="HOURS", help="Younger ones stay.", min=0)] = 1.0,
) -> None:
    """Remove the workspaces that are done with: merged in any way, squashed too, or their folder gone.

    Nothing is fetched. Kept, with the reason: whatever is dirty, locked, running, unpushed, young, or has no commits
    yet. What is removed can be brought back with restore, its branch too.
    """
    session = session_of(ctx)
    session.refuse_workspace("prune")
    if not merged and not missing:
        raise InvalidArguments(
            "prune needs to know what is done with", reason="nothing_asked", hint="pass --merged, --missing or both"
        )
    project = session.require_project()
    around = session.find_around_quietly()
    verdicts = run_deed(
        session,
        "prune_workspaces",
        project,
        lambda cancellation: list(
            session.app.upkeep.prune(
                project,
                merged=merged,
                missing=missing,
                least_age=age * 3_600,
                dry_run=dry_run,
                keep_branches=keep_branches,
                cancellation=cancellation,
            )
        ),
        arguments={"merged": merged, "missing": missing, "keep_branches": keep_branches, "min_age": age},
        changes=not dry_run,
        listed_as=() if dry_run else ("remove_workspace",),
    )
    rows = [_describe_verdict(verdict, dry_run=dry_run) for verdict in verdicts]
    session.show({"workspaces": rows}, lambda _: Shown(align([_verdict_row(row) for row in rows])))
    leave_if_gone(session, around)


def _describe_verdict(verdict: Any, *, dry_run: bool) -> dict[str, Any]:
    action = "kept" if verdict.kept is not None else "would_remove" if dry_run else "removed"
    return {
        "slug": verdict.workspace.slug,
        "branch": verdict.workspace.branch,
        "action": action,
        "evidence": verdict.evidence,
        "into": verdict.into,
        "kept": verdict.kept,
        "detail": verdict.detail,
        "branchDeleted": verdict.branch is not None and verdict.branch.deleted,
    }


def _verdict_row(row: dict[str, Any]) -> tuple[str, ...]:
    into = f" into {show_text(row['into'])}" if row["into"] else ""
    evidence = f"{row['evidence']}{into}" if row["evidence"] else ""
    why = [evidence] if row["kept"] is None else [row["kept"], *([evidence] if evidence else [])]
    if row["detail"]:
        why.append(show_text(row["detail"]))
    return row["action"].replace("_", " "), row["slug"], "; ".join(why)
