"""The agentexec toolset: a terminal and files for an agent, in levels each of which contains the one before."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from exeora_ws.errors import InvalidArguments
from exeora_ws.files.difference import Diff, diff_contents
from exeora_ws.files.editing import edit_file, encode_text, write_file
from exeora_ws.files.listing import Entry, list_folder
from exeora_ws.files.reading import read_text
from exeora_ws.files.replacing import Replacement
from exeora_ws.files.ripgrep import Patience
from exeora_ws.files.searching import Query, search
from exeora_ws.limits import EXEC_READ_LINES
from exeora_ws.tools.file_reasons import EDITS, NOT_A_FILE, PATHS, SEARCHES, WRITES
from exeora_ws.tools.files import make_keeping, make_reach, make_ripgrep
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import READS, Call, Hints, Needs, Routing, Tool
from exeora_ws.toolsets.terminal import EXEC_COMMAND, WRITE_STDIN
from exeora_ws.toolsets.wording import SnakeArguments, Text, make_relative, number_what_fits, render_text

Path = Annotated[str, Meta(description="Relative to the workspace, or absolute inside it.")]


class ReadArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of read."""

    path: Path
    offset: Annotated[int, Meta(ge=1, description="First line, from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, description="How many lines at most.")] = EXEC_READ_LINES


class ListArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of list."""

    path: Path = "."


class SearchArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of search."""

    pattern: Annotated[str, Meta(min_length=1, description="Text to find within lines.")]
    path: Path = "."
    regex: Annotated[bool, Meta(description="Take it for a regular expression (Rust syntax), not exact text.")] = False


class EditArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of edit."""

    path: Path
    old_text: Annotated[str, Meta(description="Text to replace, exactly as in the file; empty to create a new file.")]
    new_text: Annotated[str, Meta(description="Text to put there, as it is.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence instead of the only one.")] = False


def _path(call: Call[Any, Services], path: str) -> str:
    return make_relative(path, call.require_place().root)


def _read(call: Call[ReadArguments, Services]) -> Text:
    asked = call.arguments
    with make_reach(call).locate_for_reading(_path(call, asked.path)) as spot:
        got = read_text(spot, offset=asked.offset, limit=asked.limit, cancellation=call.cancellation)
    text, got = number_what_fits(got, separator="\t")
    if got.replaced:
        text += f"\n[{got.replaced} bytes are not UTF-8 and are shown as U+FFFD]"
    if got.next_column is not None:
        text += f"\n[line {got.next_line} goes on: it is longer than one answer holds]"
    elif got.next_line is not None:
        text += f"\n[the file has {got.total_lines} lines: go on with offset {got.next_line}]"
    return Text(text=text)


def _list(call: Call[ListArguments, Services]) -> Text:
    with make_reach(call).locate_for_reading(_path(call, call.arguments.path)) as spot:
        listing = list_folder(spot)
    lines = [_show_entry(entry) for entry in listing.entries]
    if listing.truncated:
        lines.append(f"[there are more: these are the first {len(lines)}]")
    return Text(text="\n".join(lines) or "[the folder is empty]")


def _show_entry(entry: Entry) -> str:
    name = entry.path.rpartition("/")[2]
    if entry.type == "directory":
        return f"{name}/"
    if entry.type == "file":
        return f"{name} {entry.size}"
    return f"{name} [{'link' if entry.type == 'symlink' else 'neither file nor folder'}]"


def _search(call: Call[SearchArguments, Services]) -> Text:
    asked = call.arguments
    query = Query(asked.pattern, fixed=not asked.regex)
    with make_reach(call).locate_for_reading(_path(call, asked.path)) as spot:
        found = search(spot, query, make_ripgrep(call.services), Patience(call.cancellation, call.progress))
    lines = [f"{match.path}:{match.line}:{match.text}{' […]' if match.cut else ''}" for match in found.matches]
    if found.truncated:
        lines.append(f"[there are more: these are the first {len(lines)} lines that match]")
    if found.skipped_binary:
        lines.append(f"[{found.skipped_binary} files that match are not text and are not shown]")
    if found.unreadable:
        lines.append(f"[{found.unreadable} files could not be read]")
    return Text(text="\n".join(lines) or "[nothing matches]")


def _edit(call: Call[EditArguments, Services]) -> Text:
    asked = call.arguments
    path = _path(call, asked.path)
    if not asked.old_text:
        return _create(call, path, asked)
    replacement = Replacement(asked.old_text, asked.new_text, every=asked.replace_all)
    return Text(text=_show_diff(edit_file(make_reach(call), path, replacement, make_keeping(call)).diff))


def _create(call: Call[EditArguments, Services], path: str, asked: EditArguments) -> Text:
    if asked.replace_all:
        raise InvalidArguments("replace_all: means nothing without old_text", reason="wrong_value")
    written = write_file(make_reach(call), path, asked.new_text, make_keeping(call), only_new=True)
    diff = diff_contents(written.path, None, encode_text(asked.new_text, "new_text"))
    return Text(text=_show_diff(diff))


def _show_diff(diff: Diff) -> str:
    return diff.text + ("[the diff goes on: it is longer than one answer holds]\n" if diff.truncated else "")


def _take_other_names(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let `query` and `text` stand for `pattern`."""
    if "pattern" in arguments:
        return arguments
    return {"pattern" if name in ("query", "text") else name: value for name, value in arguments.items()}


READ = Tool(
    name="read",
    title="Read a file",
    description=(
        "Read a text file as numbered lines: `limit` of them from line `offset` on. The number and a tab stand before "
        "each line and are not part of it. When the file goes on, the last line says with which offset."
    ),
    arguments=ReadArguments,
    result=Text,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_read,
    reasons={
        **PATHS,
        **NOT_A_FILE,
        "offset_past_end": "the file has fewer lines: `data.totalLines`",
        "invalid_range": "offset and limit count from 1",
    },
    render=render_text,
)

LIST = Tool(
    name="list",
    title="List a folder",
    description=(
        "List what is in a folder, one name a line: a folder ends in `/`, a file is followed by its size in bytes. "
        "Hidden and ignored ones are there too; at most 1,000, and it says when there are more."
    ),
    arguments=ListArguments,
    result=Text,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_list,
    reasons={**PATHS},
    render=render_text,
)

SEARCH = Tool(
    name="search",
    title="Search for text",
    description=(
        "Find text in the files below a folder, or in one file; gives `path:line:text` for each line that has it. The "
        "text is exact unless `regex`. What .gitignore ignores, .git and node_modules are left out. At most 200 lines, "
        "and it says when there are more."
    ),
    arguments=SearchArguments,
    result=Text,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_search,
    reasons={
        **PATHS,
        **NOT_A_FILE,
        **SEARCHES,
        "invalid_pattern": "the pattern cannot be searched for; the message says why",
    },
    prepare=_take_other_names,
    render=render_text,
)

EDIT = Tool(
    name="edit",
    title="Edit a file",
    description=(
        "Replace exact text in a file; answers with a unified diff. `old_text` must stand there exactly once, unless "
        "`replace_all`; when it does not, the answer says on which lines it stands, or what comes nearest. With an "
        "empty `old_text` a new file is created that holds `new_text`."
    ),
    arguments=EditArguments,
    result=Text,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=False),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_edit,
    reasons={**PATHS, **NOT_A_FILE, **WRITES, **EDITS},
    render=render_text,
)

READ_LEVEL = (READ, LIST, SEARCH)
FILES_LEVEL = (*READ_LEVEL, EDIT)
TERMINAL_LEVEL = (*FILES_LEVEL, EXEC_COMMAND, WRITE_STDIN)
