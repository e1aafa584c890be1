"""The line: what is lost fails at once, nothing is sent later, everything comes back by itself."""

import threading
import time
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ExecutorOffline, Forbidden, ToolFailed, ToolTimeout
from exeora_ws.fleet.clock import FleetClock
from exeora_ws.fleet.credentials import Keys, User
from exeora_ws.fleet.line import Line, LineState, Message

from support.fleet import Hand, Wire, kill, make_credential, operating, run_cluster, run_server
from support.processes import eventually


class Ears:
    """Keeps what comes in."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._news = threading.Condition()

    def take(self, message: Message) -> None:
        with self._news:
            self.heard.append(message.data)
            self._news.notify_all()

    def wait(self, count: int, seconds: float = 5.0) -> list[bytes]:
        with self._news:
            assert self._news.wait_for(lambda: len(self.heard) >= count, seconds), self.heard
        return self.heard


def test_messages_keep_their_order_from_any_thread(hand: Hand):
    ears = Ears()
    hand.line.subscribe("exeora.t.a", ears.take)
    for number in range(200):
        assert hand.line.post("exeora.t.a", b"%d" % number)
    assert ears.wait(200) == [b"%d" % number for number in range(200)]


def test_of_a_queue_group_one_gets_it(hand: Hand, keys: Keys):
    with operating(keys, hand.urls) as other:
        ears = Ears()
        for line in (hand.line, other.line):
            line.subscribe("exeora.t.q", ears.take, queue="machine")
        for _ in range(20):
            hand.line.publish("exeora.t.q", b"x")
        ears.wait(20)
        time.sleep(0.05)
        assert len(ears.heard) == 20


def test_nobody_there_is_known_at_once(hand: Hand):
    began = time.monotonic()
    with pytest.raises(ExecutorOffline) as told:
        hand.line.request("exeora.m.mac_none.ping", b"", 5)
    assert told.value.reason == "nobody_there"
    assert time.monotonic() - began < 0.5


def test_no_answer_and_a_caller_who_leaves(hand: Hand):
    hand.line.subscribe("exeora.t.deaf", lambda _message: None)
    with pytest.raises(ToolTimeout) as told:
        hand.line.request("exeora.t.deaf", b"", 0.2)
    assert told.value.reason == "no_answer"
    leaving = Cancellation()
    threading.Timer(0.1, leaving.cancel).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        hand.line.request("exeora.t.deaf", b"", 5, cancellation=leaving)
    assert time.monotonic() - began < 2


def test_a_message_over_the_limit_is_refused(hand: Hand):
    with pytest.raises(ToolFailed) as told:
        hand.line.publish("exeora.t.a", b"x" * (hand.line.max_payload + 1))
    assert told.value.reason == "message_too_large"
    assert hand.line.connected


def test_what_waits_fails_at_once_when_the_server_dies_and_nothing_is_sent_later(tmp_path: Path, keys: Keys):
    with run_server(tmp_path / "nats", keys) as server, operating(keys, (server.url,)) as hand:
        ears = Ears()
        hand.line.subscribe("exeora.t.late", ears.take)
        hand.line.subscribe("exeora.t.deaf", lambda _message: None)
        killer = threading.Timer(0.2, kill, [server])
        killer.start()
        began = time.monotonic()
        with pytest.raises(ExecutorOffline) as told:
            hand.line.request("exeora.t.deaf", b"", 10)
        assert told.value.reason == "connection_lost"
        assert time.monotonic() - began < 2
        killer.join()
        assert not hand.line.connected
        assert not hand.line.post("exeora.t.late", b"posted while away")
        with pytest.raises(ExecutorOffline) as told:
            hand.line.publish("exeora.t.late", b"published while away")
        assert told.value.reason == "not_connected"
        port = server.port
        server.close()
        with run_server(tmp_path / "nats", keys, port):
            assert eventually(lambda: hand.line.connected, 10)
            hand.line.publish("exeora.t.late", b"after")
            assert ears.wait(1) == [b"after"]


def test_a_silent_network_is_noticed(hand: Hand, monkeypatch):
    """A server that does not answer is lost within two heartbeats, though no end was told."""
    for name in ("HEARTBEAT_SECONDS", "PATIENCE_SECONDS"):
        monkeypatch.setattr(f"exeora_ws.fleet.connection.{name}", 1)
    cable = Wire(int(hand.urls[0].rpartition(":")[2]))
    states: list[LineState] = []
    credential = make_credential(hand, port=cable.port)
    line = Line(credential.urls, credential.line, f"_INBOX.{credential.identity}", name="m",
                on_state=lambda state, _why: states.append(state))  # fmt: skip
    try:
        line.open()
        cable.cut()
        began = time.monotonic()
        assert eventually(lambda: not line.connected, 10)
        assert time.monotonic() - began < 3
        cable.mend()
        assert eventually(lambda: line.connected, 10)
        assert states == [LineState.CONNECTED, LineState.LOST, LineState.CONNECTED]
    finally:
        line.close()
        cable.close()


def test_no_server_and_no_welcome_are_told_apart(hand: Hand):
    credential = make_credential(hand)
    line = Line(("nats://127.0.0.1:1",), credential.line, "_INBOX.x", name="m")
    with pytest.raises(ExecutorOffline) as told:
        line.open(0.5)
    assert told.value.reason == "fleet_unreachable"
    line = Line(hand.urls, User(credential.line.jwt[:-8] + "AAAAAAAA", credential.line.seed), "_INBOX.x", name="m")
    with pytest.raises(Forbidden) as refused:
        line.open(5)
    assert refused.value.reason == "credential_refused"


def test_a_closed_line_leaves_no_thread(hand: Hand):
    before = threading.active_count()
    credential = make_credential(hand)
    line = Line(hand.urls, credential.line, f"_INBOX.{credential.identity}", name="m")
    line.open()
    line.close()
    line.close()
    assert threading.active_count() == before
    with pytest.raises(ExecutorOffline):
        line.publish("x", b"")


def test_the_clock_of_the_fleet_is_the_servers(hand: Hand):
    uptime = [1000.0]
    clock = FleetClock(lambda: uptime[0])
    hand.line.accompany(clock.keep)
    clock.await_known(5)
    assert abs(clock.now_ms() - time.time() * 1000) < 1000
    now = clock.now_ms()
    uptime[0] += 3_600  # a suspended machine's hour counts, whatever its wall clock says
    assert clock.now_ms() - now == pytest.approx(3_600_000, abs=2)
    real = FleetClock()
    hand.line.accompany(real.keep)
    real.await_known(5)
    assert abs(real.now_ms() - time.time() * 1000) <= real.error_ms + 2
    assert real.error_ms < 500


def test_a_cluster_that_loses_one_serves_on(tmp_path: Path, keys: Keys):
    with run_cluster(tmp_path, keys) as servers:
        urls = tuple(server.url for server in servers)
        with operating(keys, urls[:1]) as hand, operating(keys, urls[1:2]) as far:
            ears = Ears()
            hand.line.subscribe("exeora.t.a", ears.take)
            assert eventually(lambda: far.line.post("exeora.t.a", b"through") and ears.heard, 5)
            # A machine that is sent away is sent away by every server.
            credential = hand.roster.add("laptop", urls[2:])
            line = Line(urls[2:], credential.line, f"_INBOX.{credential.identity}", name="m")
            line.open()
            hand.roster.revoke("laptop")
            assert eventually(lambda: not line.connected, 2)
            line.close()
            kill(servers[0])
            # It was given one address; it knows the others by now.
            assert eventually(lambda: hand.line.connected and hand.state.connected, 15)
            count = len(ears.heard)
            assert eventually(lambda: far.line.post("exeora.t.a", b"again") and len(ears.heard) > count, 5)
