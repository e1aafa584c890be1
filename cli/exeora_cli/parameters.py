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

BehindProxy = Annotated[
    bool, typer.Option("--behind-proxy", help="A proxy that speaks TLS is in front; needs --allowed-host.")
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option("--allowed-host", metavar="NAME", help="A name the proxy is reached by. May be given repeatedly."),
]

TokenName = Annotated[
    str | None, typer.Option("--name", help="What you call it; what it opens by default.", show_default=False)
]
AccountToo = Annotated[bool, typer.Option("--account", help="With --project: open /mcp too, for these projects alone.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Only tools that change nothing.")]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="TIME", help="How long it is valid: 30d, 12h, 90m, 2w.")
]
