"""What every change of a file goes through in a conversation: the stage's lane, and what was asked before."""

from typing import Any

from exeora_ws.files.spot import Spot
from exeora_ws.tools.files import make_reach
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Call, Hints
from exeora_ws.toolsets.engine.guards import Asked, refuse_binary_path
from exeora_ws.toolsets.engine.turn import Turn

CHANGES = Hints(read_only=False, destructive=True, idempotent=False, open_world=False)

GUARD_REASONS = {
    "binary_path": "the name promises a format that no text is",
    "escaped_fence": "a line of Markdown opens with an escaped code fence; the third time it is repaired",
    "another_stage": "another stage owes the file; after three such attempts the turn ends",
    "report_only": "a checking stage writes only what it owes",
    "not_owed": "in the write phase: not a file that is owed, while none of those is there",
}


def recall_turn(call: Call[Any, Services]) -> Turn:
    """Give the turn that a call belongs to."""
    return call.services.memory.recall(call.session, Turn)


def recall_asked(call: Call[Any, Services]) -> Asked:
    """Give what the conversation was already asked to think over."""
    return call.services.memory.recall(call.session, Asked)


def name_file(call: Call[Any, Services], path: str) -> tuple[str, str]:
    """Tell a file from those of other workspaces."""
    return call.require_place().workspace.id, path


def judge_lane(call: Call[Any, Services], spot: Spot) -> None:
    """Judge a change by where its path really leads: the lane and the phase.

    Raises:
        ToolFailed, Forbidden: as `Turn.judge_write`.
    """
    recall_turn(call).judge_write("/".join(spot.real))


def judge_write(call: Call[Any, Services], spot: Spot) -> None:
    """Judge a text that is to be written, by where its path really leads: also the format that its name promises.

    Raises:
        ToolFailed, Forbidden: as `judge_lane` and `refuse_binary_path`.
    """
    judge_lane(call, spot)
    refuse_binary_path("/".join(spot.real))


def is_there(call: Call[Any, Services], path: str) -> bool:
    """Whether anything is at a path that may be written."""
    with make_reach(call).locate_for_writing(path) as spot:
        return spot.stat is not None


def tell_repaired(repaired: bool) -> str:
    """Say that fences were repaired, if they were."""
    return " The escaped code fences were repaired." if repaired else ""
