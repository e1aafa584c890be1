"""Search by ripgrep, which says where; the text shown is read by us, from inside the root.

So a line of any length costs a few hundred bytes, and nothing outside the root is shown whatever a link did meanwhile.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from exeora_ws.errors import ExeoraError, InvalidArguments, ToolTimeout
from exeora_ws.files.excerpts import Excerpt, LineReader
from exeora_ws.files.globs import Glob
from exeora_ws.files.paths import join_shown, split_path
from exeora_ws.files.ripgrep import Patience, PipedChild, Ripgrep, finish, read_chunks
from exeora_ws.files.root import Root
from exeora_ws.files.sizes import take_what_fits
from exeora_ws.files.spot import Spot
from exeora_ws.files.tree import Tree, sort_key
from exeora_ws.limits import GREP_MATCHES

_PATTERN_BYTES = 20_000
_BINARY = rb"(?:binary file matches|WARNING: stopped searching binary file after match)"
_ROW = re.compile(
    rb"([^\0]*?): " + _BINARY + rb" \(found \"\\0\" byte around offset \d+\)\r?\n"
    rb"|([^\0]*)\0(\d+):(\d+):(\d+):[^\n]*\n"
)
# Lines longer than one byte are only announced: output is a few bytes a match, however long the lines are.
_OUTPUT = (
    "--no-heading",
    "--with-filename",
    "--null",
    "--line-number",
    "--column",
    "--byte-offset",
    "--max-columns=1",
)
_WHOLE_BINARIES = ("--binary",)  # look through them to the end, so that those that match can be counted
_BINARIES_SHARE = 1 / 3
"""How much of the time may go by before binary files are passed over at their first NUL instead."""
_LINE_BYTES = 100_000
_ARGUMENT_BYTES = 300  # a pointer, and what the way to the folder adds
_CARRIAGE_RETURN = re.compile(r"\r|(?<!\\)(?:\\\\)*\\(?:r|x0[dD]|x\{0*[dD]\})")


@dataclass(frozen=True, slots=True)
class Query:
    """What to search for."""

    pattern: str
    fixed: bool = False
    """Whether the pattern is plain text instead of a regular expression."""
    ignore_case: bool = False
    glob: Glob | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """One matching line."""

    path: str
    line: int
    text: str
    cut: bool
    """Whether `text` is only the part of a long line around the match."""


@dataclass(frozen=True, slots=True)
class Found:
    """Sorted matches. `truncated` is True exactly when there are more lines that match."""

    matches: tuple[Match, ...]
    truncated: bool
    skipped_binary: int
    """Files that match but are not text; of those looked at before the end or the limit."""
    unreadable: int
    """Files and folders that could not be read, of those looked at before the end or the limit."""


@dataclass(frozen=True, slots=True)
class _Place:
    line: int
    column: int
    offset: int


@dataclass(slots=True)
class _Hits:
    """Where the pattern stands, file by file."""

    files: dict[str, list[_Place]] = field(default_factory=dict)
    binary: set[str] = field(default_factory=set)
    unreadable: int = 0
    more: bool = False

    @property
    def count(self) -> int:
        return sum(map(len, self.files.values()))


def search(spot: Spot, query: Query, ripgrep: Ripgrep, patience: Patience, *, limit: int = GREP_MATCHES) -> Found:
    """Search a file, or every file below a folder that is tracked or not ignored, without `.git` and `node_modules`.

    Raises:
        InvalidArguments: `invalid_pattern`, with ripgrep's pointer at the spot.
        ToolTimeout, Cancelled: as patience says.
        ToolFailed: `ripgrep_missing`, `search_failed`; for one file also what keeps it from being read.
    """
    arguments = _read_query(query)
    if spot.is_folder:
        return _Search(spot, ripgrep, patience, limit).search_tree(arguments, query.glob)
    if query.glob is not None and not query.glob.matches(os.path.basename(spot.shown)):
        return Found((), truncated=False, skipped_binary=0, unreadable=0)
    return _Search(spot, ripgrep, patience, limit).search_file(arguments)


def _read_query(query: Query) -> list[str]:
    try:
        raw = query.pattern.encode()
    except UnicodeEncodeError:
        raise _refuse("holds half a surrogate pair") from None
    if b"\n" in raw:
        raise _refuse("lines are searched one at a time, so a newline never matches", "search for one of the lines")
    if b"\0" in raw or len(raw) > _PATTERN_BYTES:
        raise _refuse(f"holds a NUL, or more than {_PATTERN_BYTES} bytes")
    options = ["--fixed-strings"] if query.fixed else []
    if not _CARRIAGE_RETURN.search(query.pattern):
        options.append("--crlf")  # `$` stands before `\r\n` as well, unless the pattern speaks of `\r` itself
    options += ["--ignore-case" if query.ignore_case else "--case-sensitive"]
    return [*options, f"--regexp={query.pattern}"]


def _refuse(why: str, hint: str | None = None) -> InvalidArguments:
    return InvalidArguments(f"pattern: {why}", reason="invalid_pattern", hint=hint)


class _Search:
    def __init__(self, spot: Spot, ripgrep: Ripgrep, patience: Patience, limit: int) -> None:
        self._spot = spot
        self._ripgrep = ripgrep
        self._patience = patience
        self._limit = limit
        self._so_far = 0
        self._latest = _Hits()

    def search_tree(self, query: Sequence[str], glob: Glob | None) -> Found:
        tree = Tree(self._spot, self._ripgrep, self._patience, glob)
        with Root.below(self._spot) as root:  # the folder as it is now, whatever takes its name meanwhile
            with ThreadPoolExecutor(1, "ignored") as beside:
                ignored = beside.submit(tree.list_tracked_ignored)
                hits = self._find(query, tree)
                if not hits.files and not hits.binary and tree.admit_ignored():
                    hits = self._find(query, tree)
                self._add(hits, query, tree, [path for path in ignored.result() if _is_file(root, path)])
            return self._show(hits, lambda path: _open_below(root, path), self._spot.shown)

    def _add(self, hits: _Hits, query: Sequence[str], tree: Tree, paths: Sequence[str]) -> None:
        """Search some files more, in order, each lot as far as needed."""
        arguments = [*_OUTPUT, *_WHOLE_BINARIES, "--sort=path", *query, f"--max-count={self._limit + 1}"]
        for lot in _pack(sorted(paths, key=sort_key)):
            with tree.run_on(arguments, lot) as child:
                found = self._collect(child, tree)
            hits.files |= found.files
            hits.binary |= found.binary
            hits.unreadable += found.unreadable
            if found.more:
                break
        hits.more = hits.count > self._limit

    def search_file(self, query: Sequence[str]) -> Found:
        descriptor = self._spot.open_file()
        try:
            arguments = [
                *_OUTPUT,
                *_WHOLE_BINARIES,
                *query,
                f"--max-count={self._limit + 1}",
                "--",
                f"/dev/fd/{descriptor}",
            ]
            with self._ripgrep.start(self._spot.root, arguments, file=descriptor) as child:
                hits = self._collect(child, None)
            return self._show(hits, lambda _path: os.dup(descriptor), self._spot.shown)
        finally:
            os.close(descriptor)

    def _find(self, query: Sequence[str], tree: Tree) -> _Hits:
        """Search, binary files too as long as that does not take too long: a disk image would hold up everything."""
        whole = self._patience
        self._patience = whole.take(_BINARIES_SHARE)
        try:
            return self._find_in_order([*_WHOLE_BINARIES, *query], tree)
        except ToolTimeout:
            self._patience, counted = whole, self._latest.binary
            hits = self._find_in_order(query, tree)
            hits.binary |= counted
            return hits
        finally:
            self._patience = whole

    def _find_in_order(self, query: Sequence[str], tree: Tree) -> _Hits:
        """Search in any order; only when there is too much, again in order and only as far as needed."""
        hits = self._run(query, tree, ())
        return self._run(query, tree, ("--sort=path",)) if hits.more else hits

    def _run(self, query: Sequence[str], tree: Tree, order: Sequence[str]) -> _Hits:
        with tree.run([*_OUTPUT, *order, *query, f"--max-count={self._limit + 1}"]) as child:
            return self._collect(child, tree)

    def _collect(self, child: PipedChild, tree: Tree | None) -> _Hits:
        hits = self._latest = _Hits()
        latest: str | None = None
        for path, place in _parse_rows(read_chunks(child, self._patience, self._tell)):
            name = tree.name(path) if tree else ""
            if tree is not None and not tree.is_chosen(name):
                continue
            if name != latest and hits.count > self._limit:
                break  # what is whole is enough: the file begun may yet turn out to be binary
            latest = name
            if place is None:
                hits.binary.add(name)
                hits.files.pop(name, None)
            else:
                hits.files.setdefault(name, []).append(place)
                self._so_far = hits.count
        else:
            hits.unreadable = finish(child)
        hits.more = hits.count > self._limit
        return hits

    def _show(self, hits: _Hits, open_file: Callable[[str], int | None], shown: str) -> Found:
        matches: list[Match] = []
        for path in sorted(hits.files, key=sort_key):
            places = hits.files[path][: self._limit - len(matches)]
            matches += _read_file(open_file(path), join_shown(shown, path), places)
            if len(matches) >= self._limit:
                break
        fitting, cut = take_what_fits(matches, lambda match: (match.path, match.text))
        return Found(fitting, cut or hits.more, len(hits.binary), hits.unreadable)

    def _tell(self, _line: str) -> None:
        self._patience.progress(f"searching: {self._so_far} matches so far")


def _parse_rows(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, _Place | None]]:
    """Give path and place of each match; no place for a file that is binary."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        position = 0
        while match := _ROW.match(rest, position):
            position = match.end()
            if match[1] is not None:
                yield match[1], None
            else:
                yield match[2], _Place(int(match[3]), int(match[4]), int(match[5]))
        rest = rest[position:]


def _is_file(root: Root, path: str) -> bool:
    """Whether a path leads to a regular file, through no link."""
    try:
        with root.locate_real(split_path(path)) as spot:
            return spot.stat is not None and stat.S_ISREG(spot.stat.st_mode)
    except ExeoraError:
        return False


def _pack(paths: Sequence[str]) -> Iterator[list[str]]:
    """Give paths in lots that fit on a command line."""
    lot: list[str] = []
    room = _LINE_BYTES
    for path in paths:
        size = len(os.fsencode(path)) + _ARGUMENT_BYTES
        if lot and size > room:
            yield lot
            lot, room = [], _LINE_BYTES
        lot.append(path)
        room -= size
    if lot:
        yield lot


def _open_below(root: Root, path: str) -> int | None:
    try:
        with root.locate_real(split_path(path)) as spot:
            return spot.open_file()
    except ExeoraError:
        return None


def _read_file(descriptor: int | None, path: str, places: Sequence[_Place]) -> list[Match]:
    """Read the lines of one file; none of one that has gone, or leads out of the root, since it was searched."""
    if descriptor is None:
        return []
    try:
        reader = LineReader(descriptor)
        return [_make_match(path, place, reader.read_line(place.offset, place.column)) for place in places]
    except OSError:
        return []
    finally:
        os.close(descriptor)


def _make_match(path: str, place: _Place, excerpt: Excerpt) -> Match:
    return Match(path, place.line, excerpt.text, excerpt.cut)
