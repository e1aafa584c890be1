"""Which machines a fleet has: added, given new credentials, sent away. For whoever has the keys."""

import json
import logging
import secrets
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as replace_fields

import msgspec

from exeora_ws.errors import ExeoraError, InvalidArguments, ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.fleet.buckets import MACHINES_BUCKET, Bucket, Entry
from exeora_ws.fleet.credentials import Credential, Keys
from exeora_ws.fleet.documents import (
    MachineRecord,
    PresenceRecord,
    name_presence_key,
    unpack_project,
)
from exeora_ws.fleet.line import Line, Message
from exeora_ws.fleet.permissions import INVENTORY_BUCKET, PRESENCE_BUCKET, name_inbox
from exeora_ws.fleet.trust import Trust

log = logging.getLogger("exeora")

_UPDATE = "$SYS.REQ.CLAIMS.UPDATE"
_SECONDS = 5.0
_PUSHES = 5
_NAME_CHARACTERS = 60
_PING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class KnownMachine:
    """A machine, and what is known of it."""

    id: str
    record: MachineRecord
    presence: PresenceRecord | None
    projects: tuple[tuple[str, str], ...]
    """Id and slug of each that it has published."""
    online: bool | None = None
    """Whether it answers; None where nobody has asked."""


class Roster:
    """The machines.

    Args:
        keys: the operator's.
        state: the connection to the buckets; where it leads, the servers themselves are spoken to.
    """

    def __init__(self, keys: Keys, state: Line) -> None:
        self._keys = keys
        self._state = state
        self._machines = Bucket(state, MACHINES_BUCKET)

    def add(
        self, name: str, urls: tuple[str, ...], *, authority: str | None = None, replace: bool = False
    ) -> Credential:
        """Make a machine's credential; its secret is kept nowhere.

        A name that was sent away comes back as the same machine, with a new secret; the old one stays void.

        Args:
            name: what people call it.
            urls: where the machine reaches servers.
            authority: certificates (PEM) that it judges theirs by; the system's when None.
            replace: also for a name that is in use: what connects with its old credential is cut off.

        Raises:
            InvalidArguments: reason `wrong_value`; `machine_exists`.
            ExeoraError: the fleet cannot be reached.
        """
        if not name.strip() or len(name) > _NAME_CHARACTERS or not name.isprintable():
            raise InvalidArguments(f"name: expected 1 to {_NAME_CHARACTERS} printable characters", reason="wrong_value")
        known = self._find_named(name)
        if known is None:
            identity, former, revision = wire.new_machine_id(), {}, 0
        else:
            identity, record, revision = known
            if record.revoked is None and not replace:
                raise InvalidArguments(
                    f"there is a machine {name!r} already",
                    reason="machine_exists",
                    hint=f"exeora machine add {name} --replace gives it a new credential and voids the old one",
                )
            former = {**record.former, record.public: int(time.time())}
        credential = replace_fields(self._keys.make_machine(identity, name, urls), authority=authority)
        record = MachineRecord(name=name, public=credential.line.public, added=time.time(), former=former)
        self._machines.put(identity, wire.encode(record), revision)
        if former:
            self._push()
        return credential

    def revoke(self, selector: str) -> KnownMachine:
        """Send a machine away, by id or name: its connection is closed at once, and it cannot come back.

        Raises:
            InvalidArguments: reason `unknown_machine`, `machine_revoked`.
            ExeoraError: the fleet cannot be reached; then it may be only half done: do it again.
        """
        identity, record, revision = self._require(selector)
        if record.revoked is None:
            record = msgspec.structs.replace(record, revoked=time.time())
            self._machines.put(identity, wire.encode(record), revision)
        self._push()
        with suppress(ExeoraError):
            self._forget(identity)
        return KnownMachine(identity, record, None, ())

    def settle(self) -> None:
        """Tell the servers again who was sent away, if anybody was.

        A command that was killed may not have told them; servers that lost what they were told know nobody as revoked.

        Raises:
            ExeoraError: as `revoke`.
        """
        if self._collect_revoked():
            self._push()

    def list(self, line: Line | None = None) -> list[KnownMachine]:
        """Give all machines by name, also those that were sent away.

        Args:
            line: a connection in the account of calls: whoever is there is asked, for at most a second.
        """
        online = set() if line is None else _ask_all(line, list(self._load()))
        presence = Bucket(self._state, PRESENCE_BUCKET).list()
        projects = _collect_projects(Bucket(self._state, INVENTORY_BUCKET).list())
        machines = [
            KnownMachine(
                identity,
                record,
                _read_presence(presence.get(name_presence_key(identity))),
                tuple(projects.get(identity, ())),
                None if line is None else identity in online,
            )
            for identity, (record, _) in self._load().items()
        ]
        return sorted(machines, key=lambda machine: (machine.record.name, machine.id))

    def _forget(self, identity: str) -> None:
        """Take off what a machine had published."""
        for bucket in (INVENTORY_BUCKET, PRESENCE_BUCKET):
            held = Bucket(self._state, bucket)
            for key in held.list():
                if key.startswith(f"{identity}."):
                    held.delete(key)

    def _load(self) -> dict[str, tuple[MachineRecord, int]]:
        found = {}
        for key, entry in self._machines.list().items():
            with suppress(ExeoraError):
                found[key] = (wire.decode_as(MachineRecord, entry.value or b""), entry.revision)
        return found

    def _find_named(self, name: str) -> tuple[wire.MachineId, MachineRecord, int] | None:
        for identity, (record, revision) in self._load().items():
            if record.name == name:
                return wire.MachineId(identity), record, revision
        return None

    def _require(self, selector: str) -> tuple[str, MachineRecord, int]:
        for identity, (record, revision) in self._load().items():
            if selector in (identity, record.name):
                return identity, record, revision
        raise InvalidArguments(
            f"there is no machine {selector[:_NAME_CHARACTERS]!r}", reason="unknown_machine", hint="exeora machine list"
        )

    def _push(self) -> None:
        """Tell the servers whose credentials are void, until what they were told is what the bucket says.

        Two who send machines away at once each tell what they have read; the later one must know both.
        """
        told: Mapping[str, int] | None = None
        for _ in range(_PUSHES):
            revoked = self._collect_revoked()
            if revoked == told:
                return
            push_line_account(self._keys, self._state.urls, revoked, self._state.trust)
            told = revoked

    def _collect_revoked(self) -> dict[str, int]:
        revoked: dict[str, int] = {}
        for record, _ in self._load().values():
            revoked |= record.former
            if record.revoked is not None:
                revoked[record.public] = int(record.revoked) + 1
        return revoked


def push_line_account(keys: Keys, urls: tuple[str, ...], revoked: Mapping[str, int], trust: Trust) -> None:
    """Give the servers the account of calls anew; they close the connections of those who are void.

    Raises:
        ToolFailed: reason `not_revoked`: the servers did not take it.
        ExeoraError: they cannot be reached.
    """
    user = keys.make_system_user()
    line = Line(urls, user, name_inbox(secrets.token_hex(8)), name="exeora-keys", trust=trust)
    line.open(_SECONDS)
    try:
        signed = keys.sign_line(revoked, int(time.time()))
        answer = line.request(_UPDATE, signed.encode(), _SECONDS)
    finally:
        line.close()
    found = json.loads(answer.data) if answer.data else {}
    if found.get("data", {}).get("code") != 200:  # noqa: PLR2004 - their word for yes, as in HTTP
        log.error("the servers did not take the account: %s", found)
        raise ToolFailed(
            "the servers did not take the list of revoked machines", reason="not_revoked", hint="try again"
        )


def _ask_all(line: Line, machines: list[str]) -> set[str]:
    """Ask every machine whether it is there; those that nobody serves are told by the servers at once."""
    gateway, waiting, here = wire.new_gateway_id(), set(machines), set[str]()
    done = threading.Event()

    def take(message: Message) -> None:
        machine, _ = wire.split_reply(message.subject)
        if machine in waiting:
            waiting.discard(machine)
            if not message.nobody:
                here.add(machine)
        if not waiting:
            done.set()

    answers = line.subscribe(wire.name_replies(gateway), take)
    try:
        for machine in machines:
            line.post(wire.name_ping(machine), b"{}", reply=wire.name_reply(gateway, machine, "ping"))
        if machines:
            done.wait(_PING_SECONDS)
    finally:
        answers.close()
    return set(here)


def _collect_projects(entries: Mapping[str, Entry]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for key, entry in entries.items():
        machine = key.partition(".")[0]
        with suppress(ExeoraError):
            record = unpack_project(entry.value or b"")
            found.setdefault(machine, []).append((record.id, record.slug))
    return {machine: sorted(projects, key=lambda each: each[1]) for machine, projects in found.items()}


def _read_presence(entry: Entry | None) -> PresenceRecord | None:
    if entry is None:
        return None
    with suppress(ExeoraError):
        return wire.decode_as(PresenceRecord, entry.value or b"")
    return None
