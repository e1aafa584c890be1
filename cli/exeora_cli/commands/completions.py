"""completion: the shell's script for completing command lines."""

from typing import Annotated

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer
from exeora_cli.fast import COMPLETION_VARIABLE
from exeora_cli.group import Group
from exeora_cli.session import session_of

group = Group("Set-up")

SHELLS = ("bash", "zsh", "fish")


@group.command(
    "completion",
    """
    eval "$(exeora completion bash)"
    eval "$(exeora completion zsh)"
    exeora completion fish > ~/.config/fish/completions/exeora.fish
    """,
    "None: a script is printed.",
)
def completion(
    ctx: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", autocompletion=lambda: SHELLS)],
) -> None:
    """Print the script that completes commands, workspaces and branches in your shell."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # typer's own, not in its __all__

    session_of(ctx).refuse_globals("completion")
    if shell not in SHELLS:
        raise InvalidArguments(f"shell: expected one of {', '.join(SHELLS)}", reason="unknown_shell")
    script = get_completion_script(prog_name="exeora", complete_var=COMPLETION_VARIABLE, shell=shell)
    answer.print_lines([script])
