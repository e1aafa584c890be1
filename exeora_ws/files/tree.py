"""The files below a folder as ripgrep walks them: which rules count there, and which paths are chosen."""

import heapq
import os
from collections.abc import Iterator, Sequence

from exeora_ws.files.checkout import CheckedOut
from exeora_ws.files.globs import Glob
from exeora_ws.files.ignores import Ignores
from exeora_ws.files.ripgrep import Patience, PipedChild, Ripgrep, finish, read_chunks
from exeora_ws.files.spot import Spot

SKIPPED = "node_modules"
"""Left out by every listing and search, tracked or not, unless it is named."""
_SPARE = 1_000
_END_SECONDS = 5.0


def sort_key(path: str) -> bytes:
    """Order paths folder by folder, by bytes."""
    return os.fsencode(path).replace(b"/", b"\0")


class Tree:
    """The files ripgrep finds below one folder, as paths relative to it.

    Args:
        spot: the folder.
        ripgrep: what walks it.
        patience: how long.
        glob: which paths are wanted.
    """

    def __init__(self, spot: Spot, ripgrep: Ripgrep, patience: Patience, glob: Glob | None) -> None:
        self._spot = spot
        self._ripgrep = ripgrep
        self._patience = patience
        self._glob = glob
        self._seen = 0
        self.unreadable = 0
        """Folders that could not be read."""
        self._ignoring = True
        self._folder = "/".join(spot.real)
        self._ignores = Ignores(str(spot.root.path), ripgrep.environ, ripgrep.find_excludes)
        self._from_top = os.path.normpath(os.path.relpath(spot.root.path, self._ignores.top) + "/" + self._folder)
        self._start = "./" if self._from_top == "." else f"./{self._from_top}"
        self._skip = len(os.fsencode(self._start.rstrip("/"))) + 1

    def list_tracked_ignored(self) -> Sequence[str]:
        """Give the tracked files that ripgrep passes over, as paths relative to this folder, less unwanted ones."""
        ask = self._ripgrep.list_tracked_ignored
        if ask is None or not self._ignores.in_repository:
            return ()
        found = ask(self._ignores.top, self._from_top, self._patience.cancellation, self._patience.left)
        return [path for path in found if self.is_chosen(path) and SKIPPED not in path.split("/")]

    def run_on(self, arguments: Sequence[str], paths: Sequence[str]) -> PipedChild:
        """Start ripgrep on some files here, whatever rules say of them. It follows those that are links."""
        files = [f"{self._start.rstrip('/')}/{path}" for path in paths]
        return self._ripgrep.start(self._spot.root, [*arguments, "--", *files], folder=self._from)

    def run(self, arguments: Sequence[str]) -> PipedChild:
        """Start ripgrep on this folder, with the rules and the glob."""
        rules = self._write_rules()
        if rules:
            arguments = [*arguments, "--ignore-file=/dev/stdin"]
        return self._ripgrep.start(self._spot.root, [*arguments, "--", self._start], stdin=rules, folder=self._from)

    @property
    def _from(self) -> str | None:
        """The folder above the root that ripgrep runs in; None for the root itself."""
        return None if self._ignores.top == str(self._spot.root.path) else self._ignores.top

    def name(self, path: bytes) -> str:
        """Give a path that ripgrep printed relative to this folder."""
        return os.fsdecode(path[self._skip :])

    def is_chosen(self, path: str) -> bool:
        """Whether the glob lets a path (relative to this folder) through."""
        return self._glob is None or self._glob.matches(path)

    def is_ignored(self, path: str, *, folder: bool) -> bool:
        """Judge a link, or a folder, that ripgrep does not show."""
        below = f"{self._folder}/{path}" if self._folder else path
        return self._ignores.is_ignored(below, folder=folder, named=self._folder) and self._ignoring

    def _write_rules(self) -> bytes:
        glob = self._glob.to_ignore_file("" if self._from_top == "." else self._from_top) if self._glob else b""
        lines = self._ignores.gather(self._folder) if self._ignoring else []
        good = [line for line in lines if line.isascii() or max(line) < "\udc80" or max(line) > "\udcff"]
        return glob + "\n".join(good).encode()

    def admit_ignored(self) -> bool:
        """Stop counting the rules from outside this folder when they leave nothing of it; says whether so.

        A folder that is asked for by name is looked into, ignored or not.
        """
        if not self._folder or not self._ignoring or self._holds_anything():
            return False
        self._ignoring = False
        return True

    def _holds_anything(self) -> bool:
        whole = Tree(self._spot, self._ripgrep, self._patience, None)
        with whole.run(["--files", "--quiet"]) as child:
            for _ in read_chunks(child, self._patience):
                pass
            return child.wait(_END_SECONDS) == 0

    def ask_git(self) -> CheckedOut | None:
        """Have Git list this folder; None outside a checkout, and where Git lists nothing of it or ignores it.

        A folder that is asked for by name is looked into, ignored or not: that is for ripgrep then.
        """
        ask = self._ripgrep.list_contents
        if ask is None or not self._ignores.in_repository:
            return None
        contents = ask(self._ignores.top, self._from_top, self._patience.cancellation, self._patience.left)
        self._patience.check()
        found = CheckedOut.of(contents, self._from_top, self._glob)
        if found is None or (self._folder and found.all_tracked and self._is_ignored_itself()):
            return None
        self.unreadable = found.unreadable
        return found

    def _is_ignored_itself(self) -> bool:
        return self._ignores.is_ignored(self._folder, folder=True)

    def find_files(self, limit: int) -> tuple[list[str], bool]:
        """Give the first `limit` files in order, and whether there are more."""
        found = self._find_first(limit + 1)
        if not found and self.admit_ignored():
            found = self._find_first(limit + 1)
        return found[:limit], len(found) > limit

    def _find_first(self, count: int) -> list[str]:
        kept: list[str] = []
        for path in self.walk():
            self._seen += 1
            if self.is_chosen(path):
                kept.append(path)
                if len(kept) > 4 * count + _SPARE:
                    kept = heapq.nsmallest(count, kept, key=sort_key)
        return sorted(kept, key=sort_key)[:count]

    def walk(self) -> Iterator[str]:
        """Give every file that ripgrep finds, in any order."""
        with self.run(["--files", "--null"]) as child:
            rest = b""
            for chunk in read_chunks(child, self._patience, self._tell):
                *paths, rest = (rest + chunk).split(b"\0")
                yield from map(self.name, paths)
            self.unreadable = finish(child)

    def _tell(self, _line: str) -> None:
        self._patience.progress(f"listing: {self._seen} files so far")


def _is_unicode(line: str) -> bool:
    """Whether a rule is UTF-8: ripgrep would stop reading at one that is not."""
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True
