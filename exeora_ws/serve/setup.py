"""How a server is entered into the clients that people use: lines and files to copy. Imports nothing of MCP."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

TOKEN_VARIABLE = "EXEORA_TOKEN"  # noqa: S105 - a name, not a secret
"""The environment variable that Cursor reads the token from."""


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """What one client needs.

    Args:
        client: its name.
        where: what is done with the text: `run`, or the file it goes into.
        text: a command line, or JSON.
    """

    client: str
    where: str
    text: str


def describe_http_setups(url: str, secret: str) -> list[ClientSetup]:
    """Give the set-up for an endpoint over HTTP. Only Claude Code's names the secret; the others ask for it.

    Args:
        url: the endpoint, `http://…/mcp` or `http://…/p/PROJECT/mcp`.
        secret: the token.
    """
    header = f"Authorization: Bearer {secret}"
    add = ["claude", "mcp", "add", "--transport", "http", "exeora", url, "--header", header]
    code = {
        "inputs": [{"type": "promptString", "id": "exeora-token", "description": "Token of exeora", "password": True}],
        "servers": {
            "exeora": {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${input:exeora-token}"}}
        },
    }
    cursor = {"mcpServers": {"exeora": {"url": url, "headers": {"Authorization": f"Bearer ${{env:{TOKEN_VARIABLE}}}"}}}}
    return [
        ClientSetup("Claude Code", "run", shlex.join(add)),
        ClientSetup("VS Code", ".vscode/mcp.json", _write(code)),
        ClientSetup("Cursor", ".cursor/mcp.json", _write(cursor)),
    ]


def _write(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2)
