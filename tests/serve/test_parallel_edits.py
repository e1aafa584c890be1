"""Case 24: twenty edits of distinct lines of one file at once, through real servers and the SDK's client."""

from pathlib import Path

import anyio
import pytest

pytestmark = pytest.mark.anyio

COUNT = 20


def fill(top: Path) -> Path:
    file = top / "lines.txt"
    file.write_bytes(b"\xef\xbb\xbf" + b"".join(b"line %02d\r\n" % number for number in range(COUNT)))
    return file


async def edit_all(clients) -> list[str]:
    """Edit every line at once, over several connections in turn; gives the reasons of those that were told no."""
    told: list[str] = []

    async def edit(client, number: int) -> None:
        arguments = {"path": "lines.txt", "oldString": f"line {number:02}\n", "newString": f"done {number:02}\n"}
        answer = await client.call_tool("edit_file", arguments)
        if answer.is_error:
            told.append(f"{number}: {answer.structured_content['error'].get('reason')}")

    async with anyio.create_task_group() as edits:
        for number in range(COUNT):
            edits.start_soon(edit, clients[number % len(clients)], number)
    return told


def require_done(file: Path) -> None:
    assert file.read_bytes() == b"\xef\xbb\xbf" + b"".join(b"done %02d\r\n" % number for number in range(COUNT))


async def test_over_stdio_from_two_servers(connect_stdio, project, era):
    file = fill(project.root)
    async with connect_stdio(era, project.slug) as one, connect_stdio(era, project.slug) as other:
        assert await edit_all([one, other]) == []
    require_done(file)


async def test_over_http_from_two_connections(site, era):
    project = site.app.inventory.require_project("alpha")
    file, secret = fill(project.root), site.make_token(projects=[project.id])
    async with site.connect(era, secret, "/p/alpha/mcp") as one, site.connect(era, secret, "/p/alpha/mcp") as other:
        assert await edit_all([one, other]) == []
    require_done(file)
