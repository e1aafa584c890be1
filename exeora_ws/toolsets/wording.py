"""What toolsets share that answer in text of their own: the shape of the answer, and paths as agents write them."""

import os
from dataclasses import replace
from pathlib import Path

from exeora_ws.files.reading import TextRange, number_lines
from exeora_ws.files.sizes import count_json_bytes
from exeora_ws.limits import RESULT_TEXT_BYTES
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


def number_what_fits(got: TextRange, *, separator: str = "| ") -> tuple[str, TextRange]:
    """Number the lines of a range; of more than one answer holds, only the first, in whole lines.

    Gives also the range that is shown: numbers before short lines can be longer than the lines.
    """
    while (size := count_json_bytes(text := number_lines(got, separator=separator))) > RESULT_TEXT_BYTES:
        lines = got.content.split("\n")
        kept = max(1, len(lines) * RESULT_TEXT_BYTES // size - 1)
        content = "\n".join(lines[:kept]) + "\n"
        if len(content) >= len(got.content):
            break
        got = replace(got, content=content, truncated=True, next_line=got.first_line + kept, next_column=None)
    return text, got


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
