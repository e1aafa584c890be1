"""Arguments and options that several commands have."""

from typing import Annotated

import typer

from exeora_cli.completion import complete_workspace

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
