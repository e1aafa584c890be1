"""Tools that only look: read_file, search_files, list_files."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.files.globs import parse_glob
from exeora_ws.files.listing import list_tree
from exeora_ws.files.outline import Branch, outline
from exeora_ws.files.reading import TextRange, read_text
from exeora_ws.files.ripgrep import Patience
from exeora_ws.files.searching import Found, Query, search
from exeora_ws.files.spot import Spot
from exeora_ws.limits import GREP_MATCHES, LIST_ENTRIES
from exeora_ws.tools.file_reasons import NOT_A_FILE, PATHS, SEARCHES
from exeora_ws.tools.files import make_reach, make_ripgrep
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import READS, Call, Needs, Routing, Tool
from exeora_ws.toolsets.engine.formats import find_unreadable_kind
from exeora_ws.toolsets.engine.words import (
    FilePath,
    FolderPath,
    LineNumber,
    Said,
    count,
    folder_of,
    place_path,
    rename,
    render_failure,
    render_said,
)
from exeora_ws.toolsets.wording import SnakeArguments, number_what_fits

_DEPTH = 3


class ReadArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of read_file."""

    path: FilePath
    start_line: LineNumber | UnsetType = UNSET
    end_line: LineNumber | UnsetType = UNSET


class SearchArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of search_files."""

    query: Annotated[str, Meta(description="Text to find in files; without it, files are listed.")] = ""
    path: FolderPath = "."
    glob: Annotated[str, Meta(description="Only files that match, such as `*.py` or `docs/**/*.md`.")] = ""
    regex: Annotated[bool, Meta(description="Take `query` for a regular expression (Rust syntax).")] = False
    max_results: Annotated[int, Meta(ge=1, le=LIST_ENTRIES, description="Most lines or files to give.")] = GREP_MATCHES


class ListArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of list_files."""

    path: FolderPath = "."
    depth: Annotated[int, Meta(ge=1, le=50, description="How many levels.")] = _DEPTH


def _read_file(call: Call[ReadArguments, Services]) -> Said:
    asked, path = call.arguments, place_path(call, call.arguments.path)
    kind = find_unreadable_kind(path)
    if kind is not None:
        raise ToolFailed(
            f"{path}: its name promises {kind}, which is not read as text",
            reason="not_read_as_text",
            hint=f"to check that it is there and how large it is: list_files with path {folder_of(path)!r}",
        )
    with make_reach(call).locate_for_reading(path) as spot:
        if isinstance(asked.start_line, UnsetType) and isinstance(asked.end_line, UnsetType):
            return _show_whole(spot.shown, read_text(spot, cancellation=call.cancellation))
        first = 1 if isinstance(asked.start_line, UnsetType) else asked.start_line
        return _show_range(spot, first, None if isinstance(asked.end_line, UnsetType) else asked.end_line, call)


def _show_whole(path: str, got: TextRange) -> Said:
    if not got.truncated:
        return Said(text=got.content)
    notice = (
        f"{path} has {count(got.total_lines, 'line')} and is too large for one answer: this is its beginning, up to "
        f"line {got.next_line}; read on with start_line and end_line"
    )
    return Said(text=got.content, notice=notice)


def _show_range(spot: Spot, first: int, last: int | None, call: Call[ReadArguments, Services]) -> Said:
    total = read_text(spot, limit=1, cancellation=call.cancellation).total_lines
    if first < 1 or first > max(total, 1) or (last is not None and last < first):
        raise InvalidArguments(
            f"{spot.shown}: lines {first} to {last or 'the end'} are no range: the file has {count(total, 'line')}",
            reason="invalid_range",
            data={"totalLines": total},
        )
    if total == 0:
        return Said(text=f"[{spot.shown}: the file is empty: 0 lines]")
    wanted = None if last is None else last - first + 1
    read = read_text(spot, offset=first, limit=wanted, cancellation=call.cancellation)
    numbered, got = number_what_fits(read)
    shown_to = got.next_line - 1 if got.next_line is not None else total
    if got.next_column is not None:
        shown_to += 1
    text = f"[{spot.shown}: lines {first}-{shown_to} of {total}]\n{numbered}"
    wanted_to = total if last is None else min(last, total)
    if got.next_column is not None:
        return Said(text=text, notice=f"line {got.next_line} is longer than one answer holds and was cut")
    if shown_to < wanted_to:
        return Said(text=text, notice=f"too large for one answer: read on with start_line {got.next_line}")
    return Said(text=text)


def _search_files(call: Call[SearchArguments, Services]) -> Said:
    asked, patience = call.arguments, Patience(call.cancellation, call.progress)
    glob = parse_glob(asked.glob) if asked.glob else None
    with make_reach(call).locate_for_reading(place_path(call, asked.path)) as spot:
        if asked.query:
            query = Query(asked.query, fixed=not asked.regex, glob=glob)
            return _show_found(search(spot, query, make_ripgrep(call.services), patience, limit=asked.max_results))
        listing = list_tree(spot, make_ripgrep(call.services), patience, glob=glob, limit=asked.max_results)
    notice = f"there are more: these are the first {len(listing.entries)}; narrow path or glob"
    text = "\n".join(entry.path for entry in listing.entries) or "No file matches."
    return Said(text=text, notice=notice if listing.truncated else UNSET)


def _show_found(found: Found) -> Said:
    notes = []
    if found.truncated:
        notes.append(f"there are more: these are the first {len(found.matches)} lines; narrow path, glob or query")
    if found.skipped_binary:
        notes.append(f"{count(found.skipped_binary, 'file')} with a match left out, not text")
    if found.unreadable:
        notes.append(f"{count(found.unreadable, 'file')} could not be read")
    return Said(text="\n".join(_group(found)) or "Nothing matches.", notice="; ".join(notes) or UNSET)


def _group(found: Found) -> list[str]:
    """Give the matching lines, a blank line between files."""
    lines: list[str] = []
    previous: str | None = None
    for match in found.matches:
        if previous is not None and match.path != previous:
            lines.append("")
        lines.append(f"{match.path}:{match.line}: {match.text}{' […]' if match.cut else ''}")
        previous = match.path
    return lines


def _list_files(call: Call[ListArguments, Services]) -> Said:
    patience = Patience(call.cancellation, call.progress)
    with make_reach(call).locate_for_reading(place_path(call, call.arguments.path)) as spot:
        drawn = outline(spot, make_ripgrep(call.services), patience, depth=call.arguments.depth)
    lines = [f"{drawn.path.rstrip('/')}/", *map(_draw, drawn.branches)]
    notice = f"there are more: these are the first {len(drawn.branches)}; list a folder below, or fewer levels"
    return Said(text="\n".join(lines), notice=notice if drawn.truncated else UNSET)


def _draw(branch: Branch) -> str:
    return "  " * (branch.depth + 1) + branch.name + ("/" if branch.folder else "") + (" …" if branch.closed else "")


READ_FILE = Tool(
    name="read_file",
    title="Read a file",
    description=(
        "Read a text file: as it is, or with start_line and end_line only those lines, each behind its number, under a "
        "header that says which of how many. Line numbers are those of edit_file. Not needed before edit_file, which "
        "reads the file itself. Media, documents and archives are refused by name: list_files shows whether they are "
        "there. A file too large for one answer says how many lines it has."
    ),
    arguments=ReadArguments,
    result=Said,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_read_file,
    reasons={
        **PATHS,
        **NOT_A_FILE,
        "invalid_range": "no such lines; `data.totalLines` says how many there are",
        "not_read_as_text": "the name promises media, a document or an archive",
    },
    prepare=rename(file_path="path"),
    render=render_said,
    render_error=render_failure,
)

SEARCH_FILES = Tool(
    name="search_files",
    title="Search files",
    description=(
        "Find text in files, or files by name: use it instead of ls, find or grep in run_shell. With `query`, lines "
        "that have it as `path:line: text`, file by file; without, the files that match `glob`. What Git ignores, .git "
        "and node_modules are left out."
    ),
    arguments=SearchArguments,
    result=Said,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_search_files,
    reasons={**PATHS, **NOT_A_FILE, **SEARCHES, "invalid_pattern": "the query cannot be searched for"},
    prepare=rename(file_path="path"),
    render=render_said,
    render_error=render_failure,
)

LIST_FILES = Tool(
    name="list_files",
    title="List files",
    description=(
        "Draw the tree below a folder, `depth` levels deep; `…` marks a folder whose content lies deeper. Not needed "
        "before write_file, which makes folders itself. What Git ignores, .git and node_modules are left out."
    ),
    arguments=ListArguments,
    result=Said,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_list_files,
    reasons={**PATHS, **SEARCHES},
    prepare=rename(file_path="path"),
    render=render_said,
    render_error=render_failure,
)
