"""Tokens for MCP over HTTP: who may reach what. Kept as hashes; the secret is shown once, when it is made.

Imports nothing of MCP: the command line makes and revokes tokens.
"""

import hmac
import json
import sqlite3
import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from exeora_ws.database import Database
from exeora_ws.errors import ExeoraError
from exeora_ws.names import ProjectId
from exeora_ws.settings import Places
from exeora_ws.tools.tokens import (
    Token,
    hash_secret,
    is_secret,
    match_name,
    order_token,
    require_one,
)

__all__ = ["TOKEN_MIGRATIONS", "Token", "TokenBook"]

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
        """Make a token; gives it and its secret, which is kept nowhere. Arguments and errors: as `order_token`."""
        token, secret = order_token(name, account=account, projects=projects, read_only=read_only, seconds=seconds)
        with self._database.write() as connection:
            _insert(connection, token, secret)
        return token, secret

    def create_first(self, name: str) -> tuple[Token, str] | None:
        """Make a token for everything, for whoever begins; None when any was ever made, valid or not."""
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM tokens LIMIT 1").fetchone() is not None:
                return None
            token, secret = order_token(name)
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
        token = require_one(self._find_all(selector, now), selector, hint="exeora token list")
        with self._database.write() as connection:
            connection.execute("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, token.id))
            row = connection.execute("SELECT * FROM tokens WHERE id = ?", (token.id,)).fetchone()
        return _make_token(row)

    def _find_all(self, selector: str, now: float) -> Sequence[Token]:
        if is_secret(selector):
            with self._database.read() as connection:
                rows = connection.execute("SELECT * FROM tokens WHERE hash = ?", (hash_secret(selector),)).fetchall()
            return [_make_token(row) for row in rows]
        return match_name(self.list(), selector, now)

    def find(self, secret: str) -> Token | None:
        """Find the valid token that a secret belongs to, and note that it was used; None for any other text."""
        if not is_secret(secret):
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
        if not token.is_use_worth_noting(now):
            return
        # Nobody is refused because the database was busy or its disk full when the date was to be noted.
        with suppress(ExeoraError), self._database.write() as connection:
            connection.execute("UPDATE tokens SET used = ? WHERE id = ?", (now, token.id))

    def filter_valid(self, identities: Collection[str]) -> set[str]:
        """Give those of the token ids that are valid now."""
        now = time.time()
        return {token.id for token in self.list() if token.id in identities and token.is_valid(now)}


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
