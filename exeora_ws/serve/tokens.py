"""Tokens for MCP over HTTP: who may reach what. Kept as hashes; the secret is shown once, when it is made.

Imports nothing of MCP: the command line makes and revokes tokens.
"""

import hashlib
import hmac
import json
import re
import secrets
import sqlite3
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from exeora_ws.database import Database
from exeora_ws.errors import ExeoraError, InvalidArguments
from exeora_ws.names import ProjectId
from exeora_ws.settings import Places
from exeora_ws.tools.call import Scope

TOKEN_MIGRATIONS = (
    """
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        hash BLOB NOT NULL UNIQUE,
        account INTEGER NOT NULL,
        projects TEXT,
        read_only INTEGER NOT NULL,
        created REAL NOT NULL,
        expires REAL,
        used REAL,
        revoked REAL
    );
    """,
)

PREFIX = "exo_"
_SECRET_BYTES = 32
_SECRET = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}\Z")
_NAME_CHARACTERS = 100
_USED_SECONDS = 60.0
"""How exactly the last use is kept: a write for every request would be one too many."""


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


class TokenBook:
    """The tokens of this user. Any number of processes may have it open.

    Args:
        places: where the database is.

    Raises:
        ToolFailed: the database cannot be used.
    """

    def __init__(self, places: Places) -> None:
        self._database = Database(places.database, {"tokens": TOKEN_MIGRATIONS})

    def create(
        self,
        name: str,
        *,
        account: bool = True,
        projects: Collection[ProjectId] | None = None,
        read_only: bool = False,
        seconds: float | None = None,
    ) -> tuple[Token, str]:
        """Make a token; gives it and its secret, which is kept nowhere.

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
        token, secret = _draw_token(name, account=account, projects=projects, read_only=read_only, seconds=seconds)
        with self._database.write() as connection:
            _insert(connection, token, secret)
        return token, secret

    def create_first(self, name: str) -> tuple[Token, str] | None:
        """Make a token for everything, for whoever begins; None when any was ever made, valid or not."""
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM tokens LIMIT 1").fetchone() is not None:
                return None
            token, secret = _draw_token(name)
            _insert(connection, token, secret)
        return token, secret

    def list(self) -> list[Token]:
        """Give all tokens, also those that open nothing any more, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM tokens ORDER BY created, id").fetchall()
        return [_make_token(row) for row in rows]

    def revoke(self, selector: str) -> Token:
        """Revoke a token by id, secret, or a name that one valid one alone has; its sessions end within a second.

        Raises:
            InvalidArguments: reason `unknown_token`, `ambiguous_token`.
        """
        now = time.time()
        token = self._require(selector, now)
        with self._database.write() as connection:
            connection.execute("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, token.id))
            row = connection.execute("SELECT * FROM tokens WHERE id = ?", (token.id,)).fetchone()
        return _make_token(row)

    def _require(self, selector: str, now: float) -> Token:
        found = self._find_all(selector, now)
        if not found:
            # What may be a secret is not said back.
            named = "" if selector.startswith(PREFIX) else f" {selector[:_NAME_CHARACTERS]!r}"
            raise InvalidArguments(f"there is no such token{named}", reason="unknown_token", hint="exeora token list")
        if len(found) > 1:
            raise InvalidArguments(
                f"{len(found)} tokens are called {selector!r}: name one by its id",
                reason="ambiguous_token",
                hint="exeora token list",
            )
        return found[0]

    def _find_all(self, selector: str, now: float) -> Sequence[Token]:
        if _SECRET.match(selector):
            with self._database.read() as connection:
                rows = connection.execute("SELECT * FROM tokens WHERE hash = ?", (hash_secret(selector),)).fetchall()
            return [_make_token(row) for row in rows]
        tokens = self.list()
        by_id = [token for token in tokens if token.id == selector]
        return by_id or [token for token in tokens if token.name == selector and token.is_valid(now)]

    def find(self, secret: str) -> Token | None:
        """Find the valid token that a secret belongs to, and note that it was used; None for any other text."""
        if not _SECRET.match(secret):
            return None
        digest = hash_secret(secret)
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM tokens WHERE hash = ?", (digest,)).fetchone()
        # The search compares hashes, whose bytes nobody can choose; this comparison takes the same time for all.
        if row is None or not hmac.compare_digest(bytes(row["hash"]), digest):
            return None
        token = _make_token(row)
        now = time.time()
        if not token.is_valid(now):
            return None
        self._note_use(token, now)
        return token

    def _note_use(self, token: Token, now: float) -> None:
        if token.used is not None and now - token.used < _USED_SECONDS:
            return
        # Nobody is refused because the database was busy or its disk full when the date was to be noted.
        with suppress(ExeoraError), self._database.write() as connection:
            connection.execute("UPDATE tokens SET used = ? WHERE id = ?", (now, token.id))

    def filter_valid(self, identities: Collection[str]) -> set[str]:
        """Give those of the token ids that are valid now."""
        now = time.time()
        return {token.id for token in self.list() if token.id in identities and token.is_valid(now)}


def hash_secret(secret: str) -> bytes:
    """Give what is kept of a secret. It has 256 random bits: a slow hash would add nothing."""
    return hashlib.sha256(secret.encode()).digest()


def _draw_token(
    name: str,
    *,
    account: bool = True,
    projects: Collection[ProjectId] | None = None,
    read_only: bool = False,
    seconds: float | None = None,
) -> tuple[Token, str]:
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


def _insert(connection: sqlite3.Connection, token: Token, secret: str) -> None:
    projects = None if token.projects is None else json.dumps(sorted(token.projects))
    connection.execute(
        "INSERT INTO tokens (id, name, hash, account, projects, read_only, created, expires) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            token.id, token.name, hash_secret(secret), token.account, projects, token.read_only,
            token.created, token.expires,
        ),
    )  # fmt: skip


def _make_token(row: sqlite3.Row) -> Token:
    projects = row["projects"]
    return Token(
        id=row["id"],
        name=row["name"],
        account=bool(row["account"]),
        projects=None if projects is None else frozenset(ProjectId(p) for p in json.loads(projects)),
        read_only=bool(row["read_only"]),
        created=row["created"],
        expires=row["expires"],
        used=row["used"],
        revoked=row["revoked"],
    )
