"""Change part of a file, or the whole of it (contract, section 6). Everything here goes through the one writer."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError, InvalidArguments, ToolFailed
from exeora_ws.files.difference import Diff, diff_contents
from exeora_ws.files.faults import translated
from exeora_ws.files.kinds import require_text
from exeora_ws.files.reach import Reach
from exeora_ws.files.replacing import Replaced, Replacement, replace_text
from exeora_ws.files.snapshots import Snapshots
from exeora_ws.files.spot import Spot
from exeora_ws.files.writer import write_content
from exeora_ws.limits import EDIT_FILE_BYTES, FILE_LOCK_SECONDS
from exeora_ws.locks import hold_lock
from exeora_ws.storage import make_private_folder

Judge = Callable[[Spot], None]
"""Looks at what is about to be written, its lock held, and raises to refuse it."""
Review = Callable[[bytes, Replaced], None]
"""Looks at an edit before it is written (the old bytes, and what would be done), and raises to refuse it."""

_LOCK_FILES = 4_096  # shared by all files of the machine: two names on one lock wait for each other, no more


@dataclass(frozen=True, slots=True)
class Keeping:
    """What every write is kept safe with.

    Args:
        locks: folder of lock files, outside every repository.
        snapshots: where first contents go.
        session: whose writes they are.
        cancellation: stops the wait for a lock.
    """

    locks: Path
    snapshots: Snapshots
    session: str
    cancellation: Cancellation


@dataclass(frozen=True, slots=True)
class Edited:
    """What an edit did."""

    path: str
    replacements: int
    diff: Diff
    loose: bool
    """Whether white space had to be forgiven to find the text."""
    size: int
    """Bytes of the file afterwards."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did."""

    path: str
    bytes_written: int
    created: bool


def edit_file(
    reach: Reach,
    path: str,
    replacement: Replacement,
    keeping: Keeping,
    *,
    judge: Judge | None = None,
    review: Review | None = None,
) -> Edited:
    """Replace text in a file; only the matched bytes change.

    Args:
        reach: what the path means.
        path: which file.
        replacement: what by what.
        keeping: locks and snapshots.
        judge: may refuse the file.
        review: may refuse the edit.

    Raises:
        InvalidArguments: `empty_old_text`, `nothing_to_change`, `not_unicode`, `invalid_range`.
        ToolFailed: `no_match`, `ambiguous_match`, `not_utf8`, `binary`, `stale`, `read_only`, `too_large`, ….
        PathEscape, PathNotFound: as for any path.
    """
    with hold_spot(reach, path, keeping) as spot:
        if judge is not None:
            judge(spot)
        data = load_text(spot)
        done = replace_text(data, replacement, spot.shown)
        if review is not None:
            review(data, done)
        keep_first(spot, keeping)
        write_content(spot, done.data, read_as=data)
        diff = diff_contents(spot.shown.removeprefix("./"), data, done.data)
        return Edited(spot.shown, done.count, diff, done.loose, len(done.data))


def write_file(
    reach: Reach, path: str, content: str, keeping: Keeping, *, only_new: bool = False, judge: Judge | None = None
) -> Written:
    """Write a whole file, with the missing folders on the way to it. The bytes written are the bytes sent.

    Args:
        reach: what the path means.
        path: where to.
        content: everything the file shall hold.
        keeping: locks and snapshots.
        only_new: refuse a file that is there already.
        judge: may refuse the file.

    Raises:
        InvalidArguments: `not_unicode`.
        ToolFailed: `exists`, `is_a_folder` and its like, `stale`, `read_only`, ….
        PathEscape, PathNotFound: as for any path.
    """
    raw = encode_text(content, "content")
    with hold_spot(reach, path, keeping) as spot:
        if spot.stat is not None:
            spot.require_file()
            if only_new:
                raise ToolFailed(f"{spot.shown}: is there already", reason="exists")
        if judge is not None:
            judge(spot)
        keep_first(spot, keeping)
        write_content(spot, raw)
        return Written(spot.shown, len(raw), created=spot.stat is None)


def revert_file(
    reach: Reach, path: str, keeping: Keeping, *, any_session: bool = False, judge: Judge | None = None
) -> Written:
    """Give a file the content it had before the session first wrote it; delete it when there was none.

    Args:
        reach: what the path means.
        path: which file.
        keeping: locks, snapshots and the session.
        any_session: take the newest snapshot of any session, not only of this one.
        judge: may refuse the file.

    Raises:
        ToolFailed: `no_snapshot`, also for a file that could not be read when it was first written.
    """
    with hold_spot(reach, path, keeping) as spot:
        if judge is not None:
            judge(spot)
        snapshot = keeping.snapshots.find(spot.real_path, None if any_session else keeping.session)
        content = keeping.snapshots.load_content(snapshot) if snapshot else None
        if snapshot is None or (content is None and not snapshot.absent):
            why = f" ({snapshot.why_not})" if snapshot is not None and snapshot.why_not else ""
            raise ToolFailed(f"{spot.shown}: there is no snapshot to go back to{why}", reason="no_snapshot")
        keep_first(spot, keeping)
        if content is not None:
            if spot.stat is not None:
                spot.require_file()
            write_content(spot, content, mode=snapshot.mode)
        elif spot.stat is not None:
            spot.require_file()
            with translated(spot.shown):
                os.unlink(spot.name, dir_fd=spot.descriptor)
        return Written(spot.shown, len(content or b""), created=spot.stat is None and content is not None)


@contextmanager
def hold_spot(reach: Reach, path: str, keeping: Keeping) -> Iterator[Spot]:
    """Walk to a path that may be written and hold its lock; the spot is as it is once the lock is held.

    Raises:
        ToolFailed: `busy`.
        PathEscape, PathNotFound, InvalidArguments: as `Reach.locate_for_writing`.
    """
    with reach.locate_for_writing(path) as spot:
        lock = find_lock(keeping.locks, spot)
        shown = spot.shown
    waiting = hold_lock(lock, seconds=FILE_LOCK_SECONDS, what=shown, cancellation=keeping.cancellation)
    with waiting, reach.locate_for_writing(path) as spot:
        if find_lock(keeping.locks, spot) != lock:
            raise ToolFailed(f"{shown}: was moved while it was being opened", reason="stale", hint="try again")
        yield spot


def find_lock(locks: Path, spot: Spot) -> Path:
    """Give the lock file for what is at a spot: one for all the ways to write its real path."""
    with translated("the data folder"):
        folder = make_private_folder(locks / "files")
    digest = hashlib.sha256(os.fsencode(spot.real_path.casefold())).digest()
    return folder / f"{int.from_bytes(digest[:4], 'big') % _LOCK_FILES:03x}"


def load_text(spot: Spot) -> bytes:
    """Read a whole UTF-8 file for an edit.

    Raises:
        ToolFailed: `too_large`, `binary`, `not_utf8`, `stale`, ….
    """
    descriptor = spot.open_file()
    with translated(spot.shown), os.fdopen(descriptor, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(EDIT_FILE_BYTES + 1) if size <= EDIT_FILE_BYTES else b""
    size = max(size, len(data))  # it may have grown since
    if size > EDIT_FILE_BYTES:
        raise ToolFailed(
            f"{spot.shown}: has {size} bytes; an edit takes at most {EDIT_FILE_BYTES}",
            reason="too_large",
            hint="change it with a command",
        )
    require_text(data, spot.shown)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ToolFailed(
            f"{spot.shown}: line {line} is not UTF-8, so the file is left as it is",
            reason="not_utf8",
            hint="change it with a command that knows its encoding",
            data={"line": line},
        ) from None
    return data


def keep_first(spot: Spot, keeping: Keeping) -> None:
    """Take the snapshot that a session's first write of a path is due."""
    file = spot.real_path
    if spot.stat is None:
        keeping.snapshots.keep(keeping.session, file, None)
        return
    try:
        descriptor = spot.open_file()
    except ExeoraError as error:
        if error.reason != "permission_denied":
            raise
        keeping.snapshots.keep_unreadable(keeping.session, file)
        return
    try:
        keeping.snapshots.keep(keeping.session, file, descriptor, spot.stat.st_mode & 0o7777)
    finally:
        os.close(descriptor)


def encode_text(text: str, field: str) -> bytes:
    """Encode what a caller sent.

    Raises:
        InvalidArguments: `not_unicode`, for half a surrogate pair.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"{field}: character {error.start + 1} is half a surrogate pair", reason="not_unicode"
        ) from None
