"""What is written for the other side comes out as it went in; what is no message is refused."""

import json

import pytest
from exeora_ws import errors
from exeora_ws.errors import Code, ExeoraError, InvalidArguments, ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.fleet.documents import (
    ProjectRecord,
    WorkspaceRecord,
    describe_policy,
    describe_tools,
    pack_project,
    read_policy,
    read_tools,
    unpack_project,
)
from exeora_ws.limits import FLEET_DOCUMENT_BYTES
from exeora_ws.policy.layer import parse_policy_file
from exeora_ws.policy.rules import Mode, Origin
from exeora_ws.upstream.catalog import PublishedTool
from hypothesis import given
from hypothesis import strategies as st

ODD = "half \ud83d, ünï, \u2028, \0"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_arguments_come_out_as_they_went_in(arguments):
    envelope = wire.Envelope(
        call="c", gateway="g", start_by=1, deadline=2, project="prj_a", tool="t", arguments=arguments, session="s"
    )
    assert wire.decode_as(wire.Envelope, wire.encode(envelope)) == envelope


def test_half_a_character_survives():
    assert wire.decode(wire.encode({"a": ODD, "n": 10**40})) == {"a": ODD, "n": 10**40}


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"call":1}', b"\xff", b"[" * 100_000])
def test_what_is_no_envelope_is_refused(data: bytes):
    with pytest.raises(InvalidArguments) as refused:
        wire.decode_as(wire.Envelope, data)
    assert refused.value.reason == "bad_message"


def test_an_acknowledgement_of_jetstream_is_taken_for_nothing():
    """A machine can have one appear on any subject of the account that calls travel in."""
    ack = b'{"stream":"KV_exeora_inventory","seq":1}'
    for kind in (wire.Envelope, wire.Alive, wire.SessionEnd):
        with pytest.raises(InvalidArguments):
            wire.decode_as(kind, ack)


def test_an_envelope_of_a_later_version_may_hold_more():
    known = wire.decode(wire.encode(wire.Alive(gateway="g")))
    assert wire.decode_as(wire.Alive, json.dumps({**known, "load": 3}).encode()) == wire.Alive(gateway="g")


@pytest.mark.parametrize("code", list(Code))
def test_every_error_is_the_same_on_the_other_side(code: Code):
    kinds = [
        k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, ExeoraError) and k is not ExeoraError
    ]
    (kind,) = [k for k in kinds if k.code is code]
    told = kind("m", reason="r", hint="h", data={"a": [1]})
    again = wire.read_error(json.loads(json.dumps(told.to_dict())))
    assert type(again) is kind
    assert again.to_dict() == told.to_dict()


def test_an_error_of_an_unknown_code_is_a_failed_tool():
    assert type(wire.read_error({"code": "NEW", "message": "m"})) is ToolFailed


POLICIES = [
    "",
    'mode = "read_only"',
    'allow = ["git status", "npm test *"]\ndeny = ["rm"]\ntools = ["grep"]\napprove = true',
    'deny = ["git push"]\nshell = true',
    "mode = ",
]


@pytest.mark.parametrize("text", POLICIES)
def test_a_policy_is_the_same_on_the_other_side(text: str):
    policy = parse_policy_file(text, Origin.PROJECT).policy
    again = read_policy(describe_policy(policy))
    assert (again.mode, again.allow, again.deny, again.shell, again.approve, again.tools) == (
        policy.mode, policy.allow, policy.deny, policy.shell, policy.approve, policy.tools,
    )  # fmt: skip
    assert bool(again.faults) == bool(policy.faults)


def test_a_policy_that_makes_no_sense_is_closed():
    record = describe_policy(parse_policy_file("", Origin.PROJECT).policy)
    odd = type(record)(mode="newer_mode")
    assert read_policy(odd).mode is Mode.READ_ONLY


def make_record(count: int, size: int = 10) -> ProjectRecord:
    text = "".join(chr(33 + (n * n * 7919 + n) % 90) for n in range(size))
    tools = [
        PublishedTool(
            f"mcp__s__t{n}", "s", f"t{n}", n % 2 == 0, "workspace", {"name": f"t{n}", "description": f"{n}{text}"}
        )
        for n in range(count)
    ]
    main = WorkspaceRecord(id="wsp_a", slug="main", name="main", branch=None, managed=False, available=True, path="/x")
    policy = describe_policy(parse_policy_file("", Origin.PROJECT).policy)
    return ProjectRecord(
        machine="mac_a", id="prj_a", slug="a", name=ODD, workspaces=[main], policy=policy, tools=describe_tools(tools)
    )


def test_a_record_is_the_same_on_the_other_side():
    record = make_record(3)
    again = unpack_project(pack_project(record))
    assert again == record
    assert [tool.name for tool in read_tools(again.tools)] == ["mcp__s__t0", "mcp__s__t1", "mcp__s__t2"]


def test_a_catalog_that_is_too_large_is_cut_and_says_so():
    import os

    record = make_record(256)
    heavy = [
        type(t)(**{f: getattr(t, f) for f in t.__struct_fields__} | {"raw": {"d": os.urandom(6_000).hex()}})
        for t in record.tools
    ]
    record = ProjectRecord(**{f: getattr(record, f) for f in record.__struct_fields__} | {"tools": heavy})
    packed = pack_project(record)
    again = unpack_project(packed)
    assert len(packed) <= FLEET_DOCUMENT_BYTES
    assert 0 < len(again.tools) < 256
    assert again.tools_left_out == 256 - len(again.tools)


@pytest.mark.parametrize("data", [b"", b"{}", b"junk", b"x\x9c\xff", b'{"stream":"KV_exeora_inventory","seq":2}'])
def test_what_is_no_record_is_refused(data: bytes):
    with pytest.raises(ExeoraError):
        unpack_project(data)


def test_a_bomb_is_not_blown_up():
    import zlib

    bomb = zlib.compress(b'{"machine":"' + b"a" * 20_000_000 + b'"}', 1)
    with pytest.raises(ToolFailed):
        unpack_project(bomb)
