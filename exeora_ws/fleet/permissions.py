"""Who may publish and subscribe what. Two accounts keep machines away from JetStream (docs/decisions/0017).

A client may name any reply subject with what it publishes, and JetStream answers there without asking whether the
client could publish to it: in one account a machine could have its acknowledgements written over another's keys.
So buckets and streams are in the account `state`, which machines are not in; calls are in the account `line`, into
which two buckets are lent, to be written.
"""

from collections.abc import Mapping, Sequence
from typing import Any

PRESENCE_BUCKET = "exeora_presence"
INVENTORY_BUCKET = "exeora_inventory"
LENT = (f"$KV.{PRESENCE_BUCKET}.>", f"$KV.{INVENTORY_BUCKET}.>")
"""Subjects of the account `state` that the account `line` may publish to; no others of it are within reach."""

CLOCK = "$SYS.REQ.USER.INFO"
"""Asks a server what it knows of the asking user, and thereby for its time."""

_UNLIMITED = {
    "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1,
}  # fmt: skip
_MACHINE_SUBSCRIPTIONS = 32
_STORED = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}


def describe_operator(system: str) -> dict[str, Any]:
    """Give the claims of the operator, whose servers' own account is `system`."""
    return {"type": "operator", "system_account": system}


def describe_system() -> dict[str, Any]:
    """Give the claims of the servers' own account."""
    return {"type": "account", "limits": _UNLIMITED}


def describe_state() -> dict[str, Any]:
    """Give the claims of the account that holds buckets and streams."""
    exports = [{"name": subject, "subject": subject, "type": "service"} for subject in LENT]
    return {"type": "account", "limits": {**_UNLIMITED, **_STORED}, "exports": exports}


def describe_line(state: str, revoked: Mapping[str, int]) -> dict[str, Any]:
    """Give the claims of the account that calls travel in.

    Args:
        state: the account that lends its buckets.
        revoked: public keys of users that may not be here, and the second up to which their credentials are void.
    """
    imports = [{"name": subject, "subject": subject, "account": state, "type": "service"} for subject in LENT]
    claims = {"type": "account", "limits": _UNLIMITED, "imports": imports}
    return {**claims, "revocations": dict(revoked)} if revoked else claims


def describe_machine(machine: str) -> dict[str, Any]:
    """Give the claims of a machine's user: its own subjects, its own keys, its own inbox, and nothing else."""
    publish = [f"exeora.r.*.{machine}.>", *(lent.replace(">", f"{machine}.>") for lent in LENT), CLOCK]
    subscribe = [f"exeora.m.{machine}.>", "exeora.g.alive", f"{name_inbox(machine)}.>"]
    return {**_describe_user(publish, subscribe), "subs": _MACHINE_SUBSCRIPTIONS}


def describe_gateway() -> dict[str, Any]:
    """Give the claims of a gateway's user in either account."""
    return _describe_user((), ())


def name_inbox(identity: str) -> str:
    """Give the prefix of the inboxes of a machine or a gateway."""
    return f"_INBOX.{identity}"


def _describe_user(publish: Sequence[str], subscribe: Sequence[str]) -> dict[str, Any]:
    ways = {"pub": {"allow": list(publish)} if publish else {}, "sub": {"allow": list(subscribe)} if subscribe else {}}
    return {"type": "user", "subs": -1, "data": -1, "payload": -1, **ways}
