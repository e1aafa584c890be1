"""What a gateway keeps in JetStream: key-value buckets, revision-checked, and the stream of the audit."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, StorageType, StreamConfig
from nats.js.kv import KeyValue

from exeora_ws.errors import ToolFailed
from exeora_ws.fleet.line import Line
from exeora_ws.fleet.permissions import INVENTORY_BUCKET, PRESENCE_BUCKET
from exeora_ws.fleet.wire import AUDIT_STREAM

log = logging.getLogger("exeora")

MACHINES_BUCKET = "exeora_machines"
SLUGS_BUCKET = "exeora_slugs"
TOKENS_BUCKET = "exeora_tokens"
POLICY_BUCKET = "exeora_policy"
BUCKETS = (MACHINES_BUCKET, PRESENCE_BUCKET, INVENTORY_BUCKET, SLUGS_BUCKET, TOKENS_BUCKET, POLICY_BUCKET)

SECONDS = 5.0
_LIST_SECONDS = 30.0
_CHECK_SECONDS = 5.0
_AGAIN_SECONDS = 1.0
_GONE_SECONDS = 3.0
_AUDIT_SECONDS = 90 * 86_400
_AUDIT_BYTES = 1_000_000_000
_ENTRY_BYTES = 1_000_000
_DELETED = ("DEL", "PURGE")


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands under a key. `value` None: it was deleted."""

    key: str
    value: bytes | None
    revision: int


class Bucket:
    """One bucket, over a gateway's connection in the account `state`. Thread-safe.

    Args:
        line: the connection.
        name: the bucket's.
    """

    def __init__(self, line: Line, name: str) -> None:
        self._line = line
        self._name = name
        self._opened: tuple[Client, KeyValue] | None = None

    def find(self, key: str) -> Entry | None:
        """Give what stands under a key.

        Raises:
            ExeoraError: as `Line.run`.
        """

        async def get(client: Client) -> Entry | None:
            try:
                found = await (await self._open(client)).get(key)
            except nats.js.errors.KeyNotFoundError:
                return None
            return Entry(key, found.value or b"", found.revision or 0)

        return self._line.run(get, SECONDS)

    def put(self, key: str, value: bytes, last: int | None = None) -> int:
        """Write; gives the new revision.

        Args:
            key: where.
            value: what.
            last: the revision that must stand there now, 0 for none; None to write in any case.

        Raises:
            ToolFailed: reason `stale`: another revision stands there.
            ExeoraError: as `Line.run`.
        """

        async def write(client: Client) -> int:
            bucket = await self._open(client)
            try:
                if last is None:
                    return await bucket.put(key, value)
                return await (bucket.update(key, value, last=last) if last else bucket.create(key, value))
            except nats.js.errors.KeyWrongLastSequenceError:
                raise _stale(self._name) from None

        return self._line.run(write, SECONDS)

    def delete(self, key: str, last: int | None = None) -> None:
        """Delete, under the same conditions as `put`."""

        async def remove(client: Client) -> None:
            try:
                await (await self._open(client)).delete(key, last=last)
            except nats.js.errors.APIError as error:
                if error.err_code in _WRONG_LAST:
                    raise _stale(self._name) from None
                raise

        self._line.run(remove, SECONDS)

    def list(self) -> dict[str, Entry]:
        """Give everything that stands there, by key."""

        async def collect(client: Client) -> dict[str, Entry]:
            follower = _Follower(await self._open(client))
            try:
                return await follower.collect()
            finally:
                await follower.stop()

        return self._line.run(collect, _LIST_SECONDS)

    def watch(self, take: Callable[[dict[str, Entry]], None], tell: Callable[[Entry], None]) -> None:
        """Be told of everything that stands there, and of each change after that, until the line is closed.

        Args:
            take: given all of it, on this connection and again on each that follows. In the line's thread.
            tell: given each change. Likewise.
        """
        self._line.accompany(lambda client: self._watch(client, take, tell))

    async def _watch(
        self, client: Client, take: Callable[[dict[str, Entry]], None], tell: Callable[[Entry], None]
    ) -> None:
        while True:
            try:
                await self._follow(client, take, tell)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - begun anew, and with everything, so nothing is missed
                log.debug("watching %s: %r", self._name, error)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _follow(
        self, client: Client, take: Callable[[dict[str, Entry]], None], tell: Callable[[Entry], None]
    ) -> None:
        """Follow the bucket until it is seen to have stopped telling: the consumer may be gone with its server."""
        follower = _Follower(await self._open(client))
        try:
            take(await follower.collect())
            while not await follower.is_behind():
                entry = await follower.next(_CHECK_SECONDS)
                while entry is not None:
                    tell(entry)
                    entry = await follower.next(_CHECK_SECONDS)
        finally:
            await follower.stop()

    async def _open(self, client: Client) -> KeyValue:
        opened = self._opened
        if opened is None or opened[0] is not client:
            opened = self._opened = (client, await client.jetstream(timeout=SECONDS).key_value(self._name))
        return opened[1]


class _Follower:
    """One way through a bucket, from everything that stands there to each change after it.

    The library marks the end of the beginning too early now and then: what the server has sent and what has come are
    two things. So the revision that must have come is asked for first.
    """

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket
        self._watcher: KeyValue.KeyWatcher | None = None
        self._seen = 0
        self._behind = 0

    async def collect(self) -> dict[str, Entry]:
        """Give everything that stands there, without what was deleted."""
        last = await self._find_last()
        self._watcher = await self._bucket.watchall()
        found: dict[str, Entry] = {}
        while self._seen < last:
            entry = await self.next(_GONE_SECONDS)
            if entry is None:
                break  # the last one was taken away by hand: nothing more comes
            found[entry.key] = entry
        return {key: entry for key, entry in found.items() if entry.value is not None}

    async def next(self, seconds: float) -> Entry | None:
        """Give the next change; None when there is none in that time."""
        if self._watcher is None:
            raise AssertionError("collect comes first")
        while True:
            try:
                update = await self._watcher.updates(timeout=seconds)  # type: ignore[no-untyped-call]  # the library's
            except nats.errors.TimeoutError:
                return None
            if update is not None:
                entry = _read(update)
                self._seen = max(self._seen, entry.revision)
                return entry

    async def is_behind(self) -> bool:
        """Whether something was written that did not come, twice in a row."""
        self._behind = self._behind + 1 if await self._find_last() > self._seen else 0
        return self._behind > 1

    async def stop(self) -> None:
        """Follow no more."""
        if self._watcher is not None:
            with suppress(nats.errors.Error):
                await self._watcher.stop()  # type: ignore[no-untyped-call]  # the library's

    async def _find_last(self) -> int:
        state = (await self._bucket.status()).stream_info.state
        return int(state.last_seq) if state.messages else 0


_WRONG_LAST = (10_071, 10_164)


def ensure_buckets(line: Line, *, replicas: int = 1) -> None:
    """Make the buckets and the stream that are missing; those that are there stay as they are.

    Raises:
        ToolFailed: reason `fleet_failed`.
    """
    line.run(lambda client: _ensure(client, replicas), _LIST_SECONDS)


async def _ensure(client: Client, replicas: int) -> None:
    stream = client.jetstream(timeout=SECONDS)
    for name in BUCKETS:
        try:
            await stream.key_value(name)
        except nats.js.errors.NotFoundError:
            await stream.add_stream(_describe_bucket(name, replicas))
    try:
        await stream.stream_info(AUDIT_STREAM)
    except nats.js.errors.NotFoundError:
        await stream.add_stream(
            StreamConfig(
                name=AUDIT_STREAM,
                subjects=["exeora.audit.>"],
                max_age=_AUDIT_SECONDS,
                max_bytes=_AUDIT_BYTES,
                num_replicas=replicas,
                storage=StorageType.FILE,
            )
        )


def _describe_bucket(name: str, replicas: int) -> StreamConfig:
    """Give the stream of a bucket: as the library would make it, but that no header may purge.

    `Nats-Rollup: all` with a write to one key would take all others away, whoever's they are. Deleting marks a key.
    """
    return StreamConfig(
        name=f"KV_{name}",
        subjects=[f"$KV.{name}.>"],
        max_msgs_per_subject=1,
        max_msg_size=_ENTRY_BYTES,
        allow_rollup_hdrs=False,
        deny_delete=True,
        allow_direct=True,
        discard=DiscardPolicy.NEW,
        num_replicas=replicas,
        storage=StorageType.FILE,
    )


def _read(update: KeyValue.Entry) -> Entry:
    gone = update.operation in _DELETED
    return Entry(update.key, None if gone else update.value or b"", update.revision or 0)


def _stale(bucket: str) -> ToolFailed:
    return ToolFailed(f"somebody else has written to {bucket} meanwhile", reason="stale", hint="try again")
