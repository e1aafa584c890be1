"""State that travels through a client and comes back: signed, for one call, for a while, for one use."""

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import Forbidden, ToolFailed
from exeora_ws.storage import make_private_folder

_KEY_BYTES = 32
_STATE_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class State:
    """Which question a call waits for, which call that is, and until when (milliseconds since 1970)."""

    question: str
    fingerprint: str
    expires_ms: int


class Signer:
    """Signs with a key of this user's, made on first use, 0600 in the data folder."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file

    def sign(self, state: State) -> str:
        """Write a state as text that nobody without the key can make."""
        facts = [state.question, state.fingerprint, state.expires_ms]
        payload = _encode(json.dumps(facts, separators=(",", ":")).encode())
        return f"{payload}.{_encode(self._mac(payload))}"

    def read(self, text: str) -> State:
        """Read a state that came back.

        Raises:
            Forbidden: reason `approval_mismatch`: it was not made here.
        """
        payload, _, mac = text.partition(".")
        with suppress(ValueError, TypeError, binascii.Error):
            if len(text) <= _STATE_CHARACTERS and hmac.compare_digest(_decode(mac), self._mac(payload)):
                question, fingerprint, expires_ms = json.loads(_decode(payload))
                return State(str(question), str(fingerprint), int(expires_ms))
        raise Forbidden("the answer does not belong to a question that was asked here", reason="approval_mismatch")

    def _mac(self, payload: str) -> bytes:
        return hmac.new(_load_key(self._key_file), payload.encode(), hashlib.sha256).digest()


def _load_key(path: Path) -> bytes:
    try:
        with suppress(FileNotFoundError):
            return _read_key(path)
        make_private_folder(path.parent)
        _make_key(path)
        return _read_key(path)
    except OSError as error:
        raise ToolFailed(f"the approval key cannot be used: {error.strerror}", reason="key_unusable") from error


def _read_key(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        key = stream.read(_KEY_BYTES + 1)
    if len(key) != _KEY_BYTES:
        raise ToolFailed(
            "the approval key is damaged", reason="key_unusable", hint="delete approval.key in the data folder"
        )
    return key


def _make_key(path: Path) -> None:
    """Make the file whole under another name, and link it only where none is yet: two processes get one key."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
