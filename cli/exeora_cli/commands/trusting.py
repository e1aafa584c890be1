"""trust and setup: what makes new workspaces ready, and a person's agreement to it."""

import sys
from typing import Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments, ToolFailed

from exeora_cli import answer
from exeora_cli.direct import require_place, run_deed
from exeora_cli.group import Group
from exeora_cli.parameters import MaybeNamed
from exeora_cli.plain import show_text
from exeora_cli.render import show_setup
from exeora_cli.session import Session, Shown, explain_no_project, session_of

group = Group("Set-up")


@group.command(
    "trust",
    """
    exeora trust
    exeora trust --show
    exeora trust --revoke
    """,
    "`project` (the slug), `setup`, `teardown`, `env`, `trusted`, `digest`; with --revoke also `revoked`, how many.",
)
def trust(
    ctx: typer.Context,
    show: Annotated[bool, typer.Option("--show", help="Only show what it is about.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take every agreement for this project back.")] = False,
) -> None:
    """Agree to the set-up commands in the project's exeora.toml, exactly as they are now.

    They come from the repository and run on your machine, so a person agrees to them, at a terminal. Any change needs a
    new agreement.
    """
    session = session_of(ctx)
    session.refuse_workspace("trust")
    project = session.find_project()
    if project is None:
        raise explain_no_project()
    setup = session.app.inventory.setup
    # Policy does not judge what a person agrees to; that it was done is on record.
    revoked = (
        run_deed(session, "revoke_trust", project, lambda _: setup.revoke_trust(project), changes=False)
        if revoke
        else None
    )
    recipe = setup.load_recipe(project)
    if not (show or revoke or setup.is_trusted(project, recipe)):
        _ask(session, recipe)
        run_deed(session, "trust_setup", project, lambda _: setup.trust(project, recipe.digest), changes=False)
    facts: dict[str, Any] = {
        "project": project.slug,
        "setup": list(recipe.setup),
        "teardown": list(recipe.teardown),
        "env": dict(recipe.env or {}),
        "trusted": setup.is_trusted(project, recipe),
        "digest": recipe.digest,
    }
    if revoked is not None:
        facts["revoked"] = revoked
    said = (
        "needs no trust: nothing would run"
        if not recipe.needs_trust
        else "trusted"
        if facts["trusted"]
        else "not trusted"
    )
    session.show(facts, lambda _: Shown([*_list(recipe), f"{project.slug}: {said}"]))


def _list(recipe: Any) -> list[str]:
    lines = [f"setup     {show_text(line)}" for line in recipe.setup]
    lines += [f"teardown  {show_text(line)}" for line in recipe.teardown]
    return lines + [f"env       {name}={show_text(value)}" for name, value in (recipe.env or {}).items()]


def _ask(session: Session, recipe: Any) -> None:
    """Show every command and have a person type yes.

    Raises:
        InvalidArguments: no terminal.
        ToolFailed: reason `not_agreed`.
    """
    if session.options.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidArguments(
            "trust asks a person, and there is no terminal", reason="no_terminal", hint="exeora trust --show shows it"
        )
    answer.narrate([*_list(recipe), "these would run on this machine in every new workspace"])
    sys.stderr.write("type yes to agree: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != "yes":
        raise ToolFailed("not agreed, so nothing changes", reason="not_agreed")


@group.command(
    "setup",
    "exeora setup feature-login",
    "`workspace` (the slug) and `setup`, as create has it.",
)
def setup(ctx: typer.Context, workspace: MaybeNamed = None) -> None:
    """Make a workspace ready again: copy and link what is missing, run the trusted set-up commands."""
    session = session_of(ctx)
    place = require_place(session, workspace)
    session.app.inventory.require_available(place, files=True)
    prepared = run_deed(
        session,
        "set_up_workspace",
        place,
        lambda cancellation: session.app.inventory.setup.prepare(place, cancellation),
    )
    from exeora_ws.app import describe_setup

    described = describe_setup(prepared)
    line = f"{place.workspace.slug}: {prepared.status}"
    session.show(
        {"workspace": place.workspace.slug, "setup": described}, lambda _: Shown([line], show_setup(described))
    )
    if prepared.status in ("failed", "invalid"):
        raise typer.Exit(answer.FAILED)
