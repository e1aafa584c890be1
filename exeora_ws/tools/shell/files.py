"""Files at a shell: the very bytes on stdout, patch texts on stdin, and the way back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from msgspec import Meta

from exeora_ws.tools.file_reasons import NOT_A_FILE, PATHS, WRITES
from exeora_ws.tools.file_shapes import AppliedPatch, ReadArguments, ReadText, WritePath, WrittenFile
from exeora_ws.tools.files import (
    APPLY_PATCH,
    READ_FILE,
    make_keeping,
    make_reach,
    read_range,
    show_patched,
    show_range,
)
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Arguments, Call, Hints, Needs, Routing, Tool

AnyTool = Tool[Any, Any, Services]
_PATCH: AnyTool = APPLY_PATCH


class PatchTextArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of apply_patch with a patch text: what a person is shown is the text itself."""

    patch: Annotated[str, Meta(min_length=1, description="A unified diff, or `*** Begin Patch` … `*** End Patch`.")]


class RevertArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of revert_file."""

    path: WritePath


def read_raw(take: Callable[[bytes], None]) -> AnyTool:
    """Give read_file with the bytes as they stand in the file: a byte order mark too, and what is not UTF-8."""

    def read_file(call: Call[ReadArguments, Services]) -> ReadText:
        with make_reach(call).locate_for_reading(call.arguments.path) as spot:
            got = read_range(call, spot)
            take(got.raw)
            return show_range(spot.shown, got)

    return replace(READ_FILE, function=read_file)


def _apply_patch_text(call: Call[PatchTextArguments, Services]) -> AppliedPatch:
    from exeora_ws.files.patch import apply_patch
    from exeora_ws.files.patch_text import parse_patch_text

    operations = parse_patch_text(call.arguments.patch)
    return show_patched(apply_patch(make_reach(call), operations, make_keeping(call), call.services.places.patches))


APPLY_PATCH_TEXT: AnyTool = replace(_PATCH, arguments=PatchTextArguments, function=_apply_patch_text)
"""apply_patch with one of the two patch texts that agents write."""


def _revert_file(call: Call[RevertArguments, Services]) -> WrittenFile:
    from exeora_ws.files.editing import revert_file

    done = revert_file(make_reach(call), call.arguments.path, make_keeping(call), any_session=True)
    return WrittenFile(path=done.path, bytes_written=done.bytes_written, created=done.created)


REVERT_FILE: AnyTool = Tool(
    name="revert_file",
    title="Revert file",
    description=(
        "Give a file the content it had before it was last written through exeora, or delete it when there was none. "
        "What it held until now is kept in turn: reverting again brings it back."
    ),
    arguments=RevertArguments,
    result=WrittenFile,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=False),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_revert_file,
    reasons=PATHS
    | {key: text for key, text in NOT_A_FILE.items() if key != "binary"}
    | WRITES
    | {"no_snapshot": "nothing was kept of it, or it could not be read when it was first written"},
)
"""Only at the shell: over MCP a client has its own undo."""
