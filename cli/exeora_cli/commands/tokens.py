"""token create, list, revoke: who may reach what over HTTP."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli.completion import complete_project, complete_token
from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Session, Shown, session_of
from exeora_cli.times import parse_duration, write_time

if TYPE_CHECKING:
    from exeora_ws.names import ProjectId
    from exeora_ws.serve.tokens import Token, TokenBook

group = Group("Agents", "token", "Tokens for MCP over HTTP (exeora serve).")

_KEYS = "id, name, account, projects, readOnly, created, expires, used, revoked, state"
_MEANING = (
    "`account`: whether it opens /mcp; `projects`: slugs, or null for all; times in UTC or null; `state`: `valid`, "
    "`expired` or `revoked`"
)


@group.command(
    "create",
    """
    exeora token create
    exeora token create --project app --read-only --expires 30d
    exeora token create --account --project app --project api --name laptop
    """,
    f"`token{{{_KEYS}}}` and `secret`, which is shown this once. {_MEANING}.",
)
def create(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Option("--name", help="What you call it; what it opens by default.", show_default=False)
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option(
            "--project",
            metavar="PROJECT",
            help="Grant this project and no other; may be given repeatedly. All projects without.",
            autocompletion=complete_project,
        ),
    ] = None,
    account: Annotated[
        bool, typer.Option("--account", help="With --project: open /mcp too, for these projects alone.")
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only tools that change nothing.")] = False,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="How long it is valid: 30d, 12h, 90m, 2w.")
    ] = None,
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
    session.show(
        {"token": described, "secret": secret},
        lambda _: Shown([secret], [f"token {token.id} opens {_word_reach(described)}; it is shown only now"]),
    )


@group.command(
    "list",
    """
    exeora token list
    exeora token list --json
    """,
    f"`tokens[{{{_KEYS}}}]`. {_MEANING}.",
)
def list_(ctx: typer.Context) -> None:
    """List the tokens, also those that open nothing any more."""
    session = session_of(ctx)
    session.refuse_globals("token list")
    tokens = [_describe(session, token) for token in _open_book(session).list()]
    session.show({"tokens": tokens}, _show_list)


@group.command(
    "revoke",
    """
    exeora token revoke tok_0123456789ab
    exeora token revoke laptop
    """,
    f"`token{{{_KEYS}}}`. {_MEANING}.",
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
    session.show({"token": revoked}, lambda _: Shown([f"revoked {revoked['id']}  {show_text(revoked['name'])}"]))


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
    slugs = {project.id: str(project.slug) for project in session.app.inventory.list_projects()}
    granted = token.projects
    return {
        "id": token.id,
        "name": token.name,
        "account": token.account,
        # One whose project is gone reaches nothing there, and shows its id.
        "projects": None if granted is None else sorted(slugs.get(identity, str(identity)) for identity in granted),
        "readOnly": token.read_only,
        "created": write_time(token.created),
        **{key: None if at is None else write_time(at) for key, at in _list_times(token).items()},
        "state": _find_state(token),
    }


def _list_times(token: "Token") -> dict[str, float | None]:
    return {"expires": token.expires, "used": token.used, "revoked": token.revoked}


def _find_state(token: "Token") -> str:
    if token.revoked is not None:
        return "revoked"
    return "valid" if token.is_valid(time.time()) else "expired"


def _show_list(result: dict[str, Any]) -> Shown:
    tokens = result["tokens"]
    if not tokens:
        return Shown([], ["there is no token: exeora token create makes one"])
    return Shown(align([_row(token) for token in tokens]))


def _row(token: dict[str, Any]) -> tuple[str, ...]:
    until = f"until {token['expires']}" if token["expires"] else "for ever"
    used = f"used {token['used']}" if token["used"] else "never used"
    return token["id"], show_text(token["name"]), token["state"], until, used, _word_reach(token)


def _word_reach(token: dict[str, Any]) -> str:
    where = "all projects" if token["projects"] is None else ", ".join(token["projects"])
    alone = "" if token["account"] else ", not /mcp"
    return f"{where}{alone}{', read only' if token['readOnly'] else ''}"
