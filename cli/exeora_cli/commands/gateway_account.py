"""gateway token and gateway policy: who may come in at the gateways, and what the account allows at most."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments, ToolFailed

from exeora_cli.commands import gateway
from exeora_cli.fleet_state import CredentialFile, reach_state
from exeora_cli.group import Group
from exeora_cli.parameters import AccountToo, Expires, ReadOnly, TokenName
from exeora_cli.session import Shown, session_of
from exeora_cli.times import parse_duration
from exeora_cli.token_rows import KEYS, MEANING, describe_token, show_created, show_revoked, show_tokens

if TYPE_CHECKING:
    from exeora_ws.fleet.account import AccountPolicy
    from exeora_ws.fleet.line import Line
    from exeora_ws.names import ProjectId

token_group = Group("Fleet", "token", "Tokens of the gateways' clients.", inside=gateway.group)
policy_group = Group("Fleet", "policy", "What the account allows at most.", inside=gateway.group)

_MAKE = "exeora gateway token create makes one"


@token_group.command(
    "create",
    """
    exeora gateway token create
    exeora gateway token create --project app --read-only --expires 30d
    """,
    f"`token{{{KEYS}}}` and `secret`, which is shown this once. {MEANING}.",
)
def create_token(
    ctx: typer.Context,
    name: TokenName = None,
    project: Annotated[
        list[str] | None,
        typer.Option(
            "--project",
            metavar="PROJECT",
            help="Grant this project of the fleet and no other; may be given repeatedly. All projects without.",
        ),
    ] = None,
    account: AccountToo = False,
    read_only: ReadOnly = False,
    expires: Expires = None,
    credential: CredentialFile = None,
) -> None:
    """Make a token for the gateways and print it. It is kept as a hash and cannot be shown again."""
    session = session_of(ctx)
    session.refuse_workspace("gateway token")
    from exeora_ws.fleet.buckets import TOKENS_BUCKET, Bucket
    from exeora_ws.fleet.tokens import TokenStore

    named = ([] if session.options.project is None else [session.options.project]) + (project or [])
    with reach_state(credential) as lines:
        slugs = _list_slugs(lines.state)
        granted = {selector: _require_project(slugs, selector) for selector in named}
        token, secret = TokenStore(Bucket(lines.state, TOKENS_BUCKET)).create(
            name if name is not None else ", ".join(granted) or "account",
            account=account or not granted,
            projects=granted.values() if granted else None,
            read_only=read_only,
            seconds=None if expires is None else parse_duration(expires, "--expires"),
        )
    session.show({"token": describe_token(token, _by_id(slugs)), "secret": secret}, show_created)


@token_group.command("list", "exeora gateway token list", f"`tokens[{{{KEYS}}}]`. {MEANING}.")
def list_tokens(ctx: typer.Context, credential: CredentialFile = None) -> None:
    """List the tokens of the gateways, also those that open nothing any more."""
    session = session_of(ctx)
    session.refuse_globals("gateway token list")
    from exeora_ws.fleet.buckets import TOKENS_BUCKET, Bucket
    from exeora_ws.fleet.tokens import TokenStore

    with reach_state(credential) as lines:
        slugs = _by_id(_list_slugs(lines.state))
        tokens = [describe_token(token, slugs) for token in TokenStore(Bucket(lines.state, TOKENS_BUCKET)).list()]
    session.show({"tokens": tokens}, lambda result: show_tokens(result, _MAKE))


@token_group.command("revoke", "exeora gateway token revoke tok_0123456789ab", f"`token{{{KEYS}}}`. {MEANING}.")
def revoke_token(
    ctx: typer.Context,
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id, its name, or the token itself.")],
    credential: CredentialFile = None,
) -> None:
    """Revoke a token. What is open with it ends within a second, at every gateway."""
    session = session_of(ctx)
    session.refuse_globals("gateway token revoke")
    from exeora_ws.fleet.buckets import TOKENS_BUCKET, Bucket
    from exeora_ws.fleet.tokens import TokenStore

    with reach_state(credential) as lines:
        revoked = TokenStore(Bucket(lines.state, TOKENS_BUCKET)).revoke(token)
        slugs = _by_id(_list_slugs(lines.state))
    session.show({"token": describe_token(revoked, slugs)}, show_revoked)


@policy_group.command(
    "show",
    """
    exeora gateway policy show
    """,
    "`policy`: the document, or null where there is none; `warnings`: what its author should know.",
)
def show_policy(ctx: typer.Context, credential: CredentialFile = None) -> None:
    """Print the account's policy, which narrows every project's at every gateway and on every machine."""
    session = session_of(ctx)
    session.refuse_globals("gateway policy show")
    from exeora_ws.fleet.account import AccountBook
    from exeora_ws.fleet.buckets import POLICY_BUCKET, Bucket

    with reach_state(credential) as lines:
        found = AccountBook(Bucket(lines.state, POLICY_BUCKET)).load()
    session.show(_describe_policy(found), _show_policy)


@policy_group.command(
    "set",
    """
    exeora gateway policy set account.toml
    exeora gateway policy set - < account.toml
    """,
    "As `policy show`, of what holds from now on.",
)
def set_policy(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The document, as exeora.toml; - reads the input.")],
    credential: CredentialFile = None,
) -> None:
    """Set the account's policy, in the language of exeora.toml. Gateways go by it from the next call on."""
    session = session_of(ctx)
    session.refuse_globals("gateway policy set")
    from exeora_ws.fleet.account import AccountBook
    from exeora_ws.fleet.buckets import POLICY_BUCKET, Bucket

    text = _read_document(file)
    with reach_state(credential) as lines:
        stored = AccountBook(Bucket(lines.state, POLICY_BUCKET)).store(text)
    session.show(
        _describe_policy(stored), lambda result: Shown([], [*result["warnings"], "the account's policy is set"])
    )


def _read_document(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolFailed("the file of the policy cannot be read", reason="not_readable") from error


def _describe_policy(policy: "AccountPolicy") -> dict[str, Any]:
    return {"policy": policy.text, "warnings": list(policy.warnings)}


def _show_policy(result: dict[str, Any]) -> Shown:
    if result["policy"] is None:
        return Shown([], ["there is no policy of the account: each project's own holds"])
    return Shown(result["policy"].splitlines(), result["warnings"])


def _list_slugs(state: "Line") -> "dict[str, ProjectId]":
    from exeora_ws.fleet.buckets import SLUGS_BUCKET, Bucket
    from exeora_ws.fleet.slugs import list_slugs

    return list_slugs(Bucket(state, SLUGS_BUCKET))


def _by_id(slugs: "dict[str, ProjectId]") -> dict[str, str]:
    return {str(project): slug for slug, project in slugs.items()}


def _require_project(slugs: "dict[str, ProjectId]", selector: str) -> "ProjectId":
    from exeora_ws.errors import UnknownProject

    if not selector:
        raise InvalidArguments("--project: an empty name grants nothing", reason="wrong_value")
    found = slugs.get(selector) or next((each for each in slugs.values() if each == selector), None)
    if found is None:
        raise UnknownProject(f"there is no project {selector!r} in the fleet", hint="exeora machine list shows them")
    return found
