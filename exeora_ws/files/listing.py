"""What is in a folder: one level by the folder itself, all levels by ripgrep's walk, links added by our own.

Entries come sorted, folder by folder, and the glob and the ignore rules apply before the limit.
"""

import heapq
import os
import stat as modes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter

import msgspec

from exeora_ws.errors import ExeoraError
from exeora_ws.files.checkout import CheckedOut
from exeora_ws.files.faults import translated
from exeora_ws.files.globs import Glob
from exeora_ws.files.links import find_links
from exeora_ws.files.paths import join_shown, split_path
from exeora_ws.files.ripgrep import Patience, Ripgrep
from exeora_ws.files.root import Root
from exeora_ws.files.sizes import take_what_fits
from exeora_ws.files.spot import Kind, Spot, Trail
from exeora_ws.files.tree import Tree, sort_key
from exeora_ws.limits import LIST_ENTRIES

_KINDS: dict[int, Kind] = {modes.S_IFREG: "file", modes.S_IFDIR: "directory", modes.S_IFLNK: "symlink"}


class Entry(msgspec.Struct, frozen=True):
    """One thing in a folder; `path` is as callers give paths, `size` is in bytes and only files have one."""

    path: str
    type: Kind
    size: int | None


@dataclass(frozen=True, slots=True)
class Listing:
    """Sorted entries, as many as an answer may hold. `truncated` is True exactly when there are more."""

    path: str
    entries: tuple[Entry, ...]
    truncated: bool
    unreadable: int = 0
    """Folders below that could not be read."""


def list_folder(spot: Spot, *, glob: Glob | None = None, limit: int = LIST_ENTRIES) -> Listing:
    """List one level, everything in it: hidden, ignored, links, folders. Of a file or link, list itself.

    Raises:
        PathNotFound, ToolFailed: nothing there, `permission_denied`.
    """
    if not spot.is_folder:
        return _list_one(spot, glob)
    descriptor = spot.open_folder()
    try:
        with translated(spot.shown), os.scandir(descriptor) as scan:
            found = (e for e in scan if glob is None or glob.matches(e.name, folder=e.is_dir(follow_symlinks=False)))
            chosen = _take_first(found, limit + 1)
            looked = (_look_at(entry, spot.shown) for entry in chosen[:limit])
            entries = (entry for entry in looked if entry)
            fitting, cut = take_what_fits(entries, _get_texts)
    finally:
        os.close(descriptor)
    return Listing(spot.shown, fitting, truncated=cut or len(chosen) > limit)


def _take_first(found: "Iterator[os.DirEntry[str]]", count: int) -> "list[os.DirEntry[str]]":
    """Give the first so many by the bytes of their names; more are not kept meanwhile."""
    some = list(islice(found, count))
    if len(some) < count:
        # Of plain names the order of the characters is that of the bytes.
        plain = all(entry.name.isascii() for entry in some)
        return sorted(some, key=attrgetter("name") if plain else _order)
    return heapq.nsmallest(count, chain(some, found), key=_order)


def _order(entry: "os.DirEntry[str]") -> bytes:
    return os.fsencode(entry.name)


def _look_at(entry: "os.DirEntry[str]", shown: str) -> Entry | None:
    """Describe an entry; None when it has gone. The folder says itself what is a folder or a link: no more is asked."""
    path = join_shown(shown, entry.name)
    try:
        if entry.is_symlink():
            return Entry(path, "symlink", None)
        if entry.is_dir(follow_symlinks=False):
            return Entry(path, "directory", None)
        return _make_entry(path, entry.stat(follow_symlinks=False))
    except OSError:
        return None


def list_tree(
    spot: Spot, ripgrep: Ripgrep, patience: Patience, *, glob: Glob | None = None, limit: int = LIST_ENTRIES
) -> Listing:
    """List every file and link below a folder that is tracked or not ignored, without `.git` and `node_modules`.

    Git says which these are; outside a checkout, and where there is no git, ripgrep does. Folders show through what is
    in them. A folder that is itself ignored is listed when it is the one named.

    Raises:
        ToolTimeout, Cancelled: as patience says.
        ToolFailed: `ripgrep_missing`, `search_failed`.
    """
    if not spot.is_folder:
        return _list_one(spot, glob)
    tree = Tree(spot, ripgrep, patience, None if glob is not None and glob.everything else glob)
    with Root.below(spot) as root:  # the folder as it is now, whatever takes its name meanwhile
        found = tree.ask_git()
        if found is not None:
            _look_into_repositories(found, root, ripgrep, patience)
            listed, more = _take_from_checkout(found, root, spot.shown, limit)
        else:
            listed, more = _walk(tree, root, spot.shown, limit)
        entries, cut = take_what_fits(listed, _get_texts)
    return Listing(spot.shown, entries, truncated=cut or more, unreadable=tree.unreadable)


def _take_from_checkout(found: CheckedOut, root: Root, shown: str, limit: int) -> tuple[Iterable[Entry], bool]:
    """Take the first that are there: Git names what is tracked, and the file may be gone, or a folder by now."""
    count = limit + 1
    while True:
        paths, more = found.find_first(count)
        entries = [entry for entry in _stat_all(root, shown, paths) if entry.type in ("file", "symlink")]
        if len(entries) > limit or not more:
            return entries[:limit], len(entries) > limit
        count *= 8


def _look_into_repositories(found: CheckedOut, root: Root, ripgrep: Ripgrep, patience: Patience) -> None:
    for folder in found.repositories:
        spot = _find_folder(root, folder)
        if spot is None:
            continue
        with spot, Root.below(spot) as inner:
            tree = Tree(spot, ripgrep, patience, None)
            files = list(tree.walk())
            links = find_links(inner, tree, {os.path.dirname(path) for path in files}, None)
            found.add(f"{folder}/{path}" for path in (*files, *links))


def _find_folder(root: Root, path: str) -> Spot | None:
    """Give a folder below that is there and behind no link; None for anything else."""
    try:
        spot = root.locate_real(split_path(path))
    except ExeoraError:
        return None
    if spot.is_folder:
        return spot
    spot.close()
    return None


def _walk(tree: Tree, root: Root, shown: str, limit: int) -> tuple[Iterable[Entry], bool]:
    """Have ripgrep walk, and add the links."""
    files, more = tree.find_files(limit)
    cutoff = sort_key(files[-1]) if more else None
    links = find_links(root, tree, {os.path.dirname(path) for path in files}, cutoff)
    chosen = sorted((*files, *filter(tree.is_chosen, links)), key=sort_key)
    return _stat_all(root, shown, chosen[:limit]), more or len(chosen) > limit


def _list_one(spot: Spot, glob: Glob | None) -> Listing:
    found = spot.require_there()
    if glob is not None and not glob.matches(os.path.basename(spot.shown)):
        return Listing(spot.shown, (), truncated=False)
    return Listing(spot.shown, (_make_entry(spot.shown, found),), truncated=False)


def _make_entry(path: str, found: os.stat_result) -> Entry:
    kind = _KINDS.get(modes.S_IFMT(found.st_mode), "other")
    return Entry(path, kind, found.st_size if kind == "file" else None)


def _get_texts(entry: Entry) -> tuple[str]:
    return (entry.path,)


def _stat_all(root: Root, shown: str, paths: Iterable[str]) -> Iterator[Entry]:
    """Look at each path inside the root; what has gone meanwhile, or is reached through a link now, is left out.

    Paths come folder by folder, so each folder is entered from the one before.
    """
    trail = Trail(root.descriptor)
    last, there = "", True
    try:
        for path in paths:
            parent, _, name = path.rpartition("/")
            if parent != last:
                there, last = _go(trail, split_path(parent)), parent
            found = _lstat(name, trail.here) if there else None
            if found is not None:
                yield _make_entry(join_shown(shown, path), found)
    finally:
        trail.close()


def _go(trail: Trail, folder: tuple[str, ...]) -> bool:
    """Go to a folder, through no link; says whether it is there."""
    shared = 0
    while shared < min(len(folder), len(trail.names)) and folder[shared] == trail.names[shared]:
        shared += 1
    while len(trail.names) > shared:
        trail.leave()
    try:
        for name in folder[shared:]:
            trail.enter(name)
    except OSError:
        return False
    return True


def _lstat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
