"""write_file and revert_file: whole files, behind the guards and the stage's lane."""

from functools import partial
from typing import Annotated

from msgspec import Meta

from exeora_ws.files.editing import revert_file, write_file
from exeora_ws.files.spot import Spot
from exeora_ws.tools.file_reasons import NOT_A_FILE, PATHS, WRITES
from exeora_ws.tools.files import make_keeping, make_reach
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Call, Hints, Needs, Routing, Tool
from exeora_ws.toolsets.engine.guards import question_rewrite, refuse_binary_path, settle_fences
from exeora_ws.toolsets.engine.lane import (
    CHANGES,
    GUARD_REASONS,
    is_there,
    judge_lane,
    judge_write,
    name_file,
    recall_asked,
    recall_turn,
    tell_repaired,
)
from exeora_ws.toolsets.engine.words import FilePath, Said, count, place_path, rename, render_failure, render_said
from exeora_ws.toolsets.wording import SnakeArguments


class WriteArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of write_file."""

    path: FilePath
    content: Annotated[str, Meta(description="Everything that the file shall hold.")]


class RevertArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of revert_file."""

    path: FilePath


def _write_file(call: Call[WriteArguments, Services]) -> Said:
    path = place_path(call, call.arguments.path)
    refuse_binary_path(path)
    content, repaired = settle_fences(recall_asked(call), name_file(call, path), path, call.arguments.content)

    def judge(spot: Spot) -> None:
        judge_write(call, spot)
        real = "/".join(spot.real)
        owed = recall_turn(call).owes_words(real)
        question_rewrite(recall_asked(call), name_file(call, real), spot, content, words_owed=owed)

    done = write_file(make_reach(call), path, content, make_keeping(call), judge=judge)
    text = f"{'Created' if done.created else 'Overwrote'} {done.path}: {count(done.bytes_written, 'byte')}."
    return Said(text=text + tell_repaired(repaired))


def _revert_file(call: Call[RevertArguments, Services]) -> Said:
    path = place_path(call, call.arguments.path)
    judge = partial(judge_lane, call)
    done = revert_file(make_reach(call), path, make_keeping(call), judge=judge)
    if is_there(call, path):
        return Said(text=f"Reverted {done.path} to what it held before this session first wrote it.")
    return Said(text=f"Deleted {done.path}: it was not there before this session first wrote it.")


_REWRITES = {
    "shrink_guard": "it would throw away more than half of the file; asked again, it passes",
    "reference_guard": "a script beside the page would look for ids that are gone; asked again, it passes",
    "guard_failed": "the check itself failed, so nothing was written",
}


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
    reasons={**PATHS, **NOT_A_FILE, **WRITES, **GUARD_REASONS, **_REWRITES},
    prepare=rename(file_path="path", text="content"),
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
    hints=CHANGES,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_revert_file,
    reasons={**PATHS, **NOT_A_FILE, **WRITES, **GUARD_REASONS, "no_snapshot": "there is nothing to go back to"},
    prepare=rename(file_path="path"),
    render=render_said,
    render_error=render_failure,
)
