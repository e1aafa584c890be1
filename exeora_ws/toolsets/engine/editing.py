"""edit_file: text or lines of a file, replaced."""

from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from exeora_ws.errors import ExeoraError, InvalidArguments
from exeora_ws.files.editing import Edited, edit_file, encode_text, load_text, write_file
from exeora_ws.files.matching import count_lines
from exeora_ws.files.replacing import Replacement
from exeora_ws.tools.file_reasons import EDITS, NOT_A_FILE, PATHS, WRITES
from exeora_ws.tools.files import make_keeping, make_reach
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Call, Needs, Routing, Tool
from exeora_ws.toolsets.engine.guards import refuse_binary_path, settle_fences
from exeora_ws.toolsets.engine.lane import (
    CHANGES,
    GUARD_REASONS,
    is_there,
    judge_write,
    name_file,
    recall_asked,
    tell_repaired,
)
from exeora_ws.toolsets.engine.review import EditReview, whole_file_form
from exeora_ws.toolsets.engine.words import (
    FilePath,
    LineNumber,
    Said,
    count,
    place_path,
    rename,
    render_failure,
    render_said,
)
from exeora_ws.toolsets.wording import SnakeArguments


class EditArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of edit_file."""

    path: FilePath
    search: Annotated[str, Meta(description="Text to find; empty to create a file, or to replace whole lines.")]
    replace: Annotated[str, Meta(description="Text to put there.")]
    start_line: LineNumber | UnsetType = UNSET
    end_line: LineNumber | UnsetType = UNSET


def _edit_file(call: Call[EditArguments, Services]) -> Said:
    asked, path = call.arguments, place_path(call, call.arguments.path)
    refuse_binary_path(path)
    replace, repaired = settle_fences(recall_asked(call), name_file(call, path), path, asked.replace)
    if not asked.search and not is_there(call, path):
        return _create(call, path, replace, repaired)
    edit = _read_edit(asked, replace)
    review = EditReview(path, edit)
    judge = partial(judge_write, call)
    try:
        done = edit_file(make_reach(call), path, edit, make_keeping(call), judge=judge, review=review)
    except ExeoraError as error:
        raise _explain(call, path, edit, error) from error
    return Said(text=_tell_edit(done, review) + tell_repaired(repaired))


def _create(call: Call[EditArguments, Services], path: str, content: str, repaired: bool) -> Said:
    judge = partial(judge_write, call)
    done = write_file(make_reach(call), path, content, make_keeping(call), only_new=True, judge=judge)
    return Said(text=f"Created {done.path}: {count(done.bytes_written, 'byte')}." + tell_repaired(repaired))


def _read_edit(asked: EditArguments, replace: str) -> Replacement:
    """Work out the range: an end alone begins at line 1; a start alone is that line or, with a search, all from it."""
    first = None if isinstance(asked.start_line, UnsetType) else asked.start_line
    last = None if isinstance(asked.end_line, UnsetType) else asked.end_line
    if first is None and last is not None:
        first = 1
    if not asked.search and last is None:
        last = first
    return Replacement(asked.search, replace, every=True, loose=True, first_line=first, last_line=last)


def _explain(call: Call[Any, Services], path: str, edit: Replacement, error: ExeoraError) -> ExeoraError:
    """Put into this toolset's words what an edit that failed could do next."""
    if error.reason == "empty_old_text":
        total = count_lines(_load(call, path))
        return InvalidArguments(
            f"{path}: is there already, and an empty search names no place in it",
            reason="empty_old_text",
            hint=f"give start_line and end_line; to replace the whole file: {whole_file_form(total)}",
        )
    if error.reason not in ("no_match", "invalid_range"):
        return error
    data = _load(call, path)
    out_of_bounds = error.reason == "invalid_range"
    if not out_of_bounds and 2 * len(encode_text(edit.old, "search")) < len(data):
        return error
    hint = f"{error.hint}; " if error.hint else ""
    hint += f"to replace the whole file: {whole_file_form(count_lines(data))}"
    return type(error)(error.message, reason=error.reason, hint=hint, data=error.data)


def _load(call: Call[Any, Services], path: str) -> bytes:
    with make_reach(call).locate_for_reading(path) as spot:
        return load_text(spot)


def _tell_edit(done: Edited, review: EditReview) -> str:
    edit = review.edit
    if edit.old:
        lines = review.name_lines() + (", …" if done.replacements > len(review.lines) else "")
        text = f"Edited {done.path}: {count(done.replacements, 'place')} replaced, on line {lines}."
        text += " White space differed." if done.loose else ""
    else:
        last = min(edit.last_line or 1, max(review.total, 1))
        text = f"Edited {done.path}: lines {edit.first_line} to {last} replaced."
    if edit.last_line is not None and edit.last_line > review.total:
        text += f" The file had {count(review.total, 'line')}, so end_line {edit.last_line} meant the last."
    return text


EDIT_FILE = Tool(
    name="edit_file",
    title="Edit a file",
    description=(
        "Change part of a file; it reads the file itself, so no read_file is needed before. `search` is matched "
        "exactly, else line by line without regard to white space where that is one place. Every match is replaced. "
        "start_line and end_line confine the search; with an empty search they name the lines to replace (start_line "
        "alone: that line), and line 1 to the last is the whole file. An empty search for a file that is not there "
        "creates it. A miss names the nearest lines."
    ),
    arguments=EditArguments,
    result=Said,
    hints=CHANGES,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_edit_file,
    reasons={
        **PATHS,
        **NOT_A_FILE,
        **WRITES,
        **EDITS,
        **GUARD_REASONS,
        "invalid_range": "no such lines; `data.totalLines` says how many there are",
        "repeated_replacement": "many matches times a long replacement: the document over and over",
        "doubled_document": "the replacement begins as the file does: the document twice",
    },
    prepare=rename(file_path="path", find="search"),
    render=render_said,
    render_error=render_failure,
)
