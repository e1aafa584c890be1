"""What people copy into their clients."""

import json
import re
import shlex
from pathlib import Path

from exeora_ws.serve.setup import describe_http_setups

DOCS = Path(__file__).parents[2] / "docs" / "clients.md"
URL = "http://127.0.0.1:7373/mcp"


def test_each_client_gets_what_it_reads():
    setups = {s.client: s for s in describe_http_setups(URL, "exo_secret")}
    assert shlex.split(setups["Claude Code"].text)[-1] == "Authorization: Bearer exo_secret"
    for client, key in (("VS Code", "servers"), ("Cursor", "mcpServers")):
        assert json.loads(setups[client].text)[key]["exeora"]["url"] == URL
        assert "exo_secret" not in setups[client].text


def test_the_page_says_the_same():
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCS.read_text(), re.DOTALL)]
    for setup in describe_http_setups(URL, "exo_secret")[1:]:
        assert json.loads(setup.text) in blocks, setup.client
