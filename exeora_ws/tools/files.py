"""The file tools: read_file, list_files, grep, edit_file, write_file, apply_patch."""

import os
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, UnsetType

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments
from exeora_ws.files.operation import Operation, OperationType
from exeora_ws.files.reach import Reach
from exeora_ws.files.spot import Spot
from exeora_ws.tools.file_reasons import EDITS, NOT_A_FILE, PATHS, SEARCHES, WRITES
from exeora_ws.tools.file_shapes import (
    AppliedPatch,
    EditArguments,
    EditedFile,
    FoundLine,
    FoundLines,
    GrepArguments,
    ListArguments,
    ListedEntry,
    ListedFiles,
    PatchArguments,
    PatchedFile,
    PatchOperation,
    ReadArguments,
    ReadText,
    WriteArguments,
    WrittenFile,
)
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import READS, Call, Hints, Needs, Routing, Tool

if TYPE_CHECKING:  # each tool imports what does its work when it is called
    from exeora_ws.files.difference import Diff
    from exeora_ws.files.editing import Keeping
    from exeora_ws.files.globs import Glob
    from exeora_ws.files.patch import Patched
    from exeora_ws.files.reading import TextRange
    from exeora_ws.files.ripgrep import Ripgrep


def make_reach(call: Call[Any, Services]) -> Reach:
    """Say what paths mean in a call."""
    services = call.services
    return Reach(call.require_place().root, services.home, services.settings().tools_may_edit_policy)


def make_keeping(call: Call[Any, Services]) -> "Keeping":
    """Give what a call's writes are kept safe with."""
    return make_session_keeping(call.services, call.session, call.cancellation)


def make_session_keeping(services: Services, session: str, cancellation: Cancellation) -> "Keeping":
    """Give what a conversation's writes are kept safe with."""
    from exeora_ws.files.editing import Keeping

    return Keeping(services.places.locks, services.snapshots, session, cancellation)


def make_ripgrep(services: Services) -> "Ripgrep":
    """Give the ripgrep to search with."""
    from exeora_ws.files.ripgrep import Ripgrep, find_ripgrep
    from exeora_ws.git.contents import list_contents, list_tracked_ignored
    from exeora_ws.git.excludes import find_excludes_file

    program, asking = find_ripgrep(os.environ), (find_excludes_file, list_contents, list_tracked_ignored)
    return Ripgrep(program, services.spawn, os.environ, *asking)


def _read_file(call: Call[ReadArguments, Services]) -> ReadText:
    with make_reach(call).locate_for_reading(call.arguments.path) as spot:
        return show_range(spot.shown, read_range(call, spot))


def read_range(call: Call[ReadArguments, Services], spot: Spot) -> "TextRange":
    """Read what a call of read_file asks for."""
    from exeora_ws.files.reading import read_text

    asked = call.arguments
    return read_text(
        spot,
        offset=asked.offset,
        limit=None if isinstance(asked.limit, UnsetType) else asked.limit,
        column=asked.column,
        cancellation=call.cancellation,
    )


def show_range(path: str, got: "TextRange") -> ReadText:
    """Give what was read as results show it."""
    return ReadText(
        path=path,
        content=got.content,
        truncated=got.truncated,
        total_lines=got.total_lines,
        next_offset=UNSET if got.next_line is None else got.next_line,
        next_column=UNSET if got.next_column is None else got.next_column,
        replaced=got.replaced or UNSET,
    )


def _list_files(call: Call[ListArguments, Services]) -> ListedFiles:
    from exeora_ws.files.listing import list_folder, list_tree
    from exeora_ws.files.ripgrep import Patience

    asked, glob = call.arguments, _parse_glob(call.arguments.glob)
    with make_reach(call).locate_for_reading(asked.path) as spot:
        if asked.recursive:
            patience = Patience(call.cancellation, call.progress)
            listing = list_tree(spot, make_ripgrep(call.services), patience, glob=glob)
        else:
            listing = list_folder(spot, glob=glob)
    entries = [
        ListedEntry(path=entry.path, type=entry.type, size=UNSET if entry.size is None else entry.size)
        for entry in listing.entries
    ]
    return ListedFiles(
        path=listing.path,
        entries=entries,
        truncated=listing.truncated,
        skipped_unreadable=listing.unreadable or UNSET,
    )


def _grep(call: Call[GrepArguments, Services]) -> FoundLines:
    from exeora_ws.files.ripgrep import Patience
    from exeora_ws.files.searching import Query, search

    asked = call.arguments
    query = Query(asked.pattern, ignore_case=asked.case_insensitive, glob=_parse_glob(asked.glob))
    patience = Patience(call.cancellation, call.progress)
    with make_reach(call).locate_for_reading(asked.path) as spot:
        found = search(spot, query, make_ripgrep(call.services), patience, limit=asked.max_results)
    return FoundLines(
        matches=[
            FoundLine(path=match.path, line=match.line, text=match.text, cut=match.cut or UNSET)
            for match in found.matches
        ],
        truncated=found.truncated,
        skipped_binary=found.skipped_binary,
        skipped_unreadable=found.unreadable or UNSET,
    )


def _edit_file(call: Call[EditArguments, Services]) -> EditedFile:
    from exeora_ws.files.editing import edit_file
    from exeora_ws.files.replacing import Replacement

    asked = call.arguments
    done = edit_file(make_reach(call), asked.path, Replacement(asked.old_string, asked.new_string), make_keeping(call))
    return EditedFile(
        path=done.path, replacements=done.replacements, diff=done.diff.text, diff_truncated=_cut(done.diff)
    )


def _write_file(call: Call[WriteArguments, Services]) -> WrittenFile:
    from exeora_ws.files.editing import write_file

    done = write_file(make_reach(call), call.arguments.path, call.arguments.content, make_keeping(call))
    return WrittenFile(path=done.path, bytes_written=done.bytes_written, created=done.created)


def _apply_patch(call: Call[PatchArguments, Services]) -> AppliedPatch:
    from exeora_ws.files.patch import apply_patch

    operations = [_read_operation(index, one) for index, one in enumerate(call.arguments.operations)]
    return show_patched(apply_patch(make_reach(call), operations, make_keeping(call), call.services.places.patches))


def show_patched(done: "Patched") -> AppliedPatch:
    """Give what a patch did as results show it."""
    return AppliedPatch(
        operations=[
            PatchedFile(type=one.type, path=one.path, to=UNSET if one.to is None else one.to) for one in done.operations
        ],
        diff=done.diff.text,
        diff_truncated=_cut(done.diff),
    )


_FIELDS: dict[OperationType, frozenset[str]] = {
    "create": frozenset({"content"}),
    "update": frozenset({"oldString", "newString"}),
    "replace": frozenset({"content"}),
    "delete": frozenset(),
    "move": frozenset({"to"}),
}


def _read_operation(index: int, one: PatchOperation) -> Operation:
    """Take an operation with exactly the fields its type has; anything else is a call gone wrong."""
    values = {"content": one.content, "oldString": one.old_string, "newString": one.new_string, "to": one.to}
    given = {name: value for name, value in values.items() if not isinstance(value, UnsetType)}
    wanted = _FIELDS[one.type]
    if given.keys() != wanted:
        missing, odd = sorted(wanted - given.keys()), sorted(given.keys() - wanted)
        said = " and ".join([*(f"needs {name}" for name in missing), *(f"has no {name}" for name in odd)])
        raise InvalidArguments(
            f"operations[{index}]: {one.type} {said}",
            reason="missing_field" if missing else "unexpected_field",
            data={"operation": index},
        )
    from exeora_ws.files.hunks import Hunk

    hunks = (Hunk(given["oldString"], given["newString"]),) if one.type == "update" else ()
    return Operation(one.type, one.path, content=given.get("content"), hunks=hunks, to=given.get("to"))


def _parse_glob(text: str | UnsetType) -> "Glob | None":
    from exeora_ws.files.globs import parse_glob

    return None if isinstance(text, UnsetType) else parse_glob(text)


def _cut(diff: "Diff") -> Literal[True] | UnsetType:
    return True if diff.truncated else UNSET


_CHANGES = Hints(read_only=False, destructive=True, idempotent=False, open_world=False)

READ_FILE = Tool(
    name="read_file",
    title="Read file",
    description=(
        "Read a text file, whole or by lines. Use it before edit_file, which wants the text exactly as it stands; use "
        "grep to find the lines first when the file is long. Gives at most 500,000 bytes, cut at the end of a line: "
        "when `truncated` is true the file goes on, and `nextOffset` (with `nextColumn`, inside a very long line) says "
        "where to go on. Lines end at a newline character; carriage returns are shown, a byte order mark is not. "
        "`replaced` counts bytes that are not UTF-8, shown as U+FFFD: such a file cannot be edited here. Binary files "
        "are refused and named."
    ),
    arguments=ReadArguments,
    result=ReadText,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_read_file,
    reasons=PATHS
    | NOT_A_FILE
    | {
        "offset_past_end": "the file has fewer lines: `data.totalLines`",
        "column_past_end": "the line has fewer bytes",
        "invalid_range": "offset, limit and column count from 1",
    },
)

LIST_FILES = Tool(
    name="list_files",
    title="List files",
    description=(
        "List a folder. By default one level with everything in it, folders too. With `recursive`, every file and "
        "link below, sorted by path, without what .gitignore and its kin ignore (a tracked file is never ignored) and "
        "without .git and node_modules; a folder shows through what is in it, and one that is ignored is listed when "
        "`path` names it. Use `glob` to find files by name; use grep to find them by content. Links are listed, never "
        "followed. At most 1,000 entries, counted after the glob: `truncated` is true exactly when there are more, so "
        "narrow `path` or `glob` then."
    ),
    arguments=ListArguments,
    result=ListedFiles,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_list_files,
    reasons=PATHS | SEARCHES,
)

GREP = Tool(
    name="grep",
    title="Search in files",
    description=(
        "Search for a regular expression in a file, or in every file below a folder that is tracked or not ignored; "
        "faster than a command, and bounded. The syntax is that of Rust: no look-around, no back-references; escape ( "
        "[ { . * + ? | \\ to mean the character itself. A match lies within one line. Gives path, line number and "
        "text, sorted, at most 200 lines (`truncated` is true exactly when there are more) and 500 characters of each "
        "(`cut`). `skippedBinary` counts files that match but are not text. Follow up with read_file around a line."
    ),
    arguments=GrepArguments,
    result=FoundLines,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_grep,
    reasons=PATHS
    | NOT_A_FILE
    | SEARCHES
    | {"invalid_pattern": "the pattern does not compile; the message points at the spot"},
)

EDIT_FILE = Tool(
    name="edit_file",
    title="Edit file",
    description=(
        "Replace one piece of text in a file: the way to change part of a file, since nothing else in it is touched. "
        "`oldString` must stand in the file exactly once; when it does not, the answer names the lines where it "
        "stands, or the ones most like it, so add surrounding lines instead of trying again. A newline in it also "
        "matches a Windows line end, and the new text takes over the line ends of its place. Gives a unified diff. For "
        "several changes that belong together use apply_patch."
    ),
    arguments=EditArguments,
    result=EditedFile,
    hints=_CHANGES,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_edit_file,
    reasons=PATHS | NOT_A_FILE | WRITES | EDITS,
)

WRITE_FILE = Tool(
    name="write_file",
    title="Write file",
    description=(
        "Write a whole file: a new one, with the folders on the way to it, or over everything an old one holds. For a "
        "change to part of a file use edit_file, which leaves the rest alone. Mode, owner and link of an old file "
        "stay. The bytes written are the UTF-8 of `content`, unchanged."
    ),
    arguments=WriteArguments,
    result=WrittenFile,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_write_file,
    reasons=PATHS | {key: text for key, text in NOT_A_FILE.items() if key != "binary"} | WRITES,
)

APPLY_PATCH = Tool(
    name="apply_patch",
    title="Apply patch",
    description=(
        "Change several files as one: create, update, replace, delete and move, at most 20 operations. All are checked "
        "against the files, each seeing what those before it do, before the first byte is written; when one cannot be "
        "done nothing is changed and `data.operation` is its index. Use it whenever files must change together, or one "
        "file in several places; for a single change edit_file is simpler. Gives one diff of everything."
    ),
    arguments=PatchArguments,
    result=AppliedPatch,
    hints=_CHANGES,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_apply_patch,
    reasons=PATHS
    | NOT_A_FILE
    | WRITES
    | EDITS
    | {
        "missing_field": "an operation lacks a field that its type needs",
        "unexpected_field": "an operation has a field that its type does not have",
        "no_operations": "there are none",
        "too_many_operations": "more than 20",
        "patch_too_large": "more than 1,000,000 bytes of text",
        "unsupported": "a file cannot go where the same patch takes another away: use two patches",
        "undo_incomplete": "it failed and was taken back, but for `data.left`, which somebody else wrote meanwhile, "
        "and `data.pending`, which is taken back later",
    },
)

FILE_TOOLS = (READ_FILE, LIST_FILES, GREP, EDIT_FILE, WRITE_FILE, APPLY_PATCH)
