"""The gateway's parts, each over a real nats-server where it stores anything."""

import threading

import pytest
from exeora_ws.errors import ExecutorOffline, Forbidden, InvalidArguments, ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.fleet.account import AccountBook
from exeora_ws.fleet.audit import FleetAudit, Row, join_rows, read_audit
from exeora_ws.fleet.buckets import INVENTORY_BUCKET, POLICY_BUCKET, SLUGS_BUCKET, TOKENS_BUCKET, Bucket
from exeora_ws.fleet.deadlines import find_limit
from exeora_ws.fleet.documents import PolicyRecord, ProjectRecord, name_project_key, pack_project
from exeora_ws.fleet.records import read_known
from exeora_ws.fleet.slugs import SlugBook
from exeora_ws.fleet.tokens import TokenDoor, TokenStore
from exeora_ws.policy.audit import CallFacts
from exeora_ws.policy.rules import Mode
from exeora_ws.tools.catalog import CATALOG

from support.gateway import Fleet, eventually

FACTS = CallFacts("client", "http", "app", "main", "read_file")


@pytest.fixture
def state(fleet):
    with fleet.connected() as (lines, _):
        yield lines.state


# Slugs


def make_known(machine, project, slug):
    record = ProjectRecord(
        machine=machine, id=project, slug=slug, name=slug, workspaces=[], policy=PolicyRecord(mode="allow_all")
    )
    return record, read_known(name_project_key(machine, project), pack_project(record))


class Publishers:
    """Machines that have published projects, and some gateways that give slugs to them."""

    def __init__(self, state, prefix):
        self.inventory, self.slugs = Bucket(state, INVENTORY_BUCKET), Bucket(state, SLUGS_BUCKET)
        self.prefix = prefix
        self.known = {}
        self.books = []

    def publish(self, machine, project, slug):
        machine, project = f"mac_{self.prefix}{machine}", f"prj_{self.prefix}{project}"
        record, known = make_known(machine, project, f"{self.prefix}{slug}")
        self.inventory.put(name_project_key(machine, project), pack_project(record))
        self.known[machine, project] = known
        return known

    def withdraw(self, known):
        self.inventory.delete(name_project_key(known.machine, known.id))
        del self.known[known.machine, known.id]

    def open(self, count=1):
        for _ in range(count):
            book = SlugBook(self.slugs, self.inventory)
            book.open(book.look, lambda book=book: self._list_unnamed(book))
            book.mirror.await_filled(5)
            self.books.append(book)
        return self.books[0]

    def _list_unnamed(self, book):
        return [(known, known.machine[-1]) for known in list(self.known.values()) if book.find(known) is None]

    def look(self):
        for book in self.books:
            book.look()


@pytest.fixture
def publishers(state, request):
    made = Publishers(state, f"t{abs(hash(request.node.name)) % 10_000}-")
    yield made
    for book in made.books:
        book.close()


def test_the_first_keeps_a_slug_whichever_of_several_gateways_gives_it_away(publishers):
    known = [publishers.publish(machine, machine, "app") for machine in "abc"]
    publishers.open(3)
    publishers.look()

    def given():
        slugs = [{book.find(each) for book in publishers.books} for each in known]
        return slugs if all(len(found) == 1 and None not in found for found in slugs) else None

    slugs = [found.pop() for found in eventually(given)]
    assert len(set(slugs)) == 3
    plain = f"{publishers.prefix}app"
    assert plain in slugs
    assert all(slug == plain or slug.startswith(plain + "-") for slug in slugs)


def test_a_project_of_another_machine_is_not_given_a_slug(publishers):
    """No machine can put itself in another's place by publishing a project of the same id."""
    own = publishers.publish("a", "x", "app")
    book = publishers.open()
    publishers.look()
    slug = eventually(lambda: book.find(own))
    foreign = publishers.publish("b", "x", "other")
    publishers.look()
    wanted = publishers.publish("b", "y", "later")
    publishers.look()
    eventually(lambda: book.find(wanted))
    assert book.find(foreign) is None
    assert book.find(own) == slug


def test_the_slug_of_a_project_that_was_taken_out_is_free_again(publishers):
    first = publishers.publish("a", "x", "app")
    book = publishers.open()
    publishers.look()
    slug = eventually(lambda: book.find(first))
    publishers.withdraw(first)
    second = publishers.publish("b", "y", "app")
    publishers.look()
    assert eventually(lambda: book.find(second)) == slug


# Tokens


def test_tokens_are_kept_as_hashes_and_known_at_every_door(state):
    store, door = TokenStore(Bucket(state, TOKENS_BUCKET)), TokenDoor(Bucket(state, TOKENS_BUCKET))
    door.mirror.open()
    door.mirror.await_filled(5)
    token, secret = store.create("one", read_only=True)
    assert eventually(lambda: door.find(secret)).id == token.id
    assert not any(secret.encode() in entry.value for entry in Bucket(state, TOKENS_BUCKET).list().values())
    for other in ("", "exo_", secret[:-1], secret + "x", "exo_" + "A" * 43):
        assert door.find(other) is None
    assert door.filter_valid([token.id, "tok_other"]) == {token.id}
    store.revoke(secret)
    eventually(lambda: door.find(secret) is None)
    assert door.filter_valid([token.id]) == set()
    assert store.revoke(token.id).revoked is not None, "a second time is no error"


def test_of_gateways_that_start_at_once_one_makes_the_first_token(tmp_path):
    fleet = Fleet(tmp_path)
    try:
        with fleet.connected() as (lines, _):
            made, go = [], threading.Barrier(4)

            def make():
                store = TokenStore(Bucket(lines.state, TOKENS_BUCKET))
                go.wait()
                made.append(store.create_first("first"))

            threads = [threading.Thread(target=make) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sum(each is not None for each in made) == 1
            assert len(TokenStore(Bucket(lines.state, TOKENS_BUCKET)).list()) == 1
    finally:
        fleet.close()


def test_a_token_that_is_unknown_or_not_the_only_one_is_not_revoked(state):
    store = TokenStore(Bucket(state, TOKENS_BUCKET))
    for _ in range(2):
        store.create("twice")
    for selector, reason in (("nobody", "unknown_token"), ("twice", "ambiguous_token")):
        with pytest.raises(InvalidArguments) as refused:
            store.revoke(selector)
        assert refused.value.reason == reason


# The account's policy


def test_a_policy_that_cannot_be_understood_is_not_stored(state):
    book = AccountBook(Bucket(state, POLICY_BUCKET))
    book.store('deny = ["sudo"]\n')
    for text in ("mode = 1\n", "mode = [", 'allow = ["\'"]\n'):
        with pytest.raises(InvalidArguments) as refused:
            book.store(text)
        assert refused.value.reason == "policy_invalid"
    assert [rule.text for rule in book.load().policy.deny] == ["sudo"]


def test_a_policy_that_somebody_else_broke_closes_everything(state):
    Bucket(state, POLICY_BUCKET).put("account", b"mode = \xff")
    book = AccountBook(Bucket(state, POLICY_BUCKET))
    book.mirror.open()
    book.mirror.await_filled(5)
    assert book.now.policy.mode is Mode.READ_ONLY
    Bucket(state, POLICY_BUCKET).delete("account")
    eventually(lambda: book.now.policy.mode is Mode.ALLOW_ALL)


# The record


def test_the_record_has_an_intent_before_and_an_outcome_after(state):
    audit = FleetAudit(state, "gtw_1")
    begun = audit.begin(FACTS)
    (open_row,) = read_audit(state, limit=1)
    assert (open_row.call, open_row.outcome) == (begun.row.call, None)
    audit.finish(begun, "OK", 12)
    (row,) = eventually(lambda: [row for row in read_audit(state, limit=1) if row.outcome])
    assert (row.call, row.outcome, row.duration_ms, row.tool) == (begun.row.call, "OK", 12, "read_file")
    audit.note(FACTS, "FORBIDDEN")
    assert [each.outcome for each in read_audit(state, limit=2)] == ["OK", "FORBIDDEN"]
    assert read_audit(state, limit=2, tool="run_command") == []


def test_what_cannot_be_written_down_is_not_done(fleet):
    with fleet.connected() as (lines, _):
        audit = FleetAudit(lines.calls, "gtw_1")  # an account that keeps nothing
        with pytest.raises(Forbidden) as refused:
            audit.begin(FACTS)
        assert refused.value.reason == "audit_unwritable"
        lines.state.close()
        with pytest.raises(ExecutorOffline) as away:
            FleetAudit(lines.state, "gtw_1").begin(FACTS)
        assert away.value.reason == "fleet_unreachable"


def test_rows_of_one_call_are_one_however_they_come():
    first = Row(call="1", gateway="g", time_ms=1, client="", face="", project="", workspace="", tool="t")
    last = Row(call="1", gateway="g", time_ms=1, client="", face="", project="", workspace="", tool="t", outcome="OK")
    assert join_rows([first, last]) == [last]
    assert join_rows([last, first]) == [last]


# How long a call may take


class Asked:
    def __init__(self, **fields):
        self.__dict__ |= fields


def test_a_call_is_waited_for_as_long_as_its_tool_may_take():
    read, run, create = CATALOG["read_file"], CATALOG["run_command"], CATALOG["create_workspace"]
    assert find_limit(run, Asked(timeout_ms=1_000)) == 1 + 90 + 2 + 5
    assert find_limit(run, Asked(timeout_ms=300_000)) > 300
    assert find_limit(read, Asked()) < 180
    assert find_limit(create, Asked()) > 1_800


# What a machine wrote


def test_a_record_under_another_machines_key_is_no_record():
    record, known = make_known("mac_a", "prj_x", "app")
    assert known.machine == "mac_a"
    assert read_known("mac_b.prj_x", pack_project(record)) is None
    assert read_known("mac_a.prj_y", pack_project(record)) is None
    assert read_known("mac_a.prj_x", b"nonsense") is None


def test_errors_come_back_as_they_were():
    error = ToolFailed("no", reason="stale", hint="again", data={"line": 3})
    again = wire.read_error(error.to_dict())
    assert (type(again), again.to_dict()) == (ToolFailed, error.to_dict())
