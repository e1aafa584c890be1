"""Buckets: two who write at once are told apart; whoever watches misses nothing, also over a restart."""

import threading
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.fleet.buckets import TOKENS_BUCKET, Bucket, Entry, ensure_buckets
from exeora_ws.fleet.credentials import Keys
from exeora_ws.fleet.keeping import KeyWriter
from exeora_ws.fleet.line import Line
from exeora_ws.fleet.permissions import INVENTORY_BUCKET

from support.fleet import Hand, kill, make_credential, operating, run_server
from support.processes import eventually


class Copy:
    """Follows a bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self.held: dict[str, bytes] = {}
        self.whole = 0
        bucket.watch(self._take, self._change)

    def _take(self, everything: dict[str, Entry]) -> None:
        self.held = {key: entry.value or b"" for key, entry in everything.items()}
        self.whole += 1

    def _change(self, entry: Entry) -> None:
        if entry.value is None:
            self.held.pop(entry.key, None)
        else:
            self.held[entry.key] = entry.value


def test_writes_are_checked_by_revision(hand: Hand):
    bucket = Bucket(hand.state, TOKENS_BUCKET)
    first = bucket.put("a", b"1", 0)
    assert bucket.find("a") == Entry("a", b"1", first)
    second = bucket.put("a", b"2", first)
    for wrong in (0, first):
        with pytest.raises(ToolFailed) as refused:
            bucket.put("a", b"3", wrong)
        assert refused.value.reason == "stale"
    with pytest.raises(ToolFailed):
        bucket.delete("a", first)
    assert bucket.find("a") == Entry("a", b"2", second)
    bucket.delete("a", second)
    assert bucket.find("a") is None
    assert bucket.list() == {}
    assert bucket.put("a", b"4", 0)


def test_of_many_who_write_one_wins(hand: Hand):
    bucket, won, lost = Bucket(hand.state, TOKENS_BUCKET), [], []

    def write(number: int) -> None:
        try:
            won.append(bucket.put("a", b"%d" % number, 0))
        except ToolFailed as refused:
            lost.append(refused.reason)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), lost) == (1, ["stale"] * 9)


def test_a_watcher_knows_all_and_hears_of_each_change_also_after_a_restart(tmp_path: Path, keys: Keys):
    with run_server(tmp_path / "nats", keys) as server, operating(keys, (server.url,)) as hand:
        ensure_buckets(hand.state)
        bucket = Bucket(hand.state, TOKENS_BUCKET)
        bucket.put("a", b"1")
        copy = Copy(bucket)
        assert eventually(lambda: copy.held == {"a": b"1"})
        bucket.put("b", b"2")
        bucket.delete("a")
        assert eventually(lambda: copy.held == {"b": b"2"})
        kill(server)
        port = server.port
        server.close()
        with run_server(tmp_path / "nats", keys, port), operating(keys, hand.urls) as other:
            Bucket(other.state, TOKENS_BUCKET).put("c", b"3")
            assert eventually(lambda: copy.held == {"b": b"2", "c": b"3"}, 10)
            assert copy.whole >= 2


def test_a_machine_writes_over_what_an_earlier_process_left_and_notices_a_rival(hand: Hand):
    credential = make_credential(hand)
    line = Line(hand.urls, credential.line, f"_INBOX.{credential.identity}", name="m")
    line.open()
    try:
        key = f"{credential.identity}.prj_a"
        one, two, bucket = KeyWriter(line), KeyWriter(line), Bucket(hand.state, INVENTORY_BUCKET)
        one.put(INVENTORY_BUCKET, key, b"1")
        one.put(INVENTORY_BUCKET, key, b"2")
        assert one.rivals == 0
        two.put(INVENTORY_BUCKET, key, b"3")
        assert two.rivals == 0
        one.put(INVENTORY_BUCKET, key, b"4")
        assert one.rivals == 1
        held = bucket.find(key)
        assert held is not None
        assert held.value == b"4"
        one.delete(INVENTORY_BUCKET, key)
        assert bucket.find(key) is None
        two.put(INVENTORY_BUCKET, key, b"5")
        assert bucket.list()[key].value == b"5"
    finally:
        line.close()


def test_a_list_is_never_short(hand: Hand):
    """Also when it is asked for at the very moment that the server sends it."""
    bucket = Bucket(hand.state, TOKENS_BUCKET)
    for number in range(3):
        bucket.put(f"k{number}", b"v")
    bucket.put("gone", b"v")
    bucket.delete("gone")
    counts: set[int] = set()

    def look() -> None:
        counts.update(len(bucket.list()) for _ in range(25))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {3}
    for number in range(3):
        bucket.delete(f"k{number}")
    assert bucket.list() == {}
