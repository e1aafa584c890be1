"""skills and prompt: what agents are given to read."""

from typing import Annotated

import typer

from exeora_cli import render_policy
from exeora_cli.group import Group
from exeora_cli.session import Shown, session_of

group = Group("Agents")


@group.command(
    "skills",
    """
    exeora skills
    exeora -w feature/login skills --json
    """,
    (
        "The result of `list_skills`: `skills[{name, description, source, path}]`, and `problems[{path, message}]` "
        "where there are any. `source` is `user` or `project`; `path` is what `read` takes."
    ),
)
def skills(ctx: typer.Context) -> None:
    """List the skills at hand: those of the workspace, and your own."""
    session = session_of(ctx)
    project = session.require_project()
    arguments = {"workspace": session.choose_workspace(project)}
    session.show(session.make("list_skills", arguments, project), render_policy.show_skills)


@group.command(
    "prompt",
    """
    exeora prompt
    exeora prompt --account
    """,
    "`prompt`, the text.",
)
def prompt(
    ctx: typer.Context,
    account: Annotated[bool, typer.Option("--account", help="For a connection that reaches every project.")] = False,
) -> None:
    """Print the guide for coding agents: how workspaces are chosen, limits, and what a refusal means."""
    session = session_of(ctx)
    session.refuse_globals("prompt")
    from exeora_ws.skills.prompt import agent_prompt

    text = agent_prompt(account=account)
    session.show({"prompt": text}, lambda _: Shown(text.removesuffix("\n").split("\n")))
