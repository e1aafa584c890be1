"""One step of a patch, as a value."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from exeora_ws.files.hunks import Hunk

OperationType = Literal["create", "update", "replace", "delete", "move"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of a patch.

    Args:
        type: what it does.
        path: the file it does it to.
        content: the whole content, for create and replace; for delete what the file must hold, if that is known.
        hunks: what to change, for update.
        to: the new path, for move.
    """

    type: OperationType
    path: str
    content: str | None = None
    hunks: "tuple[Hunk, ...]" = ()
    to: str | None = None
