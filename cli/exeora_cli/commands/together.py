"""merge, diff, open: bring work together, see it, edit it."""

import os
import sys
from typing import Annotated

import typer
from exeora_ws.errors import InvalidArguments, ToolFailed

from exeora_cli.commands.workspaces import MaybeNamed
from exeora_cli.direct import require_place, run_deed, run_direct
from exeora_cli.group import Group
from exeora_cli.session import Shown, session_of

group = Group("Workspaces")
_EDITORS = ("EXEORA_EDITOR", "VISUAL", "EDITOR")


@group.command(
    "merge",
    """
    exeora merge feature-login
    exeora merge feature-login --squash -m "Log in with a link"
    exeora merge feature-login --rebase --into release
    """,
    "`workspace` (the slug), `into`, `before`, `after`, `commits`, `rebased` (the branch's new commit, or null).",
)
def merge(
    ctx: typer.Context,
    workspace: MaybeNamed = None,
    squash: Annotated[bool, typer.Option("--squash", help="As one commit.")] = False,
    rebase: Annotated[bool, typer.Option("--rebase", help="Its commits again, on top of the base.")] = False,
    into: Annotated[str | None, typer.Option("--into", metavar="BRANCH", help="Another branch than its base.")] = None,
    message: Annotated[str | None, typer.Option("-m", "--message", help="Message of the squashed commit.")] = None,
) -> None:
    """Bring a workspace's branch into its base: forward if that goes, else say --squash or --rebase.

    A conflict is refused before anything was changed.
    """
    session = session_of(ctx)
    if squash and rebase:
        raise InvalidArguments("merge: pass one of --squash and --rebase", reason="conflicting_fields")
    if message is not None and not squash:
        raise InvalidArguments("-m: only a squashed commit has a new message", reason="conflicting_fields")
    place = require_place(session, workspace)
    how = "squash" if squash else "rebase" if rebase else "ff"
    done = run_direct(
        session,
        "merge",
        lambda cancellation: session.app.upkeep.merge(
            place, into=into, how=how, message=None if message is None else message + "\n", cancellation=cancellation
        ),
    )
    facts = {
        "workspace": done.workspace.slug,
        "into": done.into,
        "before": done.before,
        "after": done.after,
        "commits": done.commits,
        "rebased": done.rebased,
    }
    said = f"merged {done.workspace.slug} into {done.into} ({done.commits} commits)"
    notes = [
        f"{done.into} went from {done.before[:10]} to {done.after[:10]}",
        f"done with it? exeora remove {done.workspace.slug} --delete-branch",
    ]
    session.show(facts, lambda _: Shown([said], notes))


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
    against: Annotated[str | None, typer.Option("--against", metavar="REF", help="Instead of its base.")] = None,
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
