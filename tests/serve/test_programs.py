"""The small misbehaving programs over stdio, by the SDK's client: each answers in time and leaves nothing running."""

import os
import time

import anyio
import pytest

from support.processes import PROGRAMS, eventually

pytestmark = pytest.mark.anyio

ASKED_SECONDS = 5.0
"""Far below the 300 s that the children sleep, and above what a busy machine adds."""


def running(marker: str) -> list[int]:
    """Pids whose environment carries the marker: only what the server's commands have started does."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/environ", "rb") as stream:
                    if marker.encode() in stream.read():
                        found.append(int(name))
            except OSError:
                continue
    return found


def line(program: str) -> str:
    return f"MARK=x {PROGRAMS / program}"


async def run(client, command: str, **arguments: object) -> dict:
    answer = await client.call_tool("run_command", {"command": command, **arguments})
    assert not answer.is_error, answer.structured_content
    return answer.structured_content


@pytest.fixture
def mark(project):
    """What the commands of this test carry, and nothing else does."""
    return f"EXEORA_WORKSPACE_PATH={project.root}"


async def test_what_a_command_leaves_is_reported_and_ended(connect_stdio, project, mark, era):
    async with connect_stdio(era, project.slug) as client:
        for program in ("holds_pipe.sh", "holds_stderr.sh", "sets_session.sh", "forks_twice.py"):
            started = time.monotonic()
            result = await run(client, line(program))
            assert time.monotonic() - started < ASKED_SECONDS, program
            assert result["stdout"].strip(), program
            assert result["exitCode"] == 0
            assert len(result["backgroundProcesses"]) >= 1, program
            assert eventually(lambda: running(mark) == []), program


async def test_a_timeout_ends_the_whole_tree(connect_stdio, project, mark, era):
    async with connect_stdio(era, project.slug) as client:
        for program in ("ignores_term.sh", "floods.sh", "forks_when_asked_to_end.py"):
            result = await run(client, line(program), timeoutMs=1_000)
            assert result["timedOut"] is True
            assert result["exitCode"] is None
            assert result["truncated"] is (program == "floods.sh")
            assert eventually(lambda: running(mark) == []), program


async def test_codes_and_characters_arrive_whole(connect_stdio, project, era):
    async with connect_stdio(era, project.slug) as client:
        late = await run(client, line("exits_late.sh"))
        assert (late["exitCode"], late["stdout"]) == (7, "early\nlate\n")
        euro = await run(client, line("prints_euro.py"))
        assert "€" in euro["stdout"]
        assert "\ufffd" not in euro["stdout"]


async def test_a_question_is_answered(connect_stdio, project, era):
    async with connect_stdio(era, project.slug) as client:
        started = await client.call_tool("start_command", {"command": line("asks.sh")})
        process = started.structured_content["processId"]
        await client.call_tool("send_command_input", {"processId": process, "data": "Ada"})
        text, cursor = "", 0
        with anyio.fail_after(20):
            while True:
                arguments = {"processId": process, "cursor": cursor, "waitMs": 5_000}
                output = (await client.call_tool("get_command_output", arguments)).structured_content
                text, cursor = text + output["chunk"], output["nextCursor"]
                if not output["running"]:
                    break
        assert "hello Ada" in text
        assert output["exitCode"] == 0


async def test_input_that_nobody_reads_blocks_nothing(connect_stdio, project, mark, era):
    async with connect_stdio(era, project.slug) as client:
        started = await client.call_tool("start_command", {"command": line("never_reads.sh")})
        process = started.structured_content["processId"]

        async def flood() -> None:
            sent = await client.call_tool("send_command_input", {"processId": process, "data": "x" * 300_000})
            told = sent.structured_content
            assert told.get("bytesWritten", told.get("error", {}).get("data", {}).get("bytesWritten")) < 300_001

        async with anyio.create_task_group() as beside:
            beside.start_soon(flood)
            with anyio.fail_after(ASKED_SECONDS):
                assert (await run(client, "echo free"))["stdout"] == "free\n"
        await client.call_tool("kill_command", {"processId": process})
        assert eventually(lambda: running(mark) == [])


async def test_the_end_of_the_connection_ends_what_it_started(connect_stdio, project, mark, era):
    async with connect_stdio(era, project.slug) as client:
        for program in ("never_reads.sh", "ignores_term.sh"):
            await client.call_tool("start_command", {"command": line(program)})
        assert running(mark) != []
    assert eventually(lambda: running(mark) == [], 10)
