"""What a patch is about to do, written down first, so that a failure or a kill in the middle can be undone.

```
patches/ID/lock           held by the process that applies the patch
patches/ID/journal.json   here while the patch is under way; its deletion is the moment the patch counts
patches/ID/0, 1, …        what files held before
```
Undoing looks at each path: one that is as it was stays untouched, one that is as the patch made it goes back, and one
that is neither, because somebody else has written it since, is left to them and reported.
"""

import hashlib
import os
import secrets
import shutil
import stat as modes
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from exeora_ws.errors import ExeoraError, PathNotFound, ToolFailed
from exeora_ws.files.faults import translated
from exeora_ws.files.paths import split_path
from exeora_ws.files.root import Root
from exeora_ws.files.spot import Spot
from exeora_ws.files.writer import move_entry, read_xattrs, remove_file, set_xattrs, write_content
from exeora_ws.limits import SNAPSHOT_FILE_BYTES
from exeora_ws.locks import try_lock
from exeora_ws.storage import make_private_folder, replace_file

_JOURNAL = "journal.json"
_COPY_BYTES = 262_144
_MAKING_SECONDS = 3_600
_STORE = "the patch journal"
_PASSING = frozenset({"disk_full", "io_error", "read_only_file_system", "permission_denied", "read_only", "ownership"})
"""What keeps a file from being put back now, and may not the next time."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What was at a path: nothing, a link, or a file of which `backup` is the copy (None: only moved, not copied)."""

    there: bool
    link: str | None = None
    backup: str | None = None
    inode: tuple[int, int] = (0, 0)
    mode: int = 0
    owner: tuple[int, int] = (0, 0)
    times: tuple[int, int] = (0, 0)
    size: int = 0
    changed: int = 0
    """Its ctime, in nanoseconds."""
    attributes: dict[str, bytes] = {}
    """Its extended attributes, of a file that is copied."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One path of the patch. Paths are file-system bytes as Latin-1, which JSON can carry."""

    path: str
    before: Kept
    after: str | None
    """SHA-256 of what the patch puts there; None when it puts nothing of its own there."""
    moved_to: str | None = None
    draft: str
    """Name of the temporary file, beside it."""


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """A patch under way."""

    root: str
    changes: tuple[Change, ...]
    folders: tuple[str, ...]
    """Folders it makes, outermost first."""


class Entry:
    """The folder of one journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def back_up(self, spot: Spot, number: int, *, copy: bool) -> Kept:
        """Keep what is at a spot.

        Raises:
            ToolFailed: `too_large`, or what keeps it from being read.
        """
        found = spot.stat
        if found is None:
            return Kept(there=False)
        link = None
        if modes.S_ISLNK(found.st_mode):
            with translated(spot.shown):
                link = encode_path(os.readlink(spot.name, dir_fd=spot.descriptor))
        backup, attributes = self._copy(spot, str(number)) if copy and link is None else (None, {})
        return Kept(
            there=True,
            link=link,
            backup=backup,
            inode=(found.st_dev, found.st_ino),
            mode=modes.S_IMODE(found.st_mode),
            owner=(found.st_uid, found.st_gid),
            times=(found.st_atime_ns, found.st_mtime_ns),
            size=found.st_size,
            changed=found.st_ctime_ns,
            attributes=attributes,
        )

    def _copy(self, spot: Spot, name: str) -> tuple[str, dict[str, bytes]]:
        """Copy a file; gives the copy's name and the file's extended attributes."""
        descriptor = spot.open_file()
        try:
            if os.fstat(descriptor).st_size > SNAPSHOT_FILE_BYTES:
                raise _too_large(spot)
            with translated(spot.shown), open(self.folder / name, "xb", opener=_open_private) as target:
                position = 0
                while chunk := os.pread(descriptor, _COPY_BYTES, position):
                    target.write(chunk)
                    position += len(chunk)
                    if position > SNAPSHOT_FILE_BYTES:  # it grows
                        raise _too_large(spot)
                target.flush()
                os.fsync(target.fileno())
                return name, read_xattrs(descriptor)
        finally:
            os.close(descriptor)

    def begin(self, journal: Journal) -> None:
        """Write the journal: from here on the patch will be undone unless it is committed.

        Raises:
            ToolFailed: it cannot be written.
        """
        with translated(_STORE):
            replace_file(self.folder / _JOURNAL, msgspec.json.encode(journal))

    def commit(self) -> None:
        """Let the patch count."""
        (self.folder / _JOURNAL).unlink(missing_ok=True)

    def load(self) -> Journal | None:
        """Read the journal; None when the patch had not begun or was committed."""
        try:
            return msgspec.json.decode((self.folder / _JOURNAL).read_bytes(), type=Journal)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def remove(self) -> None:
        """Take the folder away."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def open_entry(patches: Path) -> Iterator[Entry]:
    """Make the folder of a new journal, marked as alive until the end of the block, and gone after it."""
    name = secrets.token_hex(8)
    with ExitStack() as held:
        with translated(_STORE):
            making = make_private_folder(make_private_folder(patches) / f".{name}")
            held.enter_context(try_lock(making / "lock"))
            os.rename(making, patches / name)  # only now does anybody look at it, and it is held already
        entry = Entry(patches / name)
        try:
            yield entry
        finally:
            if entry.load() is None:
                entry.remove()


def list_dead_entries(patches: Path) -> Iterator[Entry]:
    """Give each journal folder whose process has gone, held while it is looked at."""
    try:
        with translated(_STORE):
            names = os.listdir(patches)
    except PathNotFound:
        return
    for name in names:
        with suppress(FileNotFoundError):
            if name.startswith(".") and time.time() - os.stat(patches / name).st_mtime < _MAKING_SECONDS:
                continue
            with try_lock(patches / name / "lock") as had:
                if had:
                    yield Entry(patches / name)


@dataclass(frozen=True, slots=True)
class Undone:
    """How an undo went, as paths below the root. The journal may go unless something is `pending`."""

    left: tuple[str, ...]
    """Somebody else has written these since; they are left as they are."""
    pending: tuple[str, ...]
    """These could not be put back now; the journal keeps what they held."""


def undo(root: Root, entry: Entry, journal: Journal) -> Undone:
    """Put everything back."""
    for change in journal.changes:
        _move_back(root, change)
    ends = {change.path: _put_back(root, entry, change) for change in journal.changes}
    for change in journal.changes:
        if ends[change.path] == "pending":  # what went back after it may have made room
            ends[change.path] = _put_back(root, entry, change)
    _clean_up(root, journal)
    return Undone(*(tuple(decode_path(path) for path, end in ends.items() if end == kind) for kind in _NOT_BACK))


def _clean_up(root: Root, journal: Journal) -> None:
    """Take away drafts, and the folders that were made."""
    for change in journal.changes:
        with suppress(ExeoraError, FileNotFoundError), root.locate_real(_beside(change)) as spot:
            os.unlink(spot.name, dir_fd=spot.descriptor)
    for folder in reversed(journal.folders):
        with suppress(ExeoraError, OSError), root.locate_real(decode_key(folder)) as spot:
            os.rmdir(spot.name, dir_fd=spot.descriptor)


def _beside(change: Change) -> tuple[str, ...]:
    return (*decode_key(change.path)[:-1], change.draft)


def _move_back(root: Root, change: Change) -> None:
    """Undo a move that has taken the very file, or half of it: both names, one file."""
    if change.moved_to is None:
        return
    with (
        suppress(ExeoraError),
        root.locate_real(decode_key(change.moved_to)) as target,
        root.locate_real(decode_key(change.path)) as source,
    ):
        if target.stat is None or _inode(target.stat) != change.before.inode:
            return
        if source.stat is not None and _inode(source.stat) == change.before.inode:
            remove_file(target)
            return
        if source.stat is not None and _is_ours(source, change):
            remove_file(source)
        move_entry(target, source, source.descriptor)


def _too_large(spot: Spot) -> ToolFailed:
    return ToolFailed(f"{spot.shown}: is too large to be kept for an undo", reason="too_large", hint="use a command")


def _inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


End = Literal["back", "left", "pending"]
_NOT_BACK: tuple[End, End] = ("left", "pending")


def _put_back(root: Root, entry: Entry, change: Change) -> End:
    try:
        with root.locate_real(decode_key(change.path)) as spot:
            if _is_as_before(spot, change.before):
                return "back"
            again = _holds_backup(spot, entry, change.before)
            if spot.stat is not None and not again and not _is_ours(spot, change):
                return "left"
            if not again:
                _restore(spot, entry, change.before)
            _restore_state(spot, change.before)
            return "back"
    except ExeoraError as error:
        return "pending" if error.reason in _PASSING else "left"


def _is_as_before(spot: Spot, before: Kept) -> bool:
    if spot.stat is None:
        return not before.there
    found = spot.stat
    same_file = before.there and _inode(found) == before.inode
    # A move there and back changes the ctime and nothing else.
    return same_file and (found.st_mtime_ns, found.st_size) == (before.times[1], before.size)


def _is_ours(spot: Spot, change: Change) -> bool:
    """Whether what is there now is what the patch put there."""
    if change.after is None or spot.stat is None or not modes.S_ISREG(spot.stat.st_mode):
        return False
    with open(spot.open_file(), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == change.after


def _holds_backup(spot: Spot, entry: Entry, before: Kept) -> bool:
    """Whether an undo that did not get to its end has put the content back already."""
    if spot.stat is None or not before.there:
        return False
    if before.link is not None:
        return spot.is_link and os.readlink(spot.name, dir_fd=spot.descriptor) == decode_path(before.link)
    if before.backup is None or not modes.S_ISREG(spot.stat.st_mode) or spot.stat.st_size != before.size:
        return False
    with open(spot.open_file(), "rb") as now, open(entry.folder / before.backup, "rb") as then:
        return hashlib.file_digest(now, "sha256").digest() == hashlib.file_digest(then, "sha256").digest()


def _restore(spot: Spot, entry: Entry, before: Kept) -> None:
    with translated(spot.shown):
        if not before.there:
            os.unlink(spot.name, dir_fd=spot.descriptor)
        elif before.link is not None:
            os.symlink(decode_path(before.link), spot.name, dir_fd=spot.descriptor)
        elif before.backup is not None:
            write_content(spot, (entry.folder / before.backup).read_bytes(), mode=before.mode)
        else:
            raise ToolFailed(f"{spot.shown}: has gone", reason="stale")


def _restore_state(spot: Spot, before: Kept) -> None:
    """Give what went back its owner, mode, times and extended attributes."""
    if not before.there:
        return
    with translated(spot.shown):
        with suppress(PermissionError):
            os.chown(spot.name, *before.owner, dir_fd=spot.descriptor, follow_symlinks=False)
        if before.link is None:
            _restore_attributes(spot, before)
            os.chmod(spot.name, before.mode, dir_fd=spot.descriptor)  # giving a file away takes bits off its mode
        os.utime(spot.name, ns=before.times, dir_fd=spot.descriptor, follow_symlinks=False)


def _restore_attributes(spot: Spot, before: Kept) -> None:
    descriptor = os.open(spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.descriptor)
    try:
        set_xattrs(descriptor, before.attributes)
    finally:
        os.close(descriptor)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def encode_path(path: str) -> str:
    """Write a file-system path so that JSON carries every byte of it."""
    return os.fsencode(path).decode("latin-1")


def decode_key(text: str) -> tuple[str, ...]:
    """Give the parts of an encoded path below the root."""
    return split_path(decode_path(text))


def decode_path(text: str) -> str:
    """Undo `encode_path`."""
    return os.fsdecode(text.encode("latin-1"))
