"""The tokens of a fleet's clients, in a bucket: the same tokens under the same rules as those of one machine."""

import hmac
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec

from exeora_ws.errors import ExeoraError, ToolFailed
from exeora_ws.fleet.buckets import Bucket, Entry
from exeora_ws.fleet.mirror import Mirror
from exeora_ws.names import ProjectId
from exeora_ws.tools.tokens import (
    Token,
    hash_secret,
    is_secret,
    match_name,
    order_token,
    require_one,
)

HINT = "exeora gateway token list"
_FIRST = "first"
"""Under this key stands who made the very first token: of several gateways that start at once, one."""
_ATTEMPTS = 8


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the bucket: a token, and the hash of its secret."""

    token: Token
    hash: bytes


Rows = list[tuple[_Row, int]]
"""Tokens with their revisions."""
Tokens = list[Token]


class TokenStore:
    """Makes, lists and revokes them. Thread-safe.

    Args:
        bucket: where they stand.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

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
        self._insert(token, secret)
        return token, secret

    def create_first(self, name: str) -> tuple[Token, str] | None:
        """Make a token for everything, for whoever begins; None when any was ever made, by any gateway."""
        if self._bucket.list():
            return None
        token, secret = order_token(name)
        try:
            self._bucket.put(_FIRST, token.id.encode(), last=0)
        except ToolFailed:
            return None
        self._insert(token, secret)
        return token, secret

    def list(self) -> Tokens:
        """Give all tokens, also those that open nothing any more, oldest first."""
        return sorted((row.token for row, _ in self._list_rows()), key=lambda token: (token.created, token.id))

    def revoke(self, selector: str) -> Token:
        """Revoke a token by id, secret, or a name that one valid one alone has; its sessions end within a second.

        Raises:
            InvalidArguments: reason `unknown_token`, `ambiguous_token`.
            ToolFailed: reason `stale`: others kept writing to it.
        """
        now = time.time()
        wanted = require_one(self._find_all(selector, now), selector, hint=HINT)
        for _ in range(_ATTEMPTS):
            row, revision = next(found for found in self._list_rows() if found[0].token.id == wanted.id)
            if row.token.revoked is not None:
                return row.token
            revoked = replace(row.token, revoked=now)
            with suppress(ToolFailed):  # its last use was noted meanwhile
                self._bucket.put(wanted.id, _write(_Row(token=revoked, hash=row.hash)), last=revision)
                return revoked
        raise ToolFailed("the token could not be revoked: it kept changing", reason="stale", hint="try again")

    def _find_all(self, selector: str, now: float) -> Sequence[Token]:
        rows = self._list_rows()
        if is_secret(selector):
            digest = hash_secret(selector)
            return [row.token for row, _ in rows if hmac.compare_digest(row.hash, digest)]
        return match_name([row.token for row, _ in rows], selector, now)

    def _insert(self, token: Token, secret: str) -> None:
        self._bucket.put(token.id, _write(_Row(token=token, hash=hash_secret(secret))), last=0)

    def _list_rows(self) -> Rows:
        read = ((_read(entry), entry.revision) for entry in self._bucket.list().values())
        return [(row, revision) for row, revision in read if row is not None]


class TokenDoor:
    """Says who may come in, out of a warm copy. Thread-safe.

    Args:
        bucket: where the tokens stand.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._by_hash: dict[bytes, str] = {}
        self.mirror = Mirror(bucket, self._take, self._forget_hashes)

    def find(self, secret: str) -> Token | None:
        """Find the valid token that a secret belongs to, and note that it was used; None for any other text."""
        if not is_secret(secret):
            return None
        digest = hash_secret(secret)
        found = self.mirror.values.get(self._by_hash.get(digest, ""))
        # The search compares hashes, whose bytes nobody can choose; this comparison takes the same time for all.
        if found is None or not hmac.compare_digest(found[0].hash, digest):
            return None
        (row, revision), now = found, time.time()
        if not row.token.is_valid(now):
            return None
        self._note_use(row, revision, now)
        return row.token

    def filter_valid(self, identities: Collection[str]) -> set[str]:
        """Give those of the token ids that are valid now."""
        now, rows = time.time(), self.mirror.values
        return {one for one in identities if (found := rows.get(one)) is not None and found[0].token.is_valid(now)}

    def _note_use(self, row: _Row, revision: int, now: float) -> None:
        if not row.token.is_use_worth_noting(now):
            return
        used = _Row(token=replace(row.token, used=now), hash=row.hash)
        # Nobody is refused because this could not be noted; and it never undoes what was written meanwhile.
        with suppress(ExeoraError):
            self._bucket.put(row.token.id, _write(used), last=revision)

    def _take(self, entry: Entry) -> tuple[_Row, int] | None:
        row = _read(entry)
        if row is None:
            return None
        self._by_hash[row.hash] = row.token.id
        return row, entry.revision

    def _forget_hashes(self, key: str | None) -> None:
        if key is None:
            self._by_hash = {row.hash: name for name, (row, _) in self.mirror.values.items()}


def _write(row: _Row) -> bytes:
    return msgspec.json.encode(row)


def _read(entry: Entry) -> _Row | None:
    if entry.key == _FIRST or entry.value is None:
        return None
    try:
        return msgspec.json.decode(entry.value, type=_Row)
    except msgspec.MsgspecError:
        return None
