"""Ready lines for MCP clients of the HTTP server, with the token where it is known."""

import json
from collections.abc import Mapping
from typing import Any

VARIABLE = "EXEORA_TOKEN"
"""Where a client is to find a token that we cannot show."""


def make_snippets(url: str, secret: str | None) -> dict[str, Any]:
    """Give what to type, or to write into which file: `claudeCode`, `vscode`, `cursor`.

    Args:
        url: the endpoint.
        secret: the token; without it, clients read the variable `EXEORA_TOKEN`. VS Code asks for it in any case, since
            its file is usually committed.
    """
    return {
        "claudeCode": (
            f'claude mcp add --transport http exeora {url} --header "Authorization: Bearer {secret or f"${VARIABLE}"}"'
        ),
        "vscode": {
            "inputs": [{"type": "promptString", "id": "exeora-token", "description": "Exeora token", "password": True}],
            "servers": {
                "exeora": {"type": "http", "url": url, "headers": _bearer("${input:exeora-token}")},
            },
        },
        "cursor": {"mcpServers": {"exeora": {"url": url, "headers": _bearer(secret or f"${{env:{VARIABLE}}}")}}},
    }


def show_snippets(snippets: Mapping[str, Any]) -> list[str]:
    """Set them for a person to copy."""
    return [
        "Claude Code:",
        f"  {snippets['claudeCode']}",
        "VS Code, .vscode/mcp.json (asks for the token once):",
        f"  {json.dumps(snippets['vscode'])}",
        "Cursor, ~/.cursor/mcp.json:",
        f"  {json.dumps(snippets['cursor'])}",
    ]


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
