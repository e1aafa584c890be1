"""token create, list, revoke: who may reach what over HTTP."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli.completion import complete_project, complete_token
from exeora_cli.group import Group
from exeora_cli.parameters import AccountToo, Expires, ReadOnly, TokenName
from exeora_cli.session import Session, session_of
from exeora_cli.times import parse_duration
from exeora_cli.token_rows import KEYS, MEANING, describe_token, show_created, show_revoked, show_tokens

if TYPE_CHECKING:
    from exeora_ws.names import ProjectId
    from exeora_ws.serve.tokens import Token, TokenBook

group = Group("Agents", "token", "Tokens for MCP over HTTP (exeora serve).")


@group.command(
    "create",
    """
    exeora token create
    exeora token create --project app --read-only --expires 30d
    exeora token create --account --project app --project api --name laptop
    """,
    f"`token{{{KEYS}}}` and `secret`, which is shown this once. {MEANING}.",
)
def create(
    ctx: typer.Context,
    name: TokenName = None,
    project: Annotated[
        list[str] | None,
        typer.Option(
            "--project",
            metavar="PROJECT",
            help="Grant this project and no other; may be given repeatedly. All projects without.",
            autocompletion=complete_project,
        ),
    ] = None,
    account: AccountToo = False,
    read_only: ReadOnly = False,
    expires: Expires = None,
) -> None:
    """Make a token and print it. It is kept as a hash and cannot be shown again.

    Without --project it opens everything, projects to come included; with it, only the endpoints of those projects.
    """
    session = session_of(ctx)
    session.refuse_workspace("token")
    granted = _require_projects(session, project or [])
    token, secret = _open_book(session).create(
        name if name is not None else ", ".join(granted) or "account",
        account=account or not granted,
        projects=granted.values() if granted else None,
        read_only=read_only,
        seconds=None if expires is None else parse_duration(expires, "--expires"),
    )
    described = _describe(session, token)
    session.show({"token": described, "secret": secret}, show_created)


@group.command(
    "list",
    """
    exeora token list
    exeora token list --json
    """,
    f"`tokens[{{{KEYS}}}]`. {MEANING}.",
)
def list_(ctx: typer.Context) -> None:
    """List the tokens, also those that open nothing any more."""
    session = session_of(ctx)
    session.refuse_globals("token list")
    tokens = [_describe(session, token) for token in _open_book(session).list()]
    session.show({"tokens": tokens}, lambda result: show_tokens(result, "exeora token create makes one"))


@group.command(
    "revoke",
    """
    exeora token revoke tok_0123456789ab
    exeora token revoke laptop
    """,
    f"`token{{{KEYS}}}`. {MEANING}.",
)
def revoke(
    ctx: typer.Context,
    token: Annotated[
        str,
        typer.Argument(metavar="TOKEN", help="Its id, its name, or the token itself.", autocompletion=complete_token),
    ],
) -> None:
    """Revoke a token. What is open with it ends within a second."""
    session = session_of(ctx)
    session.refuse_globals("token revoke")
    revoked = _describe(session, _open_book(session).revoke(token))
    session.show({"token": revoked}, show_revoked)


def _open_book(session: Session) -> "TokenBook":
    from exeora_ws.serve.tokens import TokenBook

    return TokenBook(session.app.places)


def _require_projects(session: Session, named: list[str]) -> "dict[str, ProjectId]":
    """Resolve the projects, by slug; the one in front of the command counts like those after it."""
    if session.options.project is not None:
        named = [session.options.project, *named]
    if any(not selector for selector in named):
        raise InvalidArguments("--project: an empty name grants nothing", reason="wrong_value")
    found = [session.app.inventory.require_project(selector) for selector in named]
    return {str(project.slug): project.id for project in found}


def _describe(session: Session, token: "Token") -> dict[str, Any]:
    return describe_token(token, {project.id: str(project.slug) for project in session.app.inventory.list_projects()})
