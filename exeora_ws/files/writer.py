"""The one writer of project files: a draft in the same folder, flushed, then renamed over (contract, section 6).

What is renamed over keeps its mode, owner and extended attributes; a file that changed since it was read is left alone.
"""

import errno
import os
import secrets
import stat as modes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from exeora_ws.errors import ToolFailed
from exeora_ws.files.faults import translated
from exeora_ws.files.spot import Held, Spot

_DRAFT = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_TMPFILE = getattr(os, "O_TMPFILE", 0)
_NO_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
_NO_HARD_LINK = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)  # by the file system, or for a file of somebody else
_XATTRS_LOST = (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA, errno.ERANGE)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_content(
    spot: Spot,
    content: bytes,
    *,
    read_as: bytes | None = None,
    mode: int | None = None,
    draft_name: str | None = None,
) -> None:
    """Put `content` where the spot leads, whole or not at all; missing folders are made, and unmade on failure.

    Args:
        spot: a regular file as it was read (its `stat` is what must still be there), or nothing.
        content: everything the file shall hold.
        read_as: what the old file was read as, compared once more before it goes: two writes within one tick of the
            file system's clock look alike otherwise.
        mode: permission bits of a new file; None for what the umask leaves of 0666.
        draft_name: the temporary file's name, for a caller that cleans up after a kill.

    Raises:
        ToolFailed: `stale` when the file changed, appeared or went since `spot` was made; `read_only`,
            `ownership`, `permission_denied`, `disk_full`, … with the old file untouched.
    """
    with translated(spot.shown), make_parents(spot) as folder, _Draft(folder, draft_name) as draft:
        draft.fill(content)
        if spot.stat is None:
            if mode is not None:
                os.fchmod(draft.descriptor, mode)
            draft.publish_new(spot)
        else:
            require_writable_mode(spot)
            draft.inherit(spot, spot.stat)
            if read_as is not None:
                _require_content(spot, read_as)
            draft.publish_over(spot)


def remove_file(spot: Spot) -> None:
    """Delete the file or link at the spot, when it is still the one that was looked at.

    Raises:
        ToolFailed: `stale`, `permission_denied`, ….
    """
    require_unchanged(spot)
    with translated(spot.shown):
        os.unlink(spot.name, dir_fd=spot.descriptor)


def move_entry(source: Spot, target: Spot, folder: int) -> None:
    """Give a file or link another name, in an open folder: the very file, and never over something else.

    Raises:
        ToolFailed: `stale` when the target's name is taken.
    """
    require_unchanged(source)
    with translated(target.shown):
        try:
            # For an instant the file has both names, so that what appears there meanwhile is not lost.
            os.link(source.name, target.name, src_dir_fd=source.descriptor, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise _stale(target) from None
        except OSError as error:
            if error.errno not in _NO_HARD_LINK:
                raise
            _require_free(target, folder)
            os.rename(source.name, target.name, src_dir_fd=source.descriptor, dst_dir_fd=folder)
        else:
            os.unlink(source.name, dir_fd=source.descriptor)


def _require_free(spot: Spot, folder: int) -> None:
    """Check that a name is free, where no system call checks and takes it in one."""
    with suppress(FileNotFoundError):
        os.stat(spot.name, dir_fd=folder, follow_symlinks=False)
        raise _stale(spot) from None


def require_unchanged(spot: Spot) -> None:
    """Check that what is at the spot is what was there when it was made.

    Raises:
        ToolFailed: `stale`.
    """
    try:
        now: os.stat_result | None = os.stat(spot.name, dir_fd=spot.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if not same_state(spot.stat, now):
        raise _stale(spot)


def same_state(before: os.stat_result | None, now: os.stat_result | None) -> bool:
    """Whether two `stat` results are of one file that nobody has written in between."""
    if before is None or now is None:
        return before is now
    return _state(before) == _state(now)


def _state(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def require_writable_mode(spot: Spot) -> None:
    """Refuse a file whose own permissions forbid writing, though its folder would allow the rename.

    Raises:
        ToolFailed: `read_only`.
    """
    if not os.access(spot.name, os.W_OK, dir_fd=spot.descriptor, effective_ids=True):
        raise ToolFailed(
            f"{spot.shown}: is read only", reason="read_only", hint="change its mode first if it is meant to change"
        )


def _require_content(spot: Spot, read_as: bytes) -> None:
    with open(spot.open_file(), "rb") as stream:
        if stream.read(len(read_as) + 1) != read_as:
            raise _stale(spot)


def _stale(spot: Spot) -> ToolFailed:
    return ToolFailed(
        f"{spot.shown}: changed while it was being written; nothing was overwritten",
        reason="stale",
        hint="read it again and repeat the change",
    )


@contextmanager
def make_parents(spot: Spot) -> Iterator[int]:
    """Make the folders that are missing on the way to the spot; gives the last one. They go again on failure."""
    made: list[tuple[Held, str]] = []
    here = Held(os.dup(spot.descriptor))
    try:
        for name in spot.missing:
            with suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=here.descriptor)
                made.append((Held(os.dup(here.descriptor)), name))
            inner = os.open(name, _FOLDER, dir_fd=here.descriptor)
            here.close()
            here = Held(inner)
        yield here.descriptor
    except BaseException:
        for folder, name in reversed(made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder.descriptor)
        raise
    finally:
        here.close()
        for folder, _ in made:
            folder.close()


class _Draft(Held):
    """The new content before it has the file's name: without any name where the file system can do that."""

    def __init__(self, folder: int, name: str | None) -> None:
        self._folder = folder
        self._name = name or f".exeora-{secrets.token_hex(8)}.tmp"
        self._named = False
        super().__init__(self._open())

    def _open(self) -> int:
        if _TMPFILE:
            try:
                return os.open(".", _TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=self._folder)
            except OSError as error:
                if error.errno not in _NO_TMPFILE:
                    raise
        descriptor = os.open(self._name, _DRAFT | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=self._folder)
        self._named = True
        return descriptor

    def close(self) -> None:
        """Close it, and take away the temporary name if it still has one."""
        if self._named:
            self._named = False
            with suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._folder)
        super().close()

    def fill(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            view = view[os.write(self.descriptor, view) :]
        os.fsync(self.descriptor)

    def inherit(self, spot: Spot, old: os.stat_result) -> None:
        """Take over owner, mode and extended attributes."""
        mine = os.fstat(self.descriptor)
        if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
            try:
                os.fchown(self.descriptor, old.st_uid, old.st_gid)
            except PermissionError:
                raise ToolFailed(
                    f"{spot.shown}: belongs to another user or group, which a replacement could not keep",
                    reason="ownership",
                ) from None
        os.fchmod(self.descriptor, modes.S_IMODE(old.st_mode))
        _copy_xattrs(spot, self.descriptor)

    def publish_new(self, spot: Spot) -> None:
        """Give it the file's name, which must be free."""
        try:
            self._link(spot.name)
        except FileExistsError:
            raise _stale(spot) from None
        except OSError as error:
            if not self._named or error.errno not in _NO_HARD_LINK:
                raise
            _require_free(spot, self._folder)
            os.rename(self._name, spot.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._named = False

    def publish_over(self, spot: Spot) -> None:
        """Give it the file's name in place of the old file."""
        if not self._named:
            self._link(self._name)
            self._named = True
        require_unchanged(spot)
        os.rename(self._name, spot.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._named = False

    def _link(self, name: str) -> None:
        if self._named:
            os.link(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        else:
            os.link(f"/proc/self/fd/{self.descriptor}", name, dst_dir_fd=self._folder, follow_symlinks=True)


def _copy_xattrs(spot: Spot, target: int) -> None:
    try:
        source = os.open(spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=spot.descriptor)
    except PermissionError:
        return
    with Held(source):
        set_xattrs(target, read_xattrs(source))


def read_xattrs(descriptor: int) -> dict[str, bytes]:
    """Give the extended attributes of an open file that may be read; none where the system has no such thing."""
    found: dict[str, bytes] = {}
    if hasattr(os, "listxattr"):
        with _losing_xattrs():
            for name in os.listxattr(descriptor):
                with _losing_xattrs():
                    found[name] = os.getxattr(descriptor, name)
    return found


def set_xattrs(descriptor: int, wanted: Mapping[str, bytes]) -> None:
    """Give an open file extended attributes, as far as this user may."""
    for name, value in wanted.items():
        with _losing_xattrs():
            os.setxattr(descriptor, name, value)


@contextmanager
def _losing_xattrs() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _XATTRS_LOST:
            raise
