"""What a server says about itself: the instructions of the handshake and the prompts. Imports little."""

from exeora_ws.skills.prompt import PROMPT_NAME, agent_prompt, handshake_instructions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Text = Callable[[bool], str]
    """Gives a text, told whether a call has to name its project."""


class Prompt:
    """One prompt of `prompts/list`; it takes no arguments."""

    __slots__ = ("description", "name", "text", "title")

    def __init__(self, name: str, title: str, description: str, text: "Text") -> None:
        self.name = name
        self.title = title
        self.description = description
        self.text = text


class Manual:
    """Instructions, a few sentences, and prompts. An empty text of instructions is not sent."""

    __slots__ = ("instructions", "prompts")

    def __init__(self, instructions: "Text" = lambda _account: "", prompts: "Sequence[Prompt]" = ()) -> None:
        self.instructions = instructions
        self.prompts = prompts


HOUSE_MANUAL = Manual(
    instructions=lambda account: handshake_instructions(account=account),
    prompts=(
        Prompt(
            PROMPT_NAME,
            "Coding agent",
            "How to work on this machine with these tools: workspaces, limits, and what a refusal means.",
            lambda account: agent_prompt(account=account),
        ),
    ),
)
"""That of the default toolset."""
