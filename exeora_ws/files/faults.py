"""The one seam where the operating system's errors become ours."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from exeora_ws.errors import ExeoraError, InvalidArguments, PathEscape, PathNotFound, ToolFailed

_REASONS = {
    errno.EACCES: ("permission_denied", "permission denied"),
    errno.EPERM: ("permission_denied", "operation not permitted"),
    errno.ENOSPC: ("disk_full", "the disk is full"),
    errno.EDQUOT: ("disk_full", "the disk quota is used up"),
    errno.EROFS: ("read_only_file_system", "the file system is read only"),
    errno.EISDIR: ("is_a_folder", "it is a folder"),
    errno.ENOTEMPTY: ("not_empty", "the folder is not empty"),
    errno.EFBIG: ("too_large", "the file would be too large"),
    errno.EEXIST: ("exists", "something is there already"),
}


def translate(error: OSError, shown: str) -> ExeoraError:
    """Make the error that the caller is told; `shown` is the path as they gave it, never an absolute one."""
    if error.errno == errno.ENOENT:
        return PathNotFound(f"{shown}: no such file or folder")
    if error.errno == errno.ENOTDIR:
        return PathNotFound(f"{shown}: a part of the path is not a folder", reason="not_a_folder")
    if error.errno == errno.ENAMETOOLONG:
        return InvalidArguments(f"{shown[:80]}…: the name is too long", reason="name_too_long")
    if error.errno == errno.ELOOP:
        return PathEscape(f"{shown}: was replaced by a link while it was being opened", reason="link_swapped")
    reason, words = _REASONS.get(error.errno or 0, ("io_error", (error.strerror or "input/output error").lower()))
    return ToolFailed(f"{shown}: {words}", reason=reason)


@contextmanager
def translated(shown: str) -> Iterator[None]:
    """Turn any `OSError` raised inside into an `ExeoraError` about `shown`."""
    try:
        yield
    except OSError as error:
        raise translate(error, shown) from error
