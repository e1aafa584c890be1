"""NATS JWTs, version 2: claims signed with an nkey (https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt)."""

import base64
import hashlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any

import nkeys  # type: ignore[import-untyped]  # it ships no types

OPERATOR = nkeys.PREFIX_BYTE_OPERATOR
ACCOUNT = nkeys.PREFIX_BYTE_ACCOUNT
USER = nkeys.PREFIX_BYTE_USER

_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}


def make_seed(kind: int) -> str:
    """Make a new key of a kind (`OPERATOR`, `ACCOUNT`, `USER`); gives its seed, the secret."""
    return str(nkeys.encode_seed(os.urandom(32), kind).decode())


def find_public(seed: str) -> str:
    """Give the public key of a seed."""
    return str(_pair(seed).public_key.decode())


def sign_nonce(seed: str, nonce: str) -> bytes:
    """Give the signature that a server asks for, as it goes over the line."""
    return base64.b64encode(_pair(seed).sign(nonce.encode()))


def sign_claims(
    seed: str,
    subject: str,
    name: str,
    nats: Mapping[str, Any],
    *,
    issued: int | None = None,
    expires: int | None = None,
) -> str:
    """Make a JWT.

    Args:
        seed: of the key that signs.
        subject: the public key it is about.
        name: for people.
        nats: the claims of the kind, `type` among them.
        issued: seconds since 1970; now when None.
        expires: likewise; never when None.
    """
    claims: dict[str, Any] = {
        "iat": int(time.time()) if issued is None else issued,
        "iss": find_public(seed),
        "name": name,
        "sub": subject,
        "nats": {**nats, "version": 2},
    }
    if expires is not None:
        claims["exp"] = expires
    digest = hashlib.sha256(_write(claims)).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    signed = f"{_encode(_write(_HEADER))}.{_encode(_write(claims))}"
    return f"{signed}.{_encode(_pair(seed).sign(signed.encode()))}"


def read_claims(token: str) -> dict[str, Any]:
    """Give the claims of a JWT, unverified: the server is the one that verifies.

    Raises:
        ValueError: it is none.
    """
    _, body, _ = token.split(".")
    return dict(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))


def _pair(seed: str) -> nkeys.KeyPair:
    return nkeys.from_seed(seed.encode())


def _write(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
