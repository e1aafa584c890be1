"""Words of the protocol, as our own code uses them beside the library. Imports nothing.

A test holds them equal to the library's.
"""

from exeora_ws import __version__

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_HANDSHAKE_VERSION = HANDSHAKE_VERSIONS[-1]
MODERN_VERSION = "2026-07-28"
"""The revision without a handshake: every request says who sends it."""
FIRST_ELICITATION_VERSION = "2025-06-18"

RESERVED = "io.modelcontextprotocol/"
VERSION_KEY = RESERVED + "protocolVersion"
CLIENT_KEY = RESERVED + "clientInfo"
CAPABILITIES_KEY = RESERVED + "clientCapabilities"
SERVER_KEY = RESERVED + "serverInfo"

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CONNECTION_CLOSED = -32000

NAME = "exeora"
TITLE = "Exeora Workspaces"


class ProtocolError(Exception):
    """An error of JSON-RPC, for whoever writes the answer.

    Args:
        code: its number.
        message: one sentence.
        data: further facts, or None.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def describe_server() -> "dict[str, object]":
    """Say who we are."""
    return {"name": NAME, "title": TITLE, "version": __version__}


def describe_abilities(*, modern: bool, prompts: bool) -> "dict[str, object]":
    """Say what we can do. In the later era a client that listens is told of every kind of change."""
    tools: dict[str, object] = {"tools": {"listChanged": True}}
    return {**tools, "prompts": {"listChanged": modern}} if prompts else tools


def complete(answer: "dict[str, object]", *, cacheable: bool = False) -> "dict[str, object]":
    """Put around an answer what the later era wants there."""
    answer.setdefault("resultType", "complete")
    if cacheable:
        answer |= {"ttlMs": 0, "cacheScope": "private"}
    meta = answer.get("_meta")
    answer["_meta"] = {SERVER_KEY: describe_server(), **(meta if isinstance(meta, dict) else {})}
    return answer
