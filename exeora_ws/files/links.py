"""The links below a folder: ripgrep's walk passes over them, a listing may not."""

import os
from collections.abc import Iterator

from exeora_ws.errors import ExeoraError
from exeora_ws.files.paths import split_path
from exeora_ws.files.root import Root
from exeora_ws.files.tree import Tree, sort_key

_SKIPPED = frozenset({".git", "node_modules"})


def find_links(root: Root, tree: Tree, holding: set[str], cutoff: bytes | None) -> list[str]:
    """Find the links below a folder that are not ignored, as paths relative to it.

    Args:
        root: the folder.
        tree: asked about links, and about folders not in `holding`.
        holding: folders known to hold listed files, so not ignored.
        cutoff: sort key past which nothing is wanted.
    """
    known = {above for path in holding for above in _climb(path)}
    return list(_Walk(tree, known, cutoff).find(root, ""))


def _climb(path: str) -> Iterator[str]:
    while path:
        yield path
        path = os.path.dirname(path)


class _Walk:
    def __init__(self, tree: Tree, known: set[str], cutoff: bytes | None) -> None:
        self._tree = tree
        self._known = known
        self._cutoff = cutoff

    def find(self, root: Root, top: str) -> Iterator[str]:
        """Walk down from `top` without recursion, so that no depth is too deep."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            for path, is_link in self._scan(root, folder):
                if self._past(path):
                    continue
                if is_link:
                    if not self._tree.is_ignored(path, folder=False):
                        yield path
                elif path in self._known or not self._tree.is_ignored(path, folder=True):
                    waiting.append(path)

    def _past(self, path: str) -> bool:
        return self._cutoff is not None and sort_key(path) > self._cutoff

    @staticmethod
    def _scan(root: Root, folder: str) -> list[tuple[str, bool]]:
        """Give the links and folders in a folder; nothing for one that cannot be read or is a link by now."""
        try:
            with root.locate_real(split_path(folder)) as spot:
                descriptor = spot.open_folder()
        except ExeoraError:
            return []
        head = f"{folder}/" if folder else ""
        try:
            with os.scandir(descriptor) as scan:
                return [
                    (head + entry.name, entry.is_symlink())
                    for entry in scan
                    if (entry.is_symlink() or entry.is_dir(follow_symlinks=False)) and entry.name not in _SKIPPED
                ]
        except OSError:
            return []
        finally:
            os.close(descriptor)
