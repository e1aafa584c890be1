"""Tokens for MCP over HTTP as values: what one opens, how one is drawn, which is meant. Pure; books keep them."""

import hashlib
import re
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from exeora_ws.errors import InvalidArguments
from exeora_ws.names import ProjectId
from exeora_ws.tools.stations import Scope

PREFIX = "exo_"
USED_SECONDS = 60.0
"""How exactly the last use is kept: a write for every request would be one too many."""

_SECRET_BYTES = 32
_SECRET = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}\Z")
_NAME_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret. Times are seconds since the epoch."""

    id: str
    name: str
    account: bool
    """Whether it opens the account endpoint; otherwise only the endpoints of its projects."""
    projects: frozenset[ProjectId] | None
    """The projects it reaches; None means all, also those to come."""
    read_only: bool
    created: float
    expires: float | None
    used: float | None
    revoked: float | None

    def is_valid(self, now: float) -> bool:
        """Whether it opens anything."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def reaches(self, project: ProjectId) -> bool:
        """Whether it was granted a project."""
        return self.projects is None or project in self.projects

    def account_scope(self) -> Scope:
        """Give what a call at the account endpoint may reach."""
        return Scope(granted=self.projects, read_only=self.read_only)

    def project_scope(self, project: ProjectId) -> Scope:
        """Give what a call at a project's endpoint may reach."""
        return Scope(bound=project, granted=frozenset((project,)), read_only=self.read_only)

    def is_use_worth_noting(self, now: float) -> bool:
        """Whether its last use stands too far back."""
        return self.used is None or now - self.used >= USED_SECONDS


def is_secret(text: str) -> bool:
    """Whether a text has the form of a token's secret."""
    return _SECRET.match(text) is not None


def hash_secret(secret: str) -> bytes:
    """Give what is kept of a secret. It has 256 random bits: a slow hash would add nothing."""
    return hashlib.sha256(secret.encode()).digest()


def order_token(
    name: str,
    *,
    account: bool = True,
    projects: Collection[ProjectId] | None = None,
    read_only: bool = False,
    seconds: float | None = None,
) -> tuple[Token, str]:
    """Make a token as somebody ordered it; gives it and its secret.

    Args:
        name: what a person calls it.
        account: whether it opens the account endpoint too.
        projects: the projects granted; None grants all.
        read_only: whether it may only use tools that change nothing.
        seconds: how long it is valid; None for ever.

    Raises:
        InvalidArguments: an empty or overlong name, no project, a time that is over at once.
    """
    if not name.strip() or len(name) > _NAME_CHARACTERS or not name.isprintable():
        raise InvalidArguments(f"name: expected 1 to {_NAME_CHARACTERS} printable characters", reason="wrong_value")
    if projects is not None and not projects:
        raise InvalidArguments("projects: a token that reaches nothing is of no use", reason="wrong_value")
    if seconds is not None and seconds <= 0:
        raise InvalidArguments("expires: the time must lie ahead", reason="wrong_value")
    now = time.time()
    token = Token(
        id=f"tok_{secrets.token_hex(6)}",
        name=name,
        account=account,
        projects=None if projects is None else frozenset(projects),
        read_only=read_only,
        created=now,
        expires=None if seconds is None else now + seconds,
        used=None,
        revoked=None,
    )
    return token, PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def match_name(tokens: Sequence[Token], selector: str, now: float) -> list[Token]:
    """Give the tokens that an id names, else the valid ones of that name."""
    by_id = [token for token in tokens if token.id == selector]
    return by_id or [token for token in tokens if token.name == selector and token.is_valid(now)]


def require_one(found: Sequence[Token], selector: str, *, hint: str) -> Token:
    """Give the one token that was found.

    Raises:
        InvalidArguments: reason `unknown_token`, `ambiguous_token`.
    """
    if not found:
        # What may be a secret is not said back.
        named = "" if selector.startswith(PREFIX) else f" {selector[:_NAME_CHARACTERS]!r}"
        raise InvalidArguments(f"there is no such token{named}", reason="unknown_token", hint=hint)
    if len(found) > 1:
        raise InvalidArguments(
            f"{len(found)} tokens are called {selector!r}: name one by its id", reason="ambiguous_token", hint=hint
        )
    return found[0]
