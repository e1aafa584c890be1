"""What a server says about itself: the instructions of the handshake and the prompts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from exeora_ws.skills.prompt import PROMPT_NAME, agent_prompt, handshake_instructions
from exeora_ws.tools.call import Scope

Text = Callable[[Scope], str]
"""Gives a text for what a connection may reach."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt of `prompts/list`; it takes no arguments."""

    name: str
    title: str
    description: str
    text: Text


def _no_text(_scope: Scope) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Manual:
    """Instructions, a few sentences, and prompts. An empty text of instructions is not sent."""

    instructions: Text = field(default=_no_text)
    prompts: Sequence[Prompt] = ()


HOUSE_MANUAL = Manual(
    instructions=lambda scope: handshake_instructions(account=scope.account),
    prompts=(
        Prompt(
            PROMPT_NAME,
            "Coding agent",
            "How to work on this machine with these tools: workspaces, limits, and what a refusal means.",
            lambda scope: agent_prompt(account=scope.account),
        ),
    ),
)
"""That of the default toolset."""
