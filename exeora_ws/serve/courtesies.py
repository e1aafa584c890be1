"""The answers that need no core: the two openings, `ping`, the prompts. Imports little."""

from exeora_ws.serve.messages import Unusual
from exeora_ws.serve.protocol import (
    INVALID_PARAMS,
    MODERN_VERSION,
    ProtocolError,
    complete,
    describe_abilities,
    describe_server,
)
from exeora_ws.serve.shapes import read_cursor, read_nothing, read_prompt_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from exeora_ws.serve.manual import Manual, Prompt
    from exeora_ws.serve.messages import Request
    from exeora_ws.serve.peer import Peer


class Courtesies:
    """Gives them.

    Args:
        manual: instructions and prompts.
        account: whether calls name their project.
    """

    def __init__(self, manual: "Manual", *, account: bool) -> None:
        self.manual = manual
        self._account = account

    def find_answer(self, request: "Request", peer: "Peer") -> "dict[str, Any] | None":
        """Answer a request of a client that was introduced; None where the core is needed.

        Raises:
            Unusual: the library must.
            ProtocolError: there is no such prompt.
        """
        match request.method:
            case "initialize":  # its parameters made the introduction
                return self._shake_hands(peer)
            case "ping" if not peer.modern:
                read_nothing(request.params)
                return {}
            case "server/discover" if peer.modern:
                read_nothing(request.params)
                return self._describe()
            case "prompts/list" if self.manual.prompts:
                read_cursor(request.params)
                answer = list_prompts(self.manual)
                return complete(answer, cacheable=True) if peer.modern else answer
            case "prompts/get" if self.manual.prompts:
                answer = get_prompt(self.manual, read_prompt_name(request.params), account=self._account)
                return complete(answer) if peer.modern else answer
            case "tools/list" | "tools/call":
                return None
        raise Unusual

    def _shake_hands(self, peer: "Peer") -> "dict[str, Any]":
        return self._instruct(
            {
                "protocolVersion": peer.version,
                "capabilities": describe_abilities(modern=False, prompts=bool(self.manual.prompts)),
                "serverInfo": describe_server(),
            }
        )

    def _describe(self) -> "dict[str, Any]":
        answer: dict[str, Any] = {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": describe_abilities(modern=True, prompts=bool(self.manual.prompts)),
        }
        return complete(self._instruct(answer), cacheable=True)

    def _instruct(self, answer: "dict[str, Any]") -> "dict[str, Any]":
        instructions = self.manual.instructions(self._account)
        return {**answer, "instructions": instructions} if instructions else answer


def list_prompts(manual: "Manual") -> "dict[str, Any]":
    """Answer `prompts/list`."""
    return {"prompts": [{"name": p.name, "title": p.title, "description": p.description} for p in manual.prompts]}


def get_prompt(manual: "Manual", name: str, *, account: bool) -> "dict[str, Any]":
    """Answer `prompts/get`.

    Raises:
        ProtocolError: there is no such prompt.
    """
    prompt = _require_prompt(manual, name)
    content = {"type": "text", "text": prompt.text(account)}
    return {"description": prompt.description, "messages": [{"role": "user", "content": content}]}


def _require_prompt(manual: "Manual", name: str) -> "Prompt":
    for prompt in manual.prompts:
        if prompt.name == name:
            return prompt
    raise ProtocolError(INVALID_PARAMS, f"there is no prompt {name[:100]!r}")
