"""What a machine's credential must not be able to do, tried on a real server with a client of no manners."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import nats
import pytest
from exeora_ws.fleet import nats_jwt, wire
from exeora_ws.fleet.buckets import BUCKETS, POLICY_BUCKET, TOKENS_BUCKET, Bucket
from exeora_ws.fleet.credentials import Credential, Keys, User
from exeora_ws.fleet.permissions import CLOCK, INVENTORY_BUCKET, PRESENCE_BUCKET
from exeora_ws.fleet.wire import AUDIT_STREAM
from nats.aio.client import Client

from support.fleet import Hand, make_credential

OTHER = "mac_other"


class Intruder:
    """A client with a machine's credential, and what the server told it off for."""

    def __init__(self, client: Client, refusals: list[str], machine: str) -> None:
        self.client, self.refusals, self.machine = client, refusals, machine

    async def settle(self) -> None:
        await self.client.flush()
        await asyncio.sleep(0.05)


async def enter(urls: tuple[str, ...], user: User, inbox: str, machine: str) -> Intruder:
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error))

    client = await nats.connect(
        list(urls),
        user_jwt_cb=lambda: bytearray(user.jwt.encode()),
        signature_cb=lambda nonce: nats_jwt.sign_nonce(user.seed, nonce),
        inbox_prefix=inbox.encode(),
        error_cb=note,
        allow_reconnect=False,
    )
    return Intruder(client, refusals, machine)


@pytest.fixture
def credential(hand: Hand) -> Credential:
    return make_credential(hand)


@pytest.fixture
def intrude(hand: Hand, credential: Credential) -> Callable[[Callable[[Intruder], Awaitable[Any]]], Any]:
    """Do something as that machine; gives what it gives and what the server said to it."""

    def run(deed: Callable[[Intruder], Awaitable[Any]]) -> tuple[Any, list[str]]:
        async def do() -> tuple[Any, list[str]]:
            intruder = await enter(hand.urls, credential.line, f"_INBOX.{credential.identity}", credential.identity)
            try:
                found = await deed(intruder)
                await intruder.settle()
            finally:
                await intruder.client.close()
            return found, intruder.refusals

        return asyncio.run(do())

    return run


LISTENED = (
        ">", "*", "exeora.>", "exeora.m.>", "exeora.m.*.call", f"exeora.m.{OTHER}.call", f"exeora.m.{OTHER}.>",
        "exeora.r.>", "_INBOX.>", f"_INBOX.{OTHER}.>", "_INBOX.*.*", "exeora.audit.>", "$KV.>", "$JS.>", "$SYS.>",
        f"$KV.{TOKENS_BUCKET}.>", f"$KV.{INVENTORY_BUCKET}.>",
)  # fmt: skip


def test_it_cannot_listen_to_others(intrude):
    async def listen(intruder: Intruder) -> None:
        for subject in LISTENED:
            await intruder.client.subscribe(subject)

    _, refusals = intrude(listen)
    told = {f'nats: permissions violation for subscription to "{subject}"'.lower() for subject in LISTENED}
    assert {refusal.lower() for refusal in refusals} == told


SPOKEN = (
        f"exeora.m.{OTHER}.call", f"exeora.m.{OTHER}.cancel.c", f"exeora.m.{OTHER}.close", "exeora.g.alive",
        f"exeora.r.gtw_a.{OTHER}.c", "exeora.audit.mac_a", "_INBOX.gtw_a.x", f"_INBOX.{OTHER}.x",
        f"$KV.{INVENTORY_BUCKET}.{OTHER}.prj_a", f"$KV.{PRESENCE_BUCKET}.{OTHER}.seen",
        *(f"$KV.{name}.x" for name in BUCKETS), f"$KV.{TOKENS_BUCKET}.{OTHER}",
        f"$JS.API.STREAM.DELETE.KV_{INVENTORY_BUCKET}", f"$JS.API.STREAM.PURGE.KV_{INVENTORY_BUCKET}",
        f"$JS.API.STREAM.CREATE.KV_{INVENTORY_BUCKET}", "$JS.API.STREAM.CREATE.mine",
        f"$JS.API.CONSUMER.CREATE.KV_{TOKENS_BUCKET}", f"$JS.API.STREAM.MSG.GET.KV_{TOKENS_BUCKET}",
        f"$JS.API.DIRECT.GET.KV_{TOKENS_BUCKET}", f"$JS.API.STREAM.INFO.KV_{TOKENS_BUCKET}", "$JS.API.INFO",
        "$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ",
)  # fmt: skip


def test_it_cannot_speak_for_others_or_to_the_store(intrude):
    async def publish(intruder: Intruder) -> None:
        for subject in SPOKEN:
            await intruder.client.publish(subject, b"{}")

    _, refusals = intrude(publish)
    told = {f'nats: permissions violation for publish to "{subject}"'.lower() for subject in SPOKEN}
    assert {refusal.lower() for refusal in refusals} == told


def test_what_it_may_do_is_all_that_it_needs(intrude, hand: Hand, credential: Credential):
    me = credential.identity

    async def work(intruder: Intruder) -> Any:
        for subject in (f"exeora.m.{me}.>", "exeora.g.alive", f"_INBOX.{me}.>"):
            await intruder.client.subscribe(subject)
        await intruder.client.publish(f"exeora.r.{hand.gateway}.{me}.c", b"{}")
        put = await intruder.client.request(f"$KV.{INVENTORY_BUCKET}.{me}.prj_a", b"v", timeout=2)
        seen = await intruder.client.request(f"$KV.{PRESENCE_BUCKET}.{me}.seen", b"v", timeout=2)
        clock = await intruder.client.request(CLOCK, b"", timeout=2)
        return [json.loads(answer.data) for answer in (put, seen, clock)]

    (put, seen, clock), refusals = intrude(work)
    assert refusals == []
    assert put["stream"] == f"KV_{INVENTORY_BUCKET}"
    assert seen["stream"] == f"KV_{PRESENCE_BUCKET}"
    assert clock["server"]["time"]
    held = Bucket(hand.state, INVENTORY_BUCKET).find(f"{me}.prj_a")
    assert held is not None
    assert held.value == b"v"


@pytest.mark.parametrize("header", [{}, {"KV-Operation": "PURGE", "Nats-Rollup": "sub"}, {"Nats-Rollup": "all"}])
def test_no_reply_subject_lets_it_write_where_it_may_not(intrude, hand: Hand, credential: Credential, header):
    """JetStream answers wherever the sender says, without asking whether the sender could publish there."""
    me, buckets = credential.identity, {name: Bucket(hand.state, name) for name in BUCKETS}
    targets = [(TOKENS_BUCKET, "tok_a"), (POLICY_BUCKET, "account"), (INVENTORY_BUCKET, f"{OTHER}.prj_b")]
    for name, key in targets:
        buckets[name].put(key, b"untouched")
    machines = buckets["exeora_machines"].list()
    replies = [f"$KV.{name}.{key}" for name, key in targets]
    replies += [f"$KV.exeora_machines.{me}", f"$JS.API.STREAM.DELETE.KV_{TOKENS_BUCKET}", f"exeora.audit.{me}"]
    replies += [f"$JS.API.STREAM.PURGE.KV_{TOKENS_BUCKET}", "$SYS.REQ.CLAIMS.UPDATE"]

    async def reflect(intruder: Intruder) -> None:
        for reply in replies:
            for asked in (f"$KV.{INVENTORY_BUCKET}.{me}.prj_a", f"$KV.{PRESENCE_BUCKET}.{me}.seen", CLOCK):
                await intruder.client.publish(asked, b"x", reply=reply, headers=header or None)

    intrude(reflect)
    for name, key in targets:
        held = buckets[name].find(key)
        assert held is not None
        assert held.value == b"untouched"
    assert buckets["exeora_machines"].list() == machines

    async def count(client: Client) -> int:
        return int((await client.jetstream().stream_info(AUDIT_STREAM)).state.messages)

    assert hand.state.run(count, 5) == 0


def test_what_a_reply_subject_can_reach_is_taken_for_nothing(intrude, hand: Hand, credential: Credential):
    """In the account of calls an acknowledgement can appear anywhere; it holds nothing of the sender's."""
    heard: list[bytes] = []
    hand.line.subscribe(f"exeora.m.{OTHER}.call", lambda message: heard.append(message.data))

    async def reflect(intruder: Intruder) -> None:
        envelope = hand.envelope("prj_a", "run_command", {"command": "touch /tmp/x"})
        key = f"$KV.{INVENTORY_BUCKET}.{credential.identity}.prj_a"
        await intruder.client.publish(key, wire.encode(envelope), reply=f"exeora.m.{OTHER}.call")

    intrude(reflect)
    for data in heard:
        assert set(json.loads(data)) == {"stream", "seq"}


def test_a_user_of_another_fleet_is_nobody_here(hand: Hand):
    from exeora_ws.errors import Forbidden
    from exeora_ws.fleet.credentials import make_keys
    from exeora_ws.fleet.line import Line

    stranger = make_keys().make_machine(wire.new_machine_id(), "stranger", hand.urls)
    line = Line(stranger.urls, stranger.line, "_INBOX.x", name="stranger")
    with pytest.raises(Forbidden) as refused:
        line.open(5)
    assert refused.value.reason == "credential_refused"


def test_a_machine_that_makes_itself_a_gateway_is_nobody(hand: Hand, keys: Keys, credential: Credential):
    """The key of a user signs nothing that the servers believe."""
    from exeora_ws.errors import Forbidden
    from exeora_ws.fleet.line import Line

    claims = {"type": "user", "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1}
    seed = nats_jwt.make_seed(nats_jwt.USER)
    forged = nats_jwt.sign_claims(credential.line.seed, nats_jwt.find_public(seed), "me", claims)
    line = Line(hand.urls, User(forged, seed), "_INBOX.x", name="forger")
    with pytest.raises(Forbidden):
        line.open(5)
