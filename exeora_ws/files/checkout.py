"""The files below a folder of a Git checkout, as Git lists them: tracked ones even where a rule would ignore them.

A repository inside the checkout (a submodule, a clone that somebody left there) is one entry to Git; what is in it is
walked as outside Git.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, Self

from exeora_ws.cancellation import Cancellation
from exeora_ws.files.globs import Glob

_SPARE = 1_000
_BLOCK_BYTES = 500_000
_SKIPPED = b"node_modules"
_LINKED = re.compile(rb"(?:^|\0)[A-Za-z] 160000 [^\0\t]*\t([^\0]*)")
_FOUND_REPOSITORY = re.compile(rb"(?:^|\0)\? ([^\0]*)/(?=\0)")


class Contents(Protocol):
    """What git says is there (`git.contents.Contents`)."""

    @property
    def records(self) -> bytes:
        """What it printed."""
        ...

    @property
    def unreadable(self) -> int:
        """Folders that could not be read."""
        ...


ListContents = Callable[[str, str, Cancellation, float], Contents | None]
"""Asks Git about a folder of a checkout (`git.contents.list_contents`); handed in, since git is not this room's."""
ListTrackedIgnored = Callable[[str, str, Cancellation, float], Sequence[str]]
"""Asks Git which tracked files a rule would ignore (`git.contents.list_tracked_ignored`)."""


class CheckedOut:
    """What Git says is below one folder, as paths relative to that folder.

    Args:
        contents: what git said.
        folder: relative to the checkout's top, `.` for the top.
        glob: which paths are wanted.
    """

    def __init__(self, contents: Contents, folder: str, glob: Glob | None) -> None:
        self._records = contents.records
        self._skip = 0 if folder == "." else len(folder.encode("utf-8", "surrogateescape")) + 1
        self._glob = glob
        self._needles = glob.needles if glob is not None else ()
        self.unreadable = contents.unreadable
        self.repositories = sorted(self._list_repositories())
        """Folders that are repositories of their own: nothing in them is among the files."""
        self._extra: list[bytes] = []

    @classmethod
    def of(cls, contents: Contents | None, folder: str, glob: Glob | None) -> Self | None:
        """Take what git said; None when that is nothing, or only that the folder is in a repository further in."""
        if contents is None or not contents.records:
            return None
        found = cls(contents, folder, glob)
        return None if "" in found.repositories else found

    @property
    def all_tracked(self) -> bool:
        """Whether nothing untracked is there that is not ignored: the folder itself may be ignored then."""
        return not self._records.startswith(b"? ") and b"\0? " not in self._records

    def add(self, paths: Iterable[str]) -> None:
        """Take in what was found inside its repositories."""
        chosen = filter(self._is_chosen, (path.encode("utf-8", "surrogateescape") for path in paths))
        self._extra += map(_to_key, chosen)

    def find_first(self, count: int) -> tuple[list[str], bool]:
        """Give the first `count` paths in order, folder by folder, and whether there are more."""
        kept = list(self._extra)
        last: bytes | None = None
        for keys in self._read_keys():
            kept += keys if last is None else [key for key in keys if key <= last]
            if len(kept) > 4 * count + _SPARE:
                kept = sorted(set(kept))
                last = kept[count] if len(kept) > count else None
                del kept[count + 1 :]
        kept = sorted(set(kept))
        return [_to_path(key) for key in kept[:count]], len(kept) > count

    def _read_keys(self) -> Iterator[list[bytes]]:
        apart = {folder.encode("utf-8", "surrogateescape") for folder in self.repositories}
        for block in self._read_blocks():
            paths = self._cut(self._choose(block.split(b"\0")))
            if apart:
                paths = [path for path in paths if path.rstrip(b"/") not in apart]
            if _SKIPPED in block:
                paths = [path for path in paths if _SKIPPED not in path.split(b"/")]
            if self._glob is not None:
                paths = [path for path in paths if self._is_chosen(path)]
            yield [path.replace(b"/", b"\0") for path in paths]

    def _read_blocks(self) -> Iterator[bytes]:
        """Give the records some at a time, so that few are in pieces at once."""
        start, end = 0, len(self._records)
        while start < end:
            stop = self._records.find(b"\0", min(start + _BLOCK_BYTES, end - 1))
            yield self._records[start:stop]
            start = stop + 1

    def _choose(self, records: list[bytes]) -> list[bytes]:
        """Drop what the glob cannot choose."""
        if len(self._needles) == 1:
            (needle,) = self._needles
            return [record for record in records if needle in record]
        if self._needles:
            return [record for record in records if any(needle in record for needle in self._needles)]
        return records

    def _cut(self, records: list[bytes]) -> list[bytes]:
        """Give the paths. What stands before those of tracked files is equally long, as their object ids are."""
        tracked = next((record for record in records if not record.startswith(b"?")), b"")
        start = tracked.find(b"\t") + 1 + self._skip
        other = len(b"? ") + self._skip
        return [record[other:] if record.startswith(b"?") else record[start:] for record in records]

    def _is_chosen(self, path: bytes) -> bool:
        return self._glob is None or self._glob.matches(path.decode("utf-8", "surrogateescape"))

    def _list_repositories(self) -> Iterator[str]:
        found: list[bytes] = []
        if b" 160000 " in self._records:
            found += _LINKED.findall(self._records)
        if b"/\0" in self._records:
            found += _FOUND_REPOSITORY.findall(self._records)
        for path in found:
            if _SKIPPED not in path[self._skip :].split(b"/"):
                yield path[self._skip :].decode("utf-8", "surrogateescape")


def _to_key(path: bytes) -> bytes:
    """Give what sorts folder by folder; no path holds a NUL, so it can be turned back."""
    return path.replace(b"/", b"\0")


def _to_path(key: bytes) -> str:
    return key.replace(b"\0", b"/").decode("utf-8", "surrogateescape")
