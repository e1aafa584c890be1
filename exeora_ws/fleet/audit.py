"""The record of calls at gateways: a stream with the columns of the local record, two messages for a call that ran.

The intent is acknowledged by JetStream before a call is sent; the outcome is sent after it and not waited for.
"""

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from nats.aio.client import Client
from nats.js.api import ConsumerConfig, DeliverPolicy

from exeora_ws.errors import ExecutorOffline, ExeoraError, Forbidden
from exeora_ws.fleet import wire
from exeora_ws.fleet.line import Line
from exeora_ws.policy.audit import CallFacts

_SECONDS = 5.0
_READ_SECONDS = 30.0
_FIELD_CHARACTERS = 200
_ROWS_PER_CALL = 2
_ROWS_LOOKED_AT = 20
"""For each call that is shown, where only some are wanted."""
_QUIET_SECONDS = 1.0


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one message of the stream says. `outcome` None: the call is about to be sent."""

    call: str
    """Tells the messages of one call."""
    gateway: str
    time_ms: int
    client: str
    face: str
    project: str
    workspace: str
    tool: str
    outcome: str | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that was written down."""

    row: Row


class FleetAudit:
    """Writes the record. Thread-safe.

    Args:
        line: a gateway's connection where the stream is.
        gateway: our id.
    """

    def __init__(self, line: Line, gateway: str) -> None:
        self._line = line
        self._gateway = gateway

    def begin(self, facts: CallFacts) -> Begun:
        """Record that a call is about to be sent.

        Raises:
            ExecutorOffline: reason `fleet_unreachable`: there is no connection to do either over.
            Forbidden: reason `audit_unwritable`: what cannot be recorded is not done.
        """
        return Begun(self._write(facts, None, None))

    def finish(self, entry: Begun, outcome: str, duration_ms: int) -> None:
        """Record what became of it. If that fails the intent stands, and the result is not lost over it."""
        row = msgspec.structs.replace(entry.row, outcome=outcome, duration_ms=duration_ms)
        self._line.post(wire.name_audit(self._gateway), wire.encode(row))

    def note(self, facts: CallFacts, outcome: str, duration_ms: int = 0) -> None:
        """Record a call that was not sent: refused, or not understood.

        Raises:
            Forbidden: reason `audit_unwritable`.
        """
        self._write(facts, outcome, duration_ms)

    def _write(self, facts: CallFacts, outcome: str | None, duration_ms: int | None) -> Row:
        row = Row(
            call=secrets.token_hex(8),
            gateway=self._gateway,
            time_ms=int(time.time() * 1000),
            client=facts.client[:_FIELD_CHARACTERS],
            face=facts.face,
            project=facts.project[:_FIELD_CHARACTERS],
            workspace=facts.workspace[:_FIELD_CHARACTERS],
            tool=facts.tool[:_FIELD_CHARACTERS],
            outcome=outcome,
            duration_ms=duration_ms,
        )
        data = wire.encode(row)

        async def publish(client: Client) -> None:
            await client.jetstream(timeout=_SECONDS).publish(wire.name_audit(self._gateway), data)

        try:
            self._line.run(publish, _SECONDS)
        except ExeoraError as error:
            if not self._line.connected:
                raise ExecutorOffline(
                    "the gateway has no connection to the fleet; the call has not run",
                    reason="fleet_unreachable",
                    hint="it connects again by itself: call it again in a moment",
                ) from error
            raise Forbidden(
                "the call was not made because it could not be recorded",
                reason="audit_unwritable",
                hint="is JetStream of the fleet's NATS servers there?",
            ) from error
        return row


def read_audit(line: Line, *, limit: int = 100, project: str | None = None, tool: str | None = None) -> list[Row]:
    """Read the newest calls, oldest of these first, each as far as it is known.

    Args:
        line: a gateway's connection where the stream is.
        limit: how many at most.
        project: only this project's, by slug.
        tool: only this tool's.
    """
    count = limit * (_ROWS_PER_CALL if project is tool is None else _ROWS_LOOKED_AT)
    rows = line.run(lambda client: _read_last(client, count), _READ_SECONDS)
    wanted = (row for row in rows if project in (None, row.project) and tool in (None, row.tool))
    return join_rows(wanted)[-limit:]


def join_rows(rows: Iterable[Row]) -> list[Row]:
    """Make one row of those of each call: the outcome where it came."""
    joined: dict[str, Row] = {}
    for row in rows:
        if row.outcome is not None or row.call not in joined:
            joined[row.call] = row
    return list(joined.values())


async def _read_last(client: Client, count: int) -> list[Row]:
    stream = client.jetstream(timeout=_SECONDS)
    state = (await stream.stream_info(wire.AUDIT_STREAM)).state
    start = max(state.first_seq, state.last_seq - count + 1)
    if not state.messages:
        return []
    config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start)
    subscription = await stream.subscribe("exeora.audit.>", ordered_consumer=True, config=config)
    rows: list[Row] = []
    try:
        while True:
            message = await subscription.next_msg(timeout=_QUIET_SECONDS)
            rows.append(wire.decode_as(Row, message.data))
            if message.metadata.sequence.stream >= state.last_seq:
                return rows
    finally:
        await subscription.unsubscribe()
