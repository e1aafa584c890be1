"""Tools that change files: write_file, edit_file, revert_file, each behind its guards and the stage's lane."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from exeora_ws.errors import ExeoraError, InvalidArguments, ToolFailed
from exeora_ws.files.editing import Edited, edit_file, encode_text, load_text, revert_file, write_file
from exeora_ws.files.matching import count_lines, find_line, find_line_span
from exeora_ws.files.replacing import Replaced, Replacement
from exeora_ws.files.spot import Spot
from exeora_ws.tools.file_reasons import EDITS, NOT_A_FILE, PATHS, WRITES
from exeora_ws.tools.files import make_keeping, make_reach
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Call, Hints, Needs, Routing, Tool
from exeora_ws.toolsets.engine.guards import Asked, question_rewrite, refuse_binary_path, settle_fences
from exeora_ws.toolsets.engine.turn import Turn
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

_LINES_NAMED = 20
_SWELLING = 4
"""How many times the lines of the search a replacement may have that begins with the file's own first line."""


class WriteArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of write_file."""

    path: FilePath
    content: Annotated[str, Meta(description="Everything that the file shall hold.")]


class EditArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of edit_file."""

    path: FilePath
    search: Annotated[str, Meta(description="Text to find; empty to create a file, or to replace whole lines.")]
    replace: Annotated[str, Meta(description="Text to put there.")]
    start_line: LineNumber | UnsetType = UNSET
    end_line: LineNumber | UnsetType = UNSET


class RevertArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of revert_file."""

    path: FilePath


def _turn(call: Call[Any, Services]) -> Turn:
    return call.services.memory.recall(call.session, Turn)


def _asked(call: Call[Any, Services]) -> Asked:
    return call.services.memory.recall(call.session, Asked)


def _key(call: Call[Any, Services], path: str) -> tuple[str, str]:
    return call.require_place().workspace.id, path


def _judge_lane(call: Call[Any, Services], spot: Spot) -> None:
    _turn(call).judge_write("/".join(spot.real))


def _write_file(call: Call[WriteArguments, Services]) -> Said:
    path = place_path(call, call.arguments.path)
    refuse_binary_path(path)
    content, repaired = settle_fences(_asked(call), _key(call, path), path, call.arguments.content)

    def judge(spot: Spot) -> None:
        _judge_lane(call, spot)
        real = "/".join(spot.real)
        owed = _turn(call).owes_words(real)
        question_rewrite(_asked(call), _key(call, real), spot, content, words_owed=owed)

    done = write_file(make_reach(call), path, content, make_keeping(call), judge=judge)
    text = f"{'Created' if done.created else 'Overwrote'} {done.path}: {count(done.bytes_written, 'byte')}."
    return Said(text=text + _tell_repaired(repaired))


def _tell_repaired(repaired: bool) -> str:
    return " The escaped code fences were repaired." if repaired else ""


def _edit_file(call: Call[EditArguments, Services]) -> Said:
    asked, path = call.arguments, place_path(call, call.arguments.path)
    refuse_binary_path(path)
    replace, repaired = settle_fences(_asked(call), _key(call, path), path, asked.replace)
    if not asked.search and not _is_there(call, path):
        return _create(call, path, replace, repaired)
    edit = _read_edit(asked, replace)
    review = _Review(path, edit)
    judge = partial(_judge_lane, call)
    try:
        done = edit_file(make_reach(call), path, edit, make_keeping(call), judge=judge, review=review)
    except ExeoraError as error:
        raise _explain(call, path, edit, error) from error
    return Said(text=_tell_edit(done, review) + _tell_repaired(repaired))


def _is_there(call: Call[Any, Services], path: str) -> bool:
    with make_reach(call).locate_for_writing(path) as spot:
        return spot.stat is not None


def _create(call: Call[EditArguments, Services], path: str, content: str, repaired: bool) -> Said:
    judge = partial(_judge_lane, call)
    done = write_file(make_reach(call), path, content, make_keeping(call), only_new=True, judge=judge)
    return Said(text=f"Created {done.path}: {count(done.bytes_written, 'byte')}." + _tell_repaired(repaired))


def _read_edit(asked: EditArguments, replace: str) -> Replacement:
    """Work out the range: an end alone begins at line 1; a start alone is that line or, with a search, all from it."""
    first = None if isinstance(asked.start_line, UnsetType) else asked.start_line
    last = None if isinstance(asked.end_line, UnsetType) else asked.end_line
    if first is None and last is not None:
        first = 1
    if not asked.search and last is None:
        last = first
    return Replacement(asked.search, replace, every=True, loose=True, first_line=first, last_line=last)


@dataclass
class _Review:
    """Looks at an edit before it is written, and keeps what is to be told of it."""

    path: str
    edit: Replacement
    total: int = 0
    lines: tuple[int, ...] = ()

    def __call__(self, data: bytes, done: Replaced) -> None:
        self.total = count_lines(data)
        self.lines = tuple(find_line(data, span.start) for span in done.spans[:_LINES_NAMED])
        if not self.edit.old:
            return
        if done.loose and done.count > 1:
            raise self._refuse_loose(done)
        if done.count > 1:
            self._refuse_repeating(data, done)
        else:
            self._refuse_doubling(data, done)

    def _refuse_loose(self, done: Replaced) -> ToolFailed:
        return ToolFailed(
            f"{self.path}: but for white space the search stands there {done.count} times, on lines {self._name()}",
            reason="ambiguous_match",
            hint="copy one of them exactly, or give start_line and end_line",
            data={"lines": list(self.lines), "matches": done.count},
        )

    def _refuse_repeating(self, data: bytes, done: Replaced) -> None:
        inserted = len(encode_text(self.edit.new, "replace")) * done.count
        edited = len(data)
        if self.edit.first_line is not None:
            last = self.edit.last_line if self.edit.last_line is not None else self.total
            span = find_line_span(data, self.edit.first_line, last)
            edited = span.end - span.start
        if inserted > edited:
            raise ToolFailed(
                f"{self.path}: the search stands there {done.count} times, on lines {self._name()}, and replacing all "
                f"would put in {inserted} bytes where {edited} are edited: the replacement over and over",
                reason="repeated_replacement",
                hint="include more of the lines around the one that is meant, or give start_line and end_line",
                data={"lines": list(self.lines), "matches": done.count},
            )

    def _refuse_doubling(self, data: bytes, done: Replaced) -> None:
        opening = data.split(b"\n", 1)[0].strip()
        new = encode_text(self.edit.new, "replace")
        swells = count_lines(new) > _SWELLING * max(1, count_lines(encode_text(self.edit.old, "search")))
        (span,) = done.spans
        rest = data[: span.start] + data[span.end :]
        if opening and new.split(b"\n", 1)[0].strip() == opening and swells and rest.strip():
            raise ToolFailed(
                f"{self.path}: the replacement begins as the file does and is much longer than the search: the file "
                "would hold its text twice",
                reason="doubled_document",
                hint=f"to replace the whole file: {whole_file_form(self.total)}",
                data={"totalLines": self.total},
            )

    def _name(self) -> str:
        return ", ".join(map(str, self.lines))


def whole_file_form(total: int) -> str:
    """Say how a whole file is replaced."""
    return f"edit_file with an empty search, start_line 1 and end_line {max(total, 1)}"


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


def _tell_edit(done: Edited, review: _Review) -> str:
    edit = review.edit
    if edit.old:
        lines = review._name() + (", …" if done.replacements > len(review.lines) else "")  # noqa: SLF001  its own
        text = f"Edited {done.path}: {count(done.replacements, 'place')} replaced, on line {lines}."
        text += " White space differed." if done.loose else ""
    else:
        last = min(edit.last_line or 1, max(review.total, 1))
        text = f"Edited {done.path}: lines {edit.first_line} to {last} replaced."
    if edit.last_line is not None and edit.last_line > review.total:
        text += f" The file had {count(review.total, 'line')}, so end_line {edit.last_line} meant the last."
    return text


def _revert_file(call: Call[RevertArguments, Services]) -> Said:
    path = place_path(call, call.arguments.path)
    judge: Callable[[Spot], None] = partial(_judge_lane, call)
    done = revert_file(make_reach(call), path, make_keeping(call), judge=judge)
    if _is_there(call, path):
        return Said(text=f"Reverted {done.path} to what it held before this session first wrote it.")
    return Said(text=f"Deleted {done.path}: it was not there before this session first wrote it.")


_GUARDS = {
    "binary_path": "the name promises a format that no text is",
    "escaped_fence": "a line of Markdown opens with an escaped code fence; the third time it is repaired",
    "another_stage": "another stage owes the file; after three such attempts the turn ends",
    "report_only": "a checking stage writes only what it owes",
    "not_owed": "in the write phase: not a file that is owed, while none of those is there",
}

_REWRITES = {
    "shrink_guard": "it would throw away more than half of the file; asked again, it passes",
    "reference_guard": "a script beside the page would look for ids that are gone; asked again, it passes",
    "guard_failed": "the check itself failed, so nothing was written",
}

_CHANGES = Hints(read_only=False, destructive=True, idempotent=False, open_world=False)

WRITE_FILE = Tool(
    name="write_file",
    title="Write a file",
    description=(
        "Write a whole file, with the folders on the way to it. For a change to part of a file use edit_file. A write "
        "that would lose most of a file, or ids that a script beside a page needs, is questioned once: the same call "
        "again passes. Media, archives, fonts and the like are refused: no text is one."
    ),
    arguments=WriteArguments,
    result=Said,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_write_file,
    reasons={**PATHS, **NOT_A_FILE, **WRITES, **_GUARDS, **_REWRITES},
    prepare=rename(file_path="path", text="content"),
    render=render_said,
    render_error=render_failure,
)

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
    hints=_CHANGES,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_edit_file,
    reasons={
        **PATHS,
        **NOT_A_FILE,
        **WRITES,
        **EDITS,
        **_GUARDS,
        "invalid_range": "no such lines; `data.totalLines` says how many there are",
        "repeated_replacement": "many matches times a long replacement: the document over and over",
        "doubled_document": "the replacement begins as the file does: the document twice",
    },
    prepare=rename(file_path="path", find="search"),
    render=render_said,
    render_error=render_failure,
)

REVERT_FILE = Tool(
    name="revert_file",
    title="Revert a file",
    description=(
        "Give a file back what it held before this session first wrote it; delete it when it was not there. Fails when "
        "this session has not written it, or when it could not be read at the time."
    ),
    arguments=RevertArguments,
    result=Said,
    hints=_CHANGES,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_revert_file,
    reasons={**PATHS, **NOT_A_FILE, **WRITES, **_GUARDS, "no_snapshot": "there is nothing to go back to"},
    prepare=rename(file_path="path"),
    render=render_said,
    render_error=render_failure,
)
