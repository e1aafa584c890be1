"""Taking one file of a checkout into another that has none yet, if it is the wanted object to the last byte."""

from __future__ import annotations

import errno
import os
import stat
import struct
import time

from exeora_ws.git.index_file import MODE_AT, MODE_BYTES

TYPE_CHECKING = False  # type checkers take it as true; importing `typing` would cost more than this whole module
if TYPE_CHECKING:
    import mmap

_MASK = 0xFFFFFFFF
_BEFORE_MODE = struct.Struct(">6I")
_AFTER_MODE = struct.Struct(">3I")
_AFTER_MODE_AT = MODE_AT + MODE_BYTES
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO in a file's place holds up nothing
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL
_SMALL = 65_536
_LARGE = 1 << 20
_LONGEST = 1 << 32
_FILE, _PROGRAM, _LINK, _SUBMODULE = (mode.to_bytes(4, "big") for mode in (0o100644, 0o100755, 0o120000, 0o160000))
_AGE_NS = 1_000_000_000
"""How old new files are said to be. Git compares whole seconds: what is as young as the index it reads again each time,
until something writes the index anew; the first `git status` would take four times as long."""
_PERMISSIONS = {_FILE: 0o666, _PROGRAM: 0o777}


def is_full(error: OSError) -> bool:
    """Whether there is no room for more."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def pack_stat(index: mmap.mmap, at: int, found: os.stat_result | None) -> None:
    """Put what git would into the entry at an offset: 32 bits of each; zeros for a file that git has to write."""
    if found is None:
        _BEFORE_MODE.pack_into(index, at, 0, 0, 0, 0, 0, 0)
        _AFTER_MODE.pack_into(index, at + _AFTER_MODE_AT, 0, 0, 0)
        return
    changed, changed_ns = divmod(found.st_ctime_ns, 1_000_000_000)
    modified, modified_ns = divmod(found.st_mtime_ns, 1_000_000_000)
    _BEFORE_MODE.pack_into(
        index,
        at,
        changed & _MASK,
        changed_ns,
        modified & _MASK,
        modified_ns,
        found.st_dev & _MASK,
        found.st_ino & _MASK,
    )
    _AFTER_MODE.pack_into(index, at + _AFTER_MODE_AT, found.st_uid & _MASK, found.st_gid & _MASK, found.st_size & _MASK)


def write_all(target: int, content: bytes) -> None:
    """Write to the end, also where the kernel takes it in pieces."""
    written = os.write(target, content)
    while written < len(content):
        written += os.write(target, memoryview(content)[written:])


class Taker:
    """Takes files of one checkout into another.

    Args:
        source: top folder of the one. The process works in it from now on.
        top: top folder of the other.
        algorithm: what objects are named by.
    """

    def __init__(self, source: str, top: str, algorithm: str) -> None:
        import hashlib  # noqa: PLC0415  10 ms, which pass while git is at work

        os.chdir(source)
        self._target = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._hash = getattr(hashlib, algorithm)
        born = time.time_ns() - _AGE_NS
        self._times = (born, born)

    def take(self, path: bytes, mode: bytes, object_id: bytes) -> os.stat_result | None:
        """Take one entry of an index; gives what the new file is to `lstat`, None when it was not taken.

        Raises:
            OSError: the target could not be written.
        """
        permissions = _PERMISSIONS.get(mode)
        if permissions is not None:
            return self._take_file(path, permissions, object_id)
        if mode == _LINK:
            return self._take_link(path, object_id)
        if mode == _SUBMODULE:
            _make_folders(path, self._target)
            return os.lstat(path, dir_fd=self._target)
        return None

    def _take_file(self, path: bytes, permissions: int, object_id: bytes) -> os.stat_result | None:
        try:
            source = os.open(path, _READ)
        except OSError:
            return None
        try:
            content = _read_start(source)
            if content is None:
                return None
            if len(content) == _SMALL:
                return self._take_large(source, content, path, permissions, object_id)
        finally:
            os.close(source)
        # A read cut short would not hash to the object.
        name = self._hash(b"blob %d\0" % len(content), usedforsecurity=False)
        name.update(content)
        if name.digest() != object_id:
            return None
        try:
            target = os.open(path, _WRITE, permissions, dir_fd=self._target)
        except FileNotFoundError:
            target = self._open_deep(path, permissions)
        try:
            if os.write(target, content) != len(content):
                raise OSError(errno.ENOSPC, "cut short")
            os.utime(target, ns=self._times)
            return os.fstat(target)
        finally:
            os.close(target)

    def _take_large(
        self, source: int, content: bytes, path: bytes, permissions: int, object_id: bytes
    ) -> os.stat_result | None:
        facts = os.fstat(source)
        size = facts.st_size
        if not stat.S_ISREG(facts.st_mode) or size >= _LONGEST:
            return None
        name = self._hash(b"blob %d\0" % size, usedforsecurity=False)
        target = self._open_deep(path, permissions)
        try:
            while content and size >= 0:
                name.update(content)
                write_all(target, content)
                size -= len(content)
                content = os.read(source, _LARGE)
            if size == 0 and name.digest() == object_id:
                os.utime(target, ns=self._times)
                return os.fstat(target)
        finally:
            os.close(target)
        os.unlink(path, dir_fd=self._target)
        return None

    def _open_deep(self, path: bytes, permissions: int) -> int:
        _make_folders(path[: path.rfind(b"/") + 1], self._target)
        return os.open(path, _WRITE, permissions, dir_fd=self._target)

    def _take_link(self, path: bytes, object_id: bytes) -> os.stat_result | None:
        try:
            leads_to = os.readlink(path)
        except OSError:
            return None
        if self._hash(b"blob %d\0" % len(leads_to) + leads_to, usedforsecurity=False).digest() != object_id:
            return None
        _make_folders(path[: path.rfind(b"/") + 1], self._target)
        os.symlink(leads_to, path, dir_fd=self._target)
        os.utime(path, ns=self._times, dir_fd=self._target, follow_symlinks=False)
        return os.lstat(path, dir_fd=self._target)


def _read_start(source: int) -> bytes | None:
    try:
        return os.read(source, _SMALL)
    except OSError:  # a folder, or what cannot be read
        return None


def _make_folders(path: bytes, within: int) -> None:
    """Make a folder and what is missing above it."""
    path = path.rstrip(b"/")
    if not path:
        return
    try:
        os.mkdir(path, 0o777, dir_fd=within)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_folders(path[: path.rfind(b"/") + 1], within)
        _make_folders(path, within)
