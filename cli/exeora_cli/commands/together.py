"""merge, diff, open: bring work together, see it, edit it."""

import math
import os
import sys
from typing import Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments, ToolFailed

from exeora_cli import answer, render
from exeora_cli.asking import ask_yes_no, has_person
from exeora_cli.completion import complete_branch, complete_local_branch
from exeora_cli.direct import require_place, run_deed
from exeora_cli.directive import leave_if_gone
from exeora_cli.group import Group
from exeora_cli.parameters import MaybeNamed
from exeora_cli.session import Session, Shown, session_of

group = Group("Workspaces")
_SHORT = 10
_EDITORS = ("EXEORA_EDITOR", "VISUAL", "EDITOR")


@group.command(
    "merge",
    """
    exeora merge feature-login
    exeora merge feature-login --squash -m "Log in with a link"
    exeora merge feature-login --rebase --into release
    exeora merge feature-login --remove
    """,
    (
        "`workspace` (the slug), `into`, `before`, `after`, `commits`, `rebased` (the branch's new commit, or null), "
        "`kept` (why the branch has no new one although it should, or null), `removal` (the result of "
        "`remove_workspace`, or null)."
    ),
)
def merge(
    ctx: typer.Context,
    workspace: MaybeNamed = None,
    squash: Annotated[bool, typer.Option("--squash", help="As one commit.")] = False,
    rebase: Annotated[bool, typer.Option("--rebase", help="Its commits again, on top of the base.")] = False,
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            metavar="BRANCH",
            help="Another branch than its base.",
            autocompletion=complete_local_branch,
        ),
    ] = None,
    message: Annotated[str | None, typer.Option("-m", "--message", help="Message of the squashed commit.")] = None,
    remove: Annotated[
        bool | None,
        typer.Option("--remove/--keep", help="Remove the workspace and its branch after that, or ask nothing."),
    ] = None,
) -> None:
    """Bring a workspace's branch into its base: forward if that goes, else say --squash or --rebase.

    A conflict is refused before anything was changed. What is merged may be removed: at a terminal you are asked.
    """
    session = session_of(ctx)
    if squash and rebase:
        raise InvalidArguments("merge: pass one of --squash and --rebase", reason="conflicting_fields")
    if message is not None and not squash:
        raise InvalidArguments("-m: only a squashed commit has a new message", reason="conflicting_fields")
    place = require_place(session, workspace)
    how = "squash" if squash else "rebase" if rebase else "ff"
    text = None if message is None else message + "\n"
    done = run_deed(
        session,
        "merge_workspace",
        place,
        lambda cancellation: session.app.upkeep.merge(
            place, into=into, how=how, message=text, cancellation=cancellation
        ),
        arguments={"into": into, "how": how, "message": message},
    )
    if session.options.json:
        removal = _remove(session, place, done.head) if remove else None
        answer.print_document({**_describe_merging(done), "removal": removal})
        return
    answer.narrate(_tell_merging(done))
    answer.print_lines([f"merged {done.workspace.slug} into {done.into} ({_count(done.commits, 'commit')})"])
    if remove or (remove is None and _offer_removal(done.workspace.slug, how)):
        shown = render.show_removed(_remove(session, place, done.head))
        answer.narrate(shown.notes)
        answer.print_lines(shown.lines)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _describe_merging(done: Any) -> dict[str, Any]:
    return {
        "workspace": done.workspace.slug,
        "into": done.into,
        "before": done.before,
        "after": done.after,
        "commits": done.commits,
        "rebased": done.rebased,
        "kept": done.kept,
    }


def _tell_merging(done: Any) -> list[str]:
    notes = [f"{done.into} went from {done.before[:_SHORT]} to {done.after[:_SHORT]}"]
    if done.kept is not None:
        notes.append(f"{done.workspace.branch} keeps its own commits: {done.kept}")
    return notes


def _offer_removal(slug: str, how: str) -> bool:
    """Ask whether what was merged shall go; without a person say how it goes."""
    if has_person():
        return bool(ask_yes_no(f"{slug} is merged.", "Remove it, and its branch? [y/N] ", lambda: False, math.inf))
    flag = "" if how == "squash" else " --delete-branch"
    answer.narrate([f"done with it? exeora remove {slug}{flag}"])
    return False


def _remove(session: Session, place: Any, head: str) -> dict[str, Any]:
    """Remove what was merged, with its branch, which Git may not see as merged; takes the shell to main."""
    from exeora_ws.app import describe_removal

    around = session.find_around_quietly()
    removal = run_deed(
        session,
        "remove_workspace",
        place,
        lambda cancellation: session.app.upkeep.remove_merged(place, head, cancellation=cancellation),
        listed_as=("remove_workspace",),
    )
    leave_if_gone(session, around)
    return describe_removal(removal)


@group.command(
    "diff",
    """
    exeora diff feature-login
    exeora diff feature-login --stat
    exeora diff --against origin/main
    """,
    "`workspace` (the slug), `against`, `since` (the commit where they parted), `diff`, `untracked`.",
)
def diff(
    ctx: typer.Context,
    workspace: MaybeNamed = None,
    stat: Annotated[bool, typer.Option("--stat", help="Files and numbers of lines alone.")] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="REF", help="Instead of its base.", autocompletion=complete_branch),
    ] = None,
) -> None:
    """Show what a workspace has that its base had not where they parted, uncommitted changes too."""
    session = session_of(ctx)
    place = require_place(session, workspace)
    ref, found = run_deed(
        session,
        "show_difference",
        place,
        lambda _: session.app.upkeep.load_difference(place, against, stat=stat),
        changes=False,
    )
    text = found.text.decode("utf-8", "surrogateescape")
    facts = {
        "workspace": place.workspace.slug,
        "against": ref,
        "since": found.since,
        "diff": text,
        "untracked": list(found.untracked),
    }
    notes = [f"untracked, not shown: {', '.join(found.untracked)}"] if found.untracked else []
    session.show(facts, lambda _: Shown(text.removesuffix("\n").split("\n") if text else [], notes))


@group.command("open", "exeora open feature-login", "None: the editor takes over.")
def open_(ctx: typer.Context, workspace: MaybeNamed = None) -> None:
    """Open a workspace in your editor: the first set of EXEORA_EDITOR, VISUAL and EDITOR."""
    session = session_of(ctx)
    place = require_place(session, workspace)
    session.app.inventory.require_available(place, files=True)
    editor = next((os.environ[name] for name in _EDITORS if os.environ.get(name)), None)
    if editor is None:
        raise ToolFailed("no editor is set", reason="no_editor", hint="export EXEORA_EDITOR=code")
    _become(editor, str(place.root))


def _become(editor: str, path: str) -> None:
    """Hand the terminal over: the editor's setting may hold arguments, as git takes it."""
    sys.stdout.flush()
    os.chdir(path)
    try:
        os.execv("/bin/sh", ["sh", "-c", f'exec {editor} "$@"', editor, path])  # noqa: S606  the user's own setting
    except OSError as error:
        raise ToolFailed(f"the editor cannot be started: {error.strerror}", reason="not_started") from error
