"""switch and shell-init: take the shell to another workspace."""

from typing import Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer
from exeora_cli.choosing import choose_workspace
from exeora_cli.directive import can_direct, direct_to
from exeora_cli.group import Group
from exeora_cli.parameters import MaybeNamed
from exeora_cli.previous import store_previous
from exeora_cli.session import Session, Shown, explain_no_project, session_of
from exeora_cli.shell_wrappers import WRAPPERS

group = Group("Workspaces")


@group.command(
    "switch",
    """
    exeora switch feature-login
    exeora switch -
    exeora switch
    cd "$(exeora switch main)"
    """,
    "`workspace` (the slug) and `path`, and `directed`: whether the shell was told to go there.",
)
def switch(ctx: typer.Context, workspace: MaybeNamed = None) -> None:
    """Take the shell to a workspace: by slug, id, branch, or - for the one left last.

    Without a name, choose: at a terminal by typing a part of it or with the arrow keys, its state and last commits
    beside; elsewhere from a numbered list.

    A program cannot move the shell it was started from: put `eval "$(exeora shell-init bash)"` into the shell's
    start-up file. Without that, the path is printed.
    """
    session = session_of(ctx)
    if workspace is not None:
        session.options.take("workspace", workspace)
    project = session.find_project()
    if project is None:
        raise explain_no_project()
    selector = session.options.workspace
    slug = choose_workspace(session, project) if selector is None else session.resolve(project, selector)
    go_to(session, session.app.inventory.require_place(project, slug))


def go_to(session: Session, place: Any) -> None:
    """Take the shell to a place, remember the one it leaves, and say so."""
    session.app.inventory.require_available(place, files=False)
    around = session.find_around_quietly()
    if around is not None and around.project.id == place.project.id and around.workspace.id != place.workspace.id:
        store_previous(session.app.places, place.project.id, around.workspace.id)
    directed = direct_to(str(place.root))
    facts = {"workspace": place.workspace.slug, "path": str(place.root), "directed": directed}
    if directed:
        session.show(facts, lambda _: Shown([], [f"now in workspace {place.workspace.slug!r}"]))
        return
    notes = [] if can_direct() else ['your shell stays where it is: it needs `eval "$(exeora shell-init bash)"` once']
    session.show(facts, lambda _: Shown([str(place.root)], notes))


@group.command(
    "shell-init",
    """
    eval "$(exeora shell-init bash)"
    eval "$(exeora shell-init zsh)"
    exeora shell-init fish | source
    exeora shell-init powershell | Out-String | Invoke-Expression
    """,
    "None: a script is printed.",
)
def shell_init(
    ctx: typer.Context,
    shell: Annotated[
        str,
        typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.", autocompletion=lambda: list(WRAPPERS)),
    ],
) -> None:
    """Print the shell function that lets switch, create --switch and remove move your shell.

    It runs the real exeora, which writes where to go into a file. The function reads that as data, and evaluates
    nothing.
    """
    session_of(ctx).refuse_globals("shell-init")
    if shell not in WRAPPERS:
        raise InvalidArguments(f"shell: expected one of {', '.join(WRAPPERS)}", reason="unknown_shell")
    answer.print_lines(WRAPPERS[shell].rstrip("\n").split("\n"))
