"""What the account allows, who may come in, who is asked, and what is written down."""

import json

import anyio
import mcp_types as mcp
import pytest

from support.gateway import eventually, find_error, find_result, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def set_policy(world):
    """Set the account's policy; it is open again afterwards."""
    yield lambda text: _set(world, text)
    _set(world, "")


def _set(world, text):
    done = world.fleet.run("gateway", "policy", "set", "-", stdin=text)
    assert done.code == 0, done.err


class Person:
    """Answers what the client shows, and remembers it."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, _context, params):
        self.asked.append(params.message)
        answer = self.answers.pop(0)
        if isinstance(answer, bool):
            return mcp.ElicitResult(action="accept", content={"confirm": answer})
        return mcp.ElicitResult(action=answer)


async def test_the_accounts_policy_refuses_at_the_gateway_and_hides_what_it_does_not_offer(world, set_policy, era):
    set_policy('deny = ["sudo"]\ntools = ["run_command", "read_file"]\n')
    root = world.projects["one"]["web"].root
    async with world.gateway.connect(era, world.secret, "/p/web/mcp") as client:
        await until_async(lambda: _names(client), {"run_command", "read_file", "get_agent_prompt"})
        denied = find_error(await client.call_tool("run_command", {"command": "sudo touch denied.txt"}))
        hidden = find_error(await client.call_tool("write_file", {"path": "hidden.txt", "content": "x"}))
        done = find_result(await client.call_tool("run_command", {"command": "touch allowed.txt"}))
    assert (denied["code"], denied["reason"]) == ("FORBIDDEN", "denied")
    assert (hidden["code"], hidden["reason"]) == ("FORBIDDEN", "tool_not_permitted")
    assert done["exitCode"] == 0
    assert not (root / "denied.txt").exists()
    assert not (root / "hidden.txt").exists()
    # It was refused before it was sent: the machine has no record of it.
    log = world.host("one").exeora("--project", "web", "logs", "--json").document["entries"]
    assert "FORBIDDEN" not in [entry["outcome"] for entry in log[-2:]]


async def test_a_machine_goes_by_the_accounts_policy_too_whoever_sends_the_call(world, set_policy):
    """The second check: an envelope that no gateway has judged is judged on the machine by the policy it carries."""
    from exeora_ws.errors import Forbidden
    from exeora_ws.fleet.buckets import Bucket
    from exeora_ws.fleet.dispatch import Machines
    from exeora_ws.fleet.documents import unpack_project
    from exeora_ws.fleet.permissions import INVENTORY_BUCKET
    from exeora_ws.fleet.remote import Sending
    from exeora_ws.tools.call import Caller, Face, Scope

    project = world.projects["one"]["web"]
    with world.fleet.connected() as (lines, now_ms):
        machines = Machines(lines.calls, world.fleet.gateway_id, now_ms, lambda: 'deny = ["sudo"]\n')
        machines.open()
        entry = Bucket(lines.state, INVENTORY_BUCKET).find(f"{world.one.id}.{project.id}")
        record = unpack_project(entry.value)
        command = {"command": "sudo touch second.txt"}
        sending = Sending(world.one.id, record.instance, project.id, "run_command", command, None, 20)
        with pytest.raises(Forbidden) as refused:
            machines.call(sending, Caller(Face.HTTP, "test", "session-1", Scope(bound=project.id)))
        machines.close()
    assert refused.value.reason == "denied"
    assert not (project.root / "second.txt").exists()


async def test_the_projects_own_policy_is_judged_on_its_machine_and_hides_tools_at_the_gateway(world, era):
    root = world.projects["one"]["web"].root
    (root / "exeora.toml").write_text('mode = "read_only"\n')
    try:
        async with world.gateway.connect(era, world.secret, "/p/web/mcp") as client:
            await until_async(lambda: _lacks(client, "write_file"), True)
            refused = find_error(await client.call_tool("write_file", {"path": "no.txt", "content": "x"}))
            assert (refused["code"], refused["reason"]) == ("FORBIDDEN", "read_only")
            assert "mcp__plain__echo" not in await _names(client)
            assert "mcp__plain__where" in await _names(client)
    finally:
        (root / "exeora.toml").unlink()
    async with world.gateway.connect(era, world.secret, "/p/web/mcp") as client:
        await until_async(lambda: _lacks(client, "write_file"), False)


async def test_a_person_is_asked_through_the_gateway_in_the_way_of_the_clients_era(world, set_policy, era):
    set_policy("approve = true\n")
    root = world.projects["one"]["web"].root
    written = root / f"asked-{era}"
    person = Person(True, False, "decline")
    async with world.gateway.connect(era, world.secret, "/p/web/mcp", elicitation_callback=person) as client:
        await until_async(lambda: _asks(client, person, written), True)
        for _ in range(2):
            refused = find_error(await client.call_tool("run_command", {"command": f"echo no > {written.name}"}))
            assert refused["code"] == "APPROVAL_DECLINED"
    assert written.read_text() == "yes\n"
    assert len(person.asked) == 3
    assert f"echo yes > {written.name}" in person.asked[0]
    async with world.gateway.connect(era, world.secret, "/p/web/mcp") as client:
        nobody = find_error(await client.call_tool("run_command", {"command": f"echo no > {written.name}"}))
    assert (nobody["code"], nobody["reason"]) == ("FORBIDDEN", "nobody_to_ask")
    assert written.read_text() == "yes\n"


async def _asks(client, person, written):
    if not person.asked:
        found = await client.call_tool("run_command", {"command": f"echo yes > {written.name}"})
        assert not found.is_error, found.structured_content
    return bool(person.asked)


async def test_a_revoked_token_ends_its_sessions_within_a_second_at_every_gateway(world):
    secret = world.fleet.make_token()
    first, second = world.gateways
    async with first.connect("legacy", secret) as one, second.connect("legacy", secret) as two:
        started = find_result(await one.call_tool("start_command", {"project": "web", "command": "sleep 60"}))
        find_result(await two.call_tool("list_projects", {}))
        assert world.fleet.run("gateway", "token", "revoke", secret).code == 0
        with anyio.fail_after(2.5):
            for client in (one, two):
                while True:
                    try:
                        await client.call_tool("list_projects", {})
                    except Exception:  # noqa: BLE001 - whichever way the client says that it is refused
                        break
                    await anyio.sleep(0.05)
    await until(lambda: not _runs(started["pid"]))


def _runs(pid):
    from support.upstream_world import is_running

    return is_running(pid)


async def test_a_token_reaches_what_it_was_granted_and_no_more(world, era):
    done = world.fleet.run("gateway", "token", "create", "--project", "app-two", "--read-only", "--json")
    document = done.document
    assert document["token"]["projects"] == ["app-two"]
    secret = document["secret"]
    async with world.gateway.connect(era, secret, "/p/app-two/mcp") as client:
        refused = find_error(await client.call_tool("write_file", {"path": "x.txt", "content": "x"}))
        assert refused["reason"] == "token_read_only"
        find_result(await client.call_tool("read_file", {"path": "README.md"}))
    with pytest.raises(BaseException):  # noqa: B017, PT011 - the client's own, a group of them
        async with world.gateway.connect(era, secret, "/p/app/mcp") as client:
            await client.list_tools()


async def test_every_call_is_written_down_before_it_is_sent_and_after(world, era):
    async with world.gateway.connect(era, world.secret, "/p/app/mcp") as client:
        await client.call_tool("read_file", {"path": "README.md"})
        await client.call_tool("read_file", {"path": "secret-name.txt"})
    entries = eventually(lambda: _read_audit(world))
    assert [entry["outcome"] for entry in entries] == ["OK", "PATH_NOT_FOUND"]
    assert {entry["tool"] for entry in entries} == {"read_file"}
    assert {entry["project"] for entry in entries} == {"app"}
    assert {entry["workspace"] for entry in entries} == {"main"}
    assert all(entry["durationMs"] >= 0 for entry in entries)
    assert "secret-name" not in json.dumps(entries)


def _read_audit(world):
    entries = world.fleet.run("gateway", "audit", "--json", "-n", "2").document["entries"]
    return entries if all(entry["outcome"] for entry in entries) else None


async def _names(client):
    return {tool.name for tool in (await client.list_tools()).tools}


async def _lacks(client, tool):
    return tool not in await _names(client)


async def until_async(look, wanted, seconds=8.0):
    with anyio.fail_after(seconds):
        while True:
            found = await look()
            if isinstance(found, set):
                found = {name for name in found if not name.startswith("mcp__")}
            if found == wanted:
                return
            await anyio.sleep(0.05)
