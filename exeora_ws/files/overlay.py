"""What a patch would make of the tree, worked out without touching it: each operation sees what those before it did."""

import os
import stat as modes
from collections.abc import Callable
from dataclasses import dataclass

from exeora_ws.errors import ExeoraError, InvalidArguments, PathNotFound, ToolFailed
from exeora_ws.files.editing import encode_text, load_text
from exeora_ws.files.hunks import apply_hunks
from exeora_ws.files.operation import Operation, OperationType
from exeora_ws.files.protection import Protection
from exeora_ws.files.root import Root
from exeora_ws.files.spot import Spot, require_regular
from exeora_ws.limits import PATCH_BYTES, PATCH_OPERATIONS

Key = tuple[str, ...]
"""Real parts of a path below the root."""


@dataclass(frozen=True, slots=True)
class Before:
    """What is on disk at a path before the patch. `stat` is None where nothing is."""

    key: Key
    shown: str
    stat: os.stat_result | None
    missing: tuple[Key, ...]
    """Folders that would have to be made."""


@dataclass(frozen=True, slots=True)
class After:
    """What a path holds after the patch: content of its own, or still what was on disk at `source`, or nothing."""

    content: bytes | None = None
    source: Key | None = None
    """Where on disk the file, with its mode and all, was before; None for a new file."""

    @property
    def absent(self) -> bool:
        """Whether nothing is there."""
        return self.content is None and self.source is None


class Overlay:
    """The tree as the operations so far leave it. Every path that any of them names is in `before` and `after`."""

    def __init__(self, root: Root, protection: Protection) -> None:
        self._root = root
        self._protection = protection
        self.before: dict[Key, Before] = {}
        self.after: dict[Key, After] = {}

    def apply(self, operation: Operation) -> None:
        """Take one operation in.

        Raises:
            InvalidArguments, PathEscape, PathNotFound, ToolFailed: it cannot be done.
        """
        _STEPS[operation.type](self, operation)

    def create(self, operation: Operation) -> None:
        """Make a new file."""
        key = self._find(operation.path, follow=False)
        if not self.after[key].absent:
            raise ToolFailed(f"{operation.path}: is there already", reason="exists", hint="replace or update it")
        self._require_free_way(key)
        self.after[key] = After(_require_content(operation))

    def replace(self, operation: Operation) -> None:
        """Give a file a whole new content."""
        key = self._require_file(operation.path)
        self.after[key] = After(_require_content(operation), self.after[key].source)

    def update(self, operation: Operation) -> None:
        """Change parts of a file."""
        key = self._require_file(operation.path)
        state = self.after[key]
        data = state.content if state.content is not None else self.load(key)
        self.after[key] = After(apply_hunks(data, operation.hunks, operation.path), state.source)

    def delete(self, operation: Operation) -> None:
        """Take a file or link away."""
        key = self._require_entry(operation.path)
        if operation.content is not None:
            self._require_content(key, operation)
        self.after[key] = After()

    def _require_content(self, key: Key, operation: Operation) -> None:
        """Check that what a patch text deletes is what it says it deletes."""
        wanted, held = _require_content(operation), self.after[key].content
        if held is None:
            with self._root.locate_real(self.after[key].source or key) as spot:
                if spot.is_link:
                    held = os.fsencode(os.readlink(spot.name, dir_fd=spot.descriptor))
                else:
                    with open(spot.open_file(), "rb") as stream:
                        held = stream.read(PATCH_BYTES * 2)
        if wanted not in (held, held.replace(b"\r\n", b"\n")):
            raise ToolFailed(
                f"{operation.path}: holds something else than the patch deletes",
                reason="no_match",
                hint="read the file again and see whether it may go",
            )

    def move(self, operation: Operation) -> None:
        """Give a file or link another path."""
        if operation.to is None:
            raise InvalidArguments("to: required for move", reason="missing_field")
        key, target = self._require_entry(operation.path), self._find(operation.to, follow=False)
        if not self.after[target].absent:
            raise ToolFailed(f"{operation.to}: is there already", reason="exists")
        self._require_free_way(target)
        self.after[target], self.after[key] = self.after[key], After()

    def load(self, key: Key) -> bytes:
        """Read the text that a path has on disk, where its `source` says."""
        with self._root.locate_real(self.after[key].source or key) as spot:
            return load_text(spot)

    def _find(self, path: str, *, follow: bool) -> Key:
        """Look a path up: in the overlay if it is there, else on disk."""
        with self._root.locate(path, follow_last=False) as spot:
            key = self._note(spot)
        found = self.before[key].stat
        on_disk = found is not None and self.after[key].source == key and self.after[key].content is None
        if follow and on_disk and found is not None and modes.S_ISLNK(found.st_mode):
            with self._root.locate(path) as spot:
                return self._note(spot)
        return key

    def _note(self, spot: Spot) -> Key:
        self._protection.require_writable(spot)
        key = spot.real
        if key not in self.before:
            made = tuple(key[:depth] for depth in range(len(key) - len(spot.missing), len(key)))
            self.before[key] = Before(key, spot.shown, spot.stat, made)
            self.after[key] = After() if spot.stat is None else After(source=key)
        return key

    def _require_entry(self, path: str) -> Key:
        """Give the key of a file or link that is there."""
        key = self._find(path, follow=False)
        self._require_there(key, path)
        found = self._stat(key)
        if found is not None and not modes.S_ISLNK(found.st_mode):
            require_regular(found, path)
        return key

    def _require_file(self, path: str) -> Key:
        """Give the key of a regular file that is there, a link's target for a link."""
        key = self._find(path, follow=True)
        self._require_there(key, path)
        found = self._stat(key)
        if found is not None:
            require_regular(found, path)
        return key

    def _require_there(self, key: Key, path: str) -> None:
        if self.after[key].absent:
            raise PathNotFound(f"{path}: no such file")

    def _stat(self, key: Key) -> os.stat_result | None:
        source = self.after[key].source
        return None if source is None else self.before[source].stat

    def _require_free_way(self, key: Key) -> None:
        """Refuse a file where another operation needs a folder, and the other way round."""
        for other, state in self.after.items():
            if state.absent or other == key:
                continue
            shorter = min(len(other), len(key))
            if other[:shorter] == key[:shorter]:
                raise ToolFailed(f"{'/'.join(key)}: another operation makes {'/'.join(other)}", reason="not_a_folder")


_STEPS: dict[OperationType, Callable[[Overlay, Operation], None]] = {
    "create": Overlay.create,
    "update": Overlay.update,
    "replace": Overlay.replace,
    "delete": Overlay.delete,
    "move": Overlay.move,
}


def _require_content(operation: Operation) -> bytes:
    if operation.content is None:
        raise InvalidArguments(f"content: required for {operation.type}", reason="missing_field")
    return encode_text(operation.content, "content")


def lay_over(root: Root, protection: Protection, operations: tuple[Operation, ...]) -> Overlay:
    """Work out a whole patch. Reads, never writes.

    Raises:
        InvalidArguments: `no_operations`, `too_many_operations`, `patch_too_large`, …
        ExeoraError: an operation cannot be done; `data.operation` is its index, from 0.
    """
    _check_size(operations)
    overlay = Overlay(root, protection)
    for index, operation in enumerate(operations):
        try:
            overlay.apply(operation)
        except ExeoraError as error:
            raise type(error)(
                f"operations[{index}] ({operation.type}): {error.message}",
                reason=error.reason,
                hint=error.hint,
                data={**(error.data or {}), "operation": index},
            ) from error
    return overlay


def _check_size(operations: tuple[Operation, ...]) -> None:
    if not operations:
        raise InvalidArguments("operations: there are none", reason="no_operations")
    if len(operations) > PATCH_OPERATIONS:
        raise InvalidArguments(
            f"operations: {len(operations)} are more than {PATCH_OPERATIONS}", reason="too_many_operations"
        )
    size = sum(_count_bytes(operation) for operation in operations)
    if size > PATCH_BYTES:
        raise InvalidArguments(
            f"operations: their texts have {size} bytes together, more than {PATCH_BYTES}", reason="patch_too_large"
        )


def _count_bytes(operation: Operation) -> int:
    texts = [operation.content or "", *(text for hunk in operation.hunks for text in (hunk.old, hunk.new))]
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
