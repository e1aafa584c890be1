"""Our own files: private folders, a replacement that is whole or not there, and whether a file may have changed.

(Project files are `files/`.)
"""

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

_SETTLED_NS = 2_000_000_000
"""A file younger than this may change again without its times telling, so it is read anew (2 s, as FAT has it)."""

FileSignature = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime of a file."""


def sign_file(path: str | os.PathLike[str] | int, *, follow: bool = True) -> FileSignature:
    """Give what tells one state of a file from the next.

    Args:
        path: the file, or a descriptor of it.
        follow: whether of a link the file behind it is meant.

    Raises:
        OSError: it is not there, or cannot be looked at.
    """
    found = os.stat(path, follow_symlinks=follow)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def is_settled(signature: FileSignature) -> bool:
    """Whether a file that still has this signature is still what it was."""
    return time.time_ns() - max(signature[3], signature[4]) > _SETTLED_NS


def make_private_folder(path: Path) -> Path:
    """Make `path` and its missing parents; what is made is 0700. Gives `path`."""
    if not path.is_dir():
        make_private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def replace_file(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Write `data` to a temporary file beside `path` and rename it over: a reader sees the old or the new bytes.

    Args:
        path: the file; its folder must exist.
        data: everything it shall hold.
        mode: permission bits of the new file.
        durable: flush file and folder to the disk first, for what cannot be made again.

    Raises:
        OSError: as the kernel says; the old file is untouched then.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if durable:
                os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if durable:
        _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
