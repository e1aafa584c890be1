"""Three nats-servers as one, of which one is killed: the inventory and the calls go on by the other two."""

import anyio
import pytest

from support.gateway import Fleet, add_project, find_result, own_environment, until_true

pytestmark = pytest.mark.anyio


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet(tmp_path, servers=3)
    try:
        yield fleet
    finally:
        fleet.close()


async def test_a_cluster_that_loses_a_server_serves_on(fleet):
    host = fleet.make_host("one")
    with own_environment(host.environment):
        project = add_project(host, "app")
    gateway = await anyio.to_thread.run_sync(fleet.start_gateway)
    machine = await anyio.to_thread.run_sync(fleet.start_machine, "one", fleet.add_machine("one"))
    secret, answers = fleet.make_token(), []
    async with gateway.connect("2026-07-28", secret) as client:

        async def listed():
            return bool(find_result(await client.call_tool("list_projects", {}))["projects"])

        async def runs():
            answer = await client.call_tool("run_command", {"command": f"echo {len(answers)} >> calls.txt"})
            answers.append(answer.structured_content)
            return not answer.is_error

        await until_true(listed)
        for _ in range(3):
            assert await runs(), answers
        # The worst to lose: it leads the stream of the audit, without which no call is made.
        number = await anyio.to_thread.run_sync(fleet.find_leader)
        fleet.kill_server(number)
        before = len(answers)
        await until_true(runs, 40)
        await until_true(listed, 20)
        failed = [answer["error"] for answer in answers[before:] if "error" in answer]
        assert {(each["code"], each["reason"]) for each in failed} <= {
            ("LOCAL_EXECUTOR_OFFLINE", "machine_offline"),
            ("LOCAL_EXECUTOR_OFFLINE", "connection_lost"),
            ("LOCAL_EXECUTOR_OFFLINE", "fleet_unreachable"),
            ("FORBIDDEN", "audit_unwritable"),
        }
        fleet.start_server(number)
        await until_true(runs)
    ran = [int(line) for line in (project.root / "calls.txt").read_text().split()]
    assert len(ran) == len(set(ran)), "a call ran twice"
    done = {number for number, answer in enumerate(answers) if "error" not in answer}
    assert done <= set(ran)
    assert machine.end() == 0
