"""What toolsets share that answer in text of their own: the shape of the answer, and paths as agents write them."""

import os
from pathlib import Path

from exeora_ws.tools.spec import Arguments, Result


class SnakeArguments(Arguments, frozen=True, kw_only=True, rename=str):
    """Base of arguments whose names are snake_case outside too."""


class SnakeResult(Result, frozen=True, kw_only=True, rename=str):
    """Base of results whose names are snake_case outside too."""


class Text(SnakeResult, frozen=True, kw_only=True):
    """A result that is text."""

    text: str


def render_text(result: Text) -> str:
    """Give the text itself."""
    return result.text


def make_relative(path: str, root: Path) -> str:
    """Make an absolute path that really lies in the workspace relative to it; any other path stays as it is.

    Confinement is not decided here: it judges what this gives.
    """
    if not path.startswith("/"):
        return path
    for candidate in (os.path.normpath(path), os.path.realpath(path)):
        if candidate == str(root):
            return "."
        if candidate.startswith(f"{root}/"):
            return candidate[len(str(root)) + 1 :] + ("/" if path.endswith("/") else "")
    return path
