"""The tree below a folder to some depth, folders too, as a person would draw it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from exeora_ws.errors import ExeoraError
from exeora_ws.files.paths import show, split_path
from exeora_ws.files.ripgrep import Patience, Ripgrep
from exeora_ws.files.root import Root
from exeora_ws.files.spot import Spot
from exeora_ws.files.tree import Tree
from exeora_ws.limits import LIST_ENTRIES

_SKIPPED = frozenset({".git", "node_modules"})


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the drawing. `depth` counts from 0; `closed` marks a folder whose content lies deeper than asked."""

    depth: int
    name: str
    folder: bool
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """Lines in order, each folder followed by what is in it. `truncated` is True exactly when there are more."""

    path: str
    branches: tuple[Branch, ...]
    truncated: bool


def outline(spot: Spot, ripgrep: Ripgrep, patience: Patience, *, depth: int = 3, limit: int = LIST_ENTRIES) -> Outline:
    """Draw the tree below a folder, without what Git ignores and without `.git` and `node_modules`.

    Raises:
        PathNotFound: nothing there, or `not_a_folder`.
        ToolTimeout, Cancelled: as patience says.
    """
    tree = Tree(spot, ripgrep, patience, None)
    branches: list[Branch] = []
    with Root.below(spot) as root:
        for branch in _draw(root, tree, patience, "", depth):
            if len(branches) == limit:
                return Outline(spot.shown, tuple(branches), truncated=True)
            branches.append(branch)
    return Outline(spot.shown, tuple(branches), truncated=False)


def _draw(root: Root, tree: Tree, patience: Patience, top: str, depth: int) -> Iterator[Branch]:
    level = top.count("/") + 1 if top else 0
    patience.check()
    for name, folder in _scan(root, top):
        path = f"{top}/{name}" if top else name
        if name in _SKIPPED or tree.is_ignored(path, folder=folder):
            continue
        closed = folder and level + 1 >= depth
        yield Branch(level, show(name), folder, closed=closed)
        if folder and not closed:
            yield from _draw(root, tree, patience, path, depth)


def _scan(root: Root, path: str) -> list[tuple[str, bool]]:
    """Give names and whether they are folders, sorted; nothing for one that cannot be read or is a link by now."""
    try:
        with root.locate_real(split_path(path)) as spot:
            descriptor = spot.open_folder()
    except ExeoraError:
        return []
    try:
        with os.scandir(descriptor) as scan:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan)
    except OSError:
        return []
    finally:
        os.close(descriptor)
