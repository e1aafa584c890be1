"""The keys that a fleet is made of, and the credentials that are made with them.

Whoever has the keys is the operator: they make gateways and machines, and send them away. They stand in one file
(0600) in the data folder; a machine or a further gateway only ever gets a credential, which is one line of text.
"""

import base64
import binascii
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.fleet import nats_jwt, permissions
from exeora_ws.fleet.trust import Trust
from exeora_ws.fleet.wire import MachineId
from exeora_ws.storage import make_private_folder, replace_file

PREFIX = "exf_"
"""How every credential begins."""
_OPENED_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class User:
    """A user of an account, with the secret."""

    jwt: str
    seed: str

    @property
    def public(self) -> str:
        """Its public key."""
        return nats_jwt.find_public(self.seed)


@dataclass(frozen=True, slots=True)
class Credential:
    """What a machine or a gateway connects with.

    Args:
        kind: `machine` or `gateway`.
        identity: the machine's id; empty for a gateway.
        name: what people call it.
        urls: where servers are.
        line: its user where calls travel.
        state: a gateway's user where buckets are; None for a machine.
        authority: certificates (PEM) that the servers' own are judged by; None for the system's.
        pinned: see `Trust`.
    """

    kind: str
    identity: str
    name: str
    urls: tuple[str, ...]
    line: User
    state: User | None = None
    authority: str | None = None
    pinned: bool = False

    @property
    def trust(self) -> Trust:
        """By what the servers' certificates are judged."""
        return Trust(self.authority, self.pinned)

    def to_text(self) -> str:
        """Give it as one line, the secret included."""
        return PREFIX + base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode().rstrip("=")


def parse_credential(text: str, kind: str) -> Credential:
    """Read a credential.

    Raises:
        InvalidArguments: reason `bad_credential`; nothing of the text is repeated.
    """
    text = text.strip()
    wrong = InvalidArguments(
        f"this is not the credential of a {kind}", reason="bad_credential", hint=f"exeora {kind} add NAME makes one"
    )
    if not text.startswith(PREFIX):
        raise wrong
    try:
        body = text[len(PREFIX) :]
        found = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        credential = _read_credential(found)
    except (ValueError, binascii.Error, KeyError, TypeError) as error:
        raise wrong from error
    if credential.kind != kind:
        raise wrong
    return credential


def _read_credential(found: dict[str, Any]) -> Credential:
    state = found["state"]
    return Credential(
        kind=str(found["kind"]),
        identity=str(found["identity"]),
        name=str(found["name"]),
        urls=tuple(str(url) for url in found["urls"]),
        line=User(**found["line"]),
        state=None if state is None else User(**state),
        authority=found.get("authority"),
        pinned=bool(found.get("pinned")),
    )


def load_credential(path: Path, kind: str) -> Credential:
    """Read a credential's file.

    Raises:
        InvalidArguments: reason `bad_credential`, `missing_credential`.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(_OPENED_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArguments(
            "the file of the credential cannot be read",
            reason="missing_credential",
            hint=f"exeora {kind} add NAME makes one",
        ) from error
    return parse_credential(text, kind)


def store_credential(path: Path, credential: Credential) -> None:
    """Write a credential's file, 0600.

    Raises:
        ToolFailed: reason `not_written`.
    """
    try:
        make_private_folder(path.parent)
        replace_file(path, (credential.to_text() + "\n").encode())
    except OSError as error:
        raise ToolFailed(
            f"the credential cannot be written: {os.strerror(error.errno or 0)}", reason="not_written"
        ) from error


@dataclass(frozen=True, slots=True)
class Keys:
    """The secrets of a fleet: four seeds."""

    operator: str
    system: str
    state: str
    line: str

    @property
    def system_account(self) -> str:
        """The public key of the servers' own account."""
        return nats_jwt.find_public(self.system)

    @property
    def state_account(self) -> str:
        """The public key of the account that holds buckets and streams."""
        return nats_jwt.find_public(self.state)

    @property
    def line_account(self) -> str:
        """The public key of the account that calls travel in."""
        return nats_jwt.find_public(self.line)

    def sign_operator(self) -> str:
        """Make the operator's JWT."""
        subject = nats_jwt.find_public(self.operator)
        return nats_jwt.sign_claims(
            self.operator, subject, "exeora", permissions.describe_operator(self.system_account)
        )

    def sign_accounts(self) -> dict[str, str]:
        """Make the JWTs of the three accounts as they are at first, by public key.

        They are dated to the beginning of time: what a server was told later stands.
        """
        described = (
            (self.system_account, "exeora-system", permissions.describe_system()),
            (self.state_account, "exeora-state", permissions.describe_state()),
            (self.line_account, "exeora-line", permissions.describe_line(self.state_account, {})),
        )
        return {
            account: nats_jwt.sign_claims(self.operator, account, name, claims, issued=1)
            for account, name, claims in described
        }

    def sign_line(self, revoked: Mapping[str, int], issued: int) -> str:
        """Make the JWT of the account that calls travel in, without those who were sent away."""
        claims = permissions.describe_line(self.state_account, revoked)
        return nats_jwt.sign_claims(self.operator, self.line_account, "exeora-line", claims, issued=issued)

    def make_system_user(self) -> User:
        """Make a user that may speak to the servers themselves, valid for ten minutes."""
        return _make_user(self.system, "exeora", permissions.describe_gateway(), seconds=600)

    def make_machine(self, identity: MachineId, name: str, urls: tuple[str, ...]) -> Credential:
        """Make a machine's credential, with a new secret."""
        return Credential(
            "machine", identity, name, urls, _make_user(self.line, name, permissions.describe_machine(identity))
        )

    def make_gateway(self, name: str, urls: tuple[str, ...]) -> Credential:
        """Make a gateway's credential, with new secrets."""
        claims = permissions.describe_gateway()
        return Credential(
            "gateway", "", name, urls, _make_user(self.line, name, claims), _make_user(self.state, name, claims)
        )


def _make_user(account: str, name: str, claims: dict[str, Any], seconds: float | None = None) -> User:
    seed = nats_jwt.make_seed(nats_jwt.USER)
    expires = None if seconds is None else int(time.time() + seconds)
    return User(nats_jwt.sign_claims(account, nats_jwt.find_public(seed), name, claims, expires=expires), seed)


def make_keys() -> Keys:
    """Make the keys of a new fleet."""
    account = nats_jwt.ACCOUNT
    return Keys(nats_jwt.make_seed(nats_jwt.OPERATOR), *(nats_jwt.make_seed(account) for _ in range(3)))


def find_keys(path: Path) -> Keys | None:
    """Read the keys; None where there are none.

    Raises:
        ToolFailed: reason `keys_unusable`.
    """
    try:
        found = json.loads(path.read_bytes())
        return Keys(**{name: str(found[name]) for name in ("operator", "system", "state", "line")})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolFailed("the keys of the fleet cannot be read", reason="keys_unusable") from error


def store_keys(path: Path, keys: Keys) -> None:
    """Write the keys, 0600. Whoever may be at it at the same time holds the lock of the fleet's folder.

    Raises:
        ToolFailed: reason `not_written`.
    """
    try:
        make_private_folder(path.parent)
        replace_file(path, json.dumps(asdict(keys)).encode())
    except OSError as error:
        raise ToolFailed(
            f"the keys cannot be written: {os.strerror(error.errno or 0)}", reason="not_written"
        ) from error
