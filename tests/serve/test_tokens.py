"""Tokens: what is kept of one, and what it opens."""

import time

import pytest
from exeora_ws.app import open_app
from exeora_ws.database import Database
from exeora_ws.errors import InvalidArguments
from exeora_ws.names import ProjectId
from exeora_ws.serve.tokens import TokenBook
from exeora_ws.tools.call import Scope

ALPHA, BETA = ProjectId("prj_alpha"), ProjectId("prj_beta")


@pytest.fixture
def places(app):
    return app.places


@pytest.fixture
def book(places):
    return TokenBook(places)


def test_a_secret_is_found_again_and_kept_nowhere(book, places):
    token, secret = book.create("laptop")
    assert secret.startswith("exo_")
    assert len(secret) == 47
    found = book.find(secret)
    assert (found.id, found.name) == (token.id, "laptop")
    kept = b"".join(p.read_bytes() for p in places.data.rglob("*") if p.is_file())
    assert secret.encode() not in kept
    assert secret[4:].encode() not in kept
    assert secret not in repr(book.list())


def test_no_two_secrets_are_alike(book):
    assert len({book.create("x")[1] for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s[:-1],
        lambda s: s + "A",
        lambda s: s.upper(),
        lambda s: s[4:],
        lambda s: s + "\n",
        lambda _s: "",
        lambda _s: "é" * 47,
        lambda s: f" {s}",
    ],
)
def test_any_other_text_is_nobodys(book, change):
    _, secret = book.create("x")
    assert book.find(change(secret)) is None


def test_a_revoked_token_opens_nothing_at_once_in_every_process(book, places):
    token, secret = book.create("x")
    other = TokenBook(places)
    assert other.find(secret) is not None
    assert book.revoke("x").revoked is not None
    assert other.find(secret) is None
    assert other.filter_valid({token.id}) == set()
    assert [t.revoked is not None for t in other.list()] == [True]


def test_a_token_that_is_over_opens_nothing(book):
    _, secret = book.create("x", seconds=0.05)
    assert book.find(secret) is not None
    time.sleep(0.06)
    assert book.find(secret) is None


def test_revoking_twice_keeps_the_first_time(book):
    token, _ = book.create("x")
    first = book.revoke(token.id)
    assert book.revoke(token.id).revoked == first.revoked


def test_a_name_that_several_have_must_be_told_apart(book):
    one, _ = book.create("x")
    two, _ = book.create("x")
    with pytest.raises(InvalidArguments) as caught:
        book.revoke("x")
    assert caught.value.reason == "ambiguous_token"
    assert [t.revoked for t in book.list()] == [None, None]
    book.revoke(one.id)
    assert book.revoke("x").id == two.id
    with pytest.raises(InvalidArguments) as caught:
        book.revoke("x")
    assert caught.value.reason == "unknown_token"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "  "},
        {"name": "x" * 101},
        {"name": "a\nb"},
        {"projects": []},
        {"seconds": 0},
        {"seconds": -1},
    ],
)
def test_a_token_of_no_use_is_not_made(book, wrong):
    with pytest.raises(InvalidArguments):
        book.create(**{"name": "x", **wrong})
    assert book.list() == []


def test_what_a_token_reaches(book):
    all_of_it, _ = book.create("all")
    one, _ = book.create("one", account=False, projects=[ALPHA], read_only=True)
    assert all_of_it.reaches(ALPHA)
    assert all_of_it.account_scope() == Scope()
    assert one.reaches(ALPHA)
    assert not one.reaches(BETA)
    assert one.project_scope(ALPHA) == Scope(bound=ALPHA, granted=frozenset((ALPHA,)), read_only=True)
    assert {t.name: t for t in book.list()}["one"] == one


def test_the_last_use_is_noted_now_and_then(book):
    _, secret = book.create("x")
    assert book.list()[0].used is None
    book.find(secret)
    first = book.list()[0].used
    assert first == pytest.approx(time.time(), abs=5)
    book.find(secret)
    assert book.list()[0].used == first


def test_the_tables_of_one_room_do_not_send_the_others_the_long_way(app, places, monkeypatch):
    TokenBook(places)
    monkeypatch.setattr(Database, "_versions", spy := Spy(Database._versions))
    monkeypatch.setattr("exeora_ws.database._bring_up", refuse)
    open_app(places)
    TokenBook(places)
    assert spy.calls == 2


class Spy:
    def __init__(self, function):
        self.function, self.calls = function, 0

    def __get__(self, instance, owner):
        return lambda: self(instance)

    def __call__(self, instance):
        self.calls += 1
        return self.function(instance)


def refuse(*_arguments):
    raise AssertionError("a database that is up to date was brought up")
