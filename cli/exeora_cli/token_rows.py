"""Tokens as documents and as lines, wherever they stand."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from exeora_cli.plain import align, show_text
from exeora_cli.session import Shown
from exeora_cli.times import write_time

if TYPE_CHECKING:
    from exeora_ws.tools.tokens import Token

KEYS = "id, name, account, projects, readOnly, created, expires, used, revoked, state"
MEANING = (
    "`account`: whether it opens /mcp; `projects`: slugs, or null for all; times in UTC or null; `state`: `valid`, "
    "`expired` or `revoked`"
)


def describe_token(token: "Token", slugs: Mapping[str, str]) -> dict[str, Any]:
    """Give a token as documents have it.

    Args:
        token: the token.
        slugs: of the projects that are there, by id.
    """
    granted = token.projects
    times = {"expires": token.expires, "used": token.used, "revoked": token.revoked}
    return {
        "id": token.id,
        "name": token.name,
        "account": token.account,
        # One whose project is gone reaches nothing there, and shows its id.
        "projects": None if granted is None else sorted(slugs.get(identity, str(identity)) for identity in granted),
        "readOnly": token.read_only,
        "created": write_time(token.created),
        **{key: None if at is None else write_time(at) for key, at in times.items()},
        "state": _find_state(token),
    }


def _find_state(token: "Token") -> str:
    if token.revoked is not None:
        return "revoked"
    return "valid" if token.is_valid(time.time()) else "expired"


def show_created(result: Mapping[str, Any]) -> Shown:
    """Show a token that was just made."""
    token = result["token"]
    return Shown([result["secret"]], [f"token {token['id']} opens {_word_reach(token)}; it is shown only now"])


def show_revoked(result: Mapping[str, Any]) -> Shown:
    """Show a token that was just revoked."""
    token = result["token"]
    return Shown([f"revoked {token['id']}  {show_text(token['name'])}"])


def show_tokens(result: Mapping[str, Any], make: str) -> Shown:
    """Show a list of tokens; `make` is the command that makes one."""
    tokens = result["tokens"]
    return Shown(align([_row(token) for token in tokens])) if tokens else Shown([], [f"there is no token: {make}"])


def _row(token: Mapping[str, Any]) -> tuple[str, ...]:
    until = f"until {token['expires']}" if token["expires"] else "for ever"
    used = f"used {token['used']}" if token["used"] else "never used"
    return token["id"], show_text(token["name"]), token["state"], until, used, _word_reach(token)


def _word_reach(token: Mapping[str, Any]) -> str:
    where = "all projects" if token["projects"] is None else ", ".join(token["projects"])
    alone = "" if token["account"] else ", not /mcp"
    return f"{where}{alone}{', read only' if token['readOnly'] else ''}"
