"""A machine that writes whatever it likes: it harms what is its own, and nothing of the others'."""

import json
import math
import zlib

import pytest
from exeora_ws.fleet import wire
from exeora_ws.fleet.allowance import Allowance
from exeora_ws.fleet.buckets import INVENTORY_BUCKET, MACHINES_BUCKET, Bucket
from exeora_ws.fleet.documents import MachineRecord, name_project_key
from exeora_ws.fleet.frames import Assembler
from exeora_ws.fleet.records import read_known
from exeora_ws.fleet.slugs import SlugBook
from exeora_ws.limits import FLEET_MACHINE_BYTES
from exeora_ws.serve.service import Service
from exeora_ws.tools.call import Caller, Face, RawCall, Scope

from support.gateway import eventually
from support.scripted import Person, make_call, open_core, say

GOOD, BAD = "mac_good", "mac_bad"
SCHEMA = {"type": "object"}


def write_record(machine, project, **facts):
    main = {"id": "wsp_1", "slug": "main", "name": "main", "branch": None, "managed": False, "available": True}
    record = {
        "machine": machine, "instance": "i1", "id": project, "slug": project.removeprefix("prj_"), "name": "app",
        "workspaces": [{**main, "path": "/x"}], "policy": {"mode": "allow_all"}, "at": 1, **facts,
    }  # fmt: skip
    return zlib.compress(json.dumps(record).encode())


def write_tool(raw, name="mcp__s__t", field="workspace"):
    return {"name": name, "server": "s", "tool": "t", "read_only": True, "workspace_field": field, "raw": raw}


TOOLS = [
    write_tool({}),
    write_tool({"inputSchema": "x"}),
    write_tool({"inputSchema": {"type": "object", "properties": [1]}}),
    write_tool({"inputSchema": {"type": "object", "required": [{}]}}),
    write_tool({"inputSchema": SCHEMA, "annotations": "x"}),
    write_tool({"inputSchema": SCHEMA, "description": {}}),
    write_tool({"inputSchema": SCHEMA}, name="read_file"),
    write_tool({"inputSchema": SCHEMA}, name="mcp__\ud800"),
    write_tool({"inputSchema": SCHEMA}, name="mcp__" + "x" * 100),
    write_tool({"inputSchema": SCHEMA}, field=""),
]
CREDIBLE = {
    "half": {"name": "\ud800", "slug": "\ud800"},
    "path": {"slug": "../../etc", "name": "\x1b]0;x\x07"},
    "tools": {"tools": TOOLS},
    "policy": {"policy": {"mode": "nothing", "deny": ["("]}},
}
INCREDIBLE = {
    "late": {"at": 2**62},
    "early": {"at": -1},
    "instance": {"instance": "x 2\r\nPUB exeora.m.mac_good.close 0\r\n\r\n"},
    "long": {"name": "x" * 100_000},
    "nan": {"tools": [write_tool({"inputSchema": {"type": "object", "default": math.nan}})]},
    "deep": {"tools": [write_tool({"inputSchema": json.loads('{"a":' * 300 + "1" + "}" * 300)})]},
    "version": {"workspaces": [{"id": 5}]},
}


@pytest.mark.parametrize("name", INCREDIBLE)
def test_a_record_that_could_not_be_listed_is_none(name):
    assert read_known(f"{BAD}.prj_x", write_record(BAD, "prj_x")) is not None
    assert read_known(f"{BAD}.prj_x", write_record(BAD, "prj_x", **INCREDIBLE[name])) is None


@pytest.mark.parametrize("project", ["app", "prj_a.b", "prj_é", "prj_" + "x" * 100])
def test_an_id_that_is_none_is_not_taken_for_one(project):
    assert read_known(f"{BAD}.{project}", write_record(BAD, project)) is None


def test_what_inflates_beyond_all_bounds_is_not_read():
    bomb = zlib.compress(b'{"a":[' + b"{}," * 5_000_000 + b"{}]}", 9)
    assert len(bomb) < 50_000
    assert read_known(f"{BAD}.prj_x", bomb) is None


def test_a_machine_fills_only_so_much_of_a_gateway():
    allowance = Allowance()
    large = FLEET_MACHINE_BYTES // 4
    assert [allowance.take(f"{BAD}.{n}", large) for n in range(5)] == [True, True, True, False, False]
    assert allowance.take(f"{GOOD}.0", large), "others have their own"
    assert allowance.take(f"{BAD}.0", large), "what is written anew counts once"
    allowance.give_back(f"{BAD}.1")
    assert allowance.take(f"{BAD}.5", large)
    allowance.keep_only({f"{BAD}.5"})
    assert [allowance.take(f"{BAD}.{n}", large) for n in (6, 7, 8)] == [True, True, False]
    assert sum(allowance.take(f"mac_many.{n}", 0) for n in range(20_000)) < 20_000


def test_what_one_machine_publishes_takes_nothing_from_the_others(fleet, sealed):
    with open_core(fleet) as core, fleet.connected() as (lines, _):
        machines, inventory = Bucket(lines.state, MACHINES_BUCKET), Bucket(lines.state, INVENTORY_BUCKET)
        for machine in (GOOD, BAD):
            machines.put(machine, wire.encode(MachineRecord(name=machine[4:], public="x", added=1.0)))
        for name, facts in (CREDIBLE | INCREDIBLE).items():
            inventory.put(name_project_key(BAD, f"prj_{name}"), write_record(BAD, f"prj_{name}", **facts))
        inventory.put(name_project_key(BAD, "prj_junk"), b"\0")
        own = write_record(GOOD, "prj_own", tools=[write_tool({"inputSchema": SCHEMA}, "mcp__s__good")])
        inventory.put(name_project_key(GOOD, "prj_own"), own)
        eventually(lambda: len(core.inventory.list_projects()) == 1 + len(CREDIBLE))
        listed = core.calls.make(RawCall("list_projects", {}), Caller(Face.HTTP, "t", "s", Scope()))
        assert listed.error is None
        assert {each["id"] for each in listed.to_dict()["projects"]} == {"prj_own", *(f"prj_{n}" for n in CREDIBLE)}
        json.dumps(listed.to_dict(), ensure_ascii=False).encode()
        offered = [tool["name"] for tool in Service(core.calls).list_tools(Scope(), None)["tools"]]
        assert offered.count("read_file") == 1
        assert [name for name in offered if name.startswith("mcp__")] == ["mcp__s__good"]


def test_a_project_that_can_have_no_slug_keeps_none_from_others(fleet):
    with fleet.connected() as (lines, _):
        book = SlugBook(Bucket(lines.state, "exeora_slugs"), Bucket(lines.state, INVENTORY_BUCKET))
        first, second = (read_known(f"{GOOD}.prj_{n}", write_record(GOOD, f"prj_{n}")) for n in ("one", "two"))
        give = book._give

        def refuse(known, machine):
            if known is first:
                raise RuntimeError("it can have none")
            give(known, machine)

        book._give = refuse
        book.open(lambda: None, lambda: [(first, "good"), (second, "good")])
        book.look()
        try:
            assert eventually(lambda: book.find(second)) == "two"
        finally:
            book.close()


DEEP = b'{"kind":"done","structured":' + b'{"a":' * 900 + b"1" + b"}" * 901


@pytest.mark.parametrize("answer", [b'{"kind":"done","structured":{"a":NaN}}', DEEP])
def test_an_answer_that_no_client_could_read_is_a_failure(machines, script, answer):
    from exeora_ws.errors import ToolFailed

    script.answer = lambda post, _: post(answer)
    with pytest.raises(ToolFailed) as raised:
        make_call(machines)
    assert raised.value.reason == "bad_message"


def test_half_a_character_in_an_answer_is_mended(machines, script):
    script.answer = lambda post, _: post(say("done", structured={"a": "\ud800"}, text="\udfff"))
    answered = make_call(machines)
    assert (answered.structured, answered.text) == ({"a": "\ufffd"}, "\ufffd")


def test_an_error_that_is_none_of_ours_is_one_all_the_same():
    told = {"code": ["x"], "message": {"a": 1}, "reason": 5, "hint": [], "data": "x"}
    assert wire.read_error(told).to_dict() == {"code": "TOOL_FAILED", "message": ""}
    long = wire.read_error({"code": "FORBIDDEN", "message": "x" * 2_000_000, "data": {"a": "x" * 2_000_000}})
    assert len(json.dumps(long.to_dict())) < 20_000


def test_progress_that_makes_no_sense_is_passed_over(machines, script):
    heard = []

    def answer(post, _):
        for facts in ({"progress": 10**400}, {"progress": "x", "message": 5}, {"line": {}}, {"line": "x" * 1_000_000}):
            post(say("progress", **facts))
        post(say("done", structured={}))

    script.answer = answer
    make_call(machines, progress=heard.append)
    assert [len(str(line)) for line in heard] == [0, 0, 0, 10_000]


def test_a_machine_cannot_have_a_person_asked_many_things_at_once(machines, script):
    from exeora_ws.tools.call import Asking

    def answer(post, _):
        for _ in range(50):
            post(say("question", seconds=30))
        post(say("done", structured={}))

    script.answer, person = answer, Person(None)
    make_call(machines, asking=Asking(asker=person))
    assert len(person.asked) == 1


def test_frames_that_hold_nothing_or_are_too_many_are_refused():
    from exeora_ws.errors import ToolFailed

    for head in (b"\0" + b"x" * 8 + b"\0\0\0\0\0\0\0\2", b"\0" + b"x" * 8 + b"\0\0\0\0\x7f\xff\xff\xff" + b"x"):
        with pytest.raises(ToolFailed) as refused:
            Assembler().add(head)
        assert refused.value.reason == "bad_message"
