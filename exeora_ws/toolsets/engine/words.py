"""What the engine's tools share: answers that are text, other names of arguments, paths as agents write them."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from exeora_ws.errors import ExeoraError
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Call
from exeora_ws.toolsets.wording import SnakeResult, make_relative

FilePath = Annotated[str, Meta(description="File, relative to the workspace root.")]
FolderPath = Annotated[str, Meta(description="Folder, relative to the workspace root.")]
LineNumber = Annotated[int, Meta(description="Line number, from 1.")]
_CONTAINER_ROOT = "/workspace"
_LINES = ("start_line", "end_line")


class Said(SnakeResult, frozen=True, kw_only=True):
    """A result that is text."""

    text: str
    notice: str | UnsetType = UNSET
    """What the turn has to say beside it: that the write phase has begun, what is still owed."""


def render_said(said: Said) -> str:
    """Give the text as it is, and what there is to notice after it."""
    return said.text if isinstance(said.notice, UnsetType) else join_notice(said.text, said.notice)


def join_notice(text: str, notice: str) -> str:
    """Put a notice after a text."""
    return f"{text}\n\n[{notice}]"


def render_failure(error: ExeoraError) -> str:
    """Word a failure as this toolset's agents expect it: it begins with Error."""
    reason = f" ({error.reason})" if error.reason else ""
    hint = f"\n{error.hint}" if error.hint else ""
    return f"Error: {error.code}{reason}: {error.message}{hint}"


def rename(**others: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Make a preparation that renames arguments (`other=name`); where both are given, the tool's own name wins.

    Line numbers that come as text become numbers.
    """

    def prepare(arguments: Mapping[str, Any]) -> dict[str, Any]:
        renamed = {others[name]: value for name, value in arguments.items() if name in others}
        own = {name: value for name, value in arguments.items() if name not in others}
        return {name: _read_number(name, value) for name, value in {**renamed, **own}.items()}

    return prepare


def _read_number(name: str, value: Any) -> Any:
    if name in _LINES and isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value


def place_path(call: Call[Any, Services], path: str) -> str:
    """Give the path that is meant, relative to the workspace root of the call."""
    return normalise_path(path, call.require_place().root)


def normalise_path(path: str, root: Path) -> str:
    """Take off what agents put before a path: blanks, the workspace root (also as `/workspace`), `workspace/`.

    What is outside stays so, and is refused by confinement.
    """
    bare = path.strip()
    if bare == _CONTAINER_ROOT or bare.startswith(_CONTAINER_ROOT + "/"):
        inside = make_relative(bare, root) if str(root).startswith(_CONTAINER_ROOT) else bare
        return inside if inside != bare else bare[len(_CONTAINER_ROOT) :].lstrip("/") or "."
    if bare.startswith("/"):
        return make_relative(bare, root)
    relative = bare.removeprefix("./")
    return relative.removeprefix("workspace/") or "." if relative.startswith("workspace/") else bare


def folder_of(path: str) -> str:
    """Give the folder that a path is in, as list_files takes it."""
    return os.path.dirname(path) or "."


def count(number: int, noun: str) -> str:
    """Give a number and its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
