"""The program that fills a new worktree with the files that another checkout has already.

`git worktree add` inflates every file out of the object store, one after the other. Most of them lie in the checkout
next door. A file is taken from there only if what was read hashes to the very object that the commit records for it,
and if git would write that object as it is: so nothing that another process does to it meanwhile, no edit with its
times set back, and no conversion can make a difference. What was read is what is written. The rest is left to git.

It is a program of its own, started without site packages, because it forks: that is not safe in a server with threads.
It imports next to nothing for the same reason that it exists. It runs where `command.run` kills it, and all that it
started, when the process that wants the worktree is gone.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
import struct
import sys

from exeora_ws.git import index_file

COMPLETE, FAILED, INCOMPLETE, NO_ROOM = 0, 1, 3, 4
"""How it ends. Unless it is `COMPLETE`, git has to write what is missing; with `NO_ROOM`, git could not either."""

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO in a file's place holds up nothing
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL
_SMALL = 65_536
_LARGE = 1 << 20
_LONGEST = 1 << 32
_CHUNK_ENTRIES = 64
_MOST_CHUNKS = 8_192  # the numbers of all of them fit into a pipe
_TRIED_ENOUGH = 256
_MASK = 0xFFFFFFFF
_STAT_BEFORE_MODE = struct.Struct(">6I")
_STAT_AFTER_MODE = struct.Struct(">3I")
_COUNT = struct.Struct(">Q")
_MODES = {b"\0\0\x81\xa4": 0o666, b"\0\0\x81\xed": 0o777}
_LINK = b"\0\0\xa0\0"
_SUBMODULE = b"\0\0\xe0\0"
# Files for which any attribute is given that changes what a checkout writes.
_CONVERTED = ":(exclude,attr:!filter !ident !eol !crlf !working-tree-encoding)"
_FALSE = ("false", "no", "off", "0", "")


class Job:
    """What is to be done, out of the command line."""

    __slots__ = ("commit", "git", "git_dir", "processes", "source", "top")

    def __init__(self, words: list[str]) -> None:
        self.source, self.top, self.git_dir, self.commit, processes, *self.git = words
        self.processes = int(processes)


def main() -> None:
    """Fill the worktree; see `COMPLETE` for the exit codes."""
    try:
        code = _fill(Job(sys.argv[1:]))
    except index_file.Unsuited:
        code = INCOMPLETE
    except OSError as error:
        code = NO_ROOM if error.errno in (errno.ENOSPC, errno.EDQUOT) else FAILED
    os._exit(code)


def _fill(job: Job) -> int:
    """Have git write an index without stat data, copy, and write the index with it.

    The fast half of two things is done while git does the other.
    """
    index = _Child(job, "read-tree", job.commit)
    settings = _Child(job, "config", "--list", "-z").read()
    hash_bytes = len(job.commit) // 2
    if is_converting(settings):
        return INCOMPLETE
    index.read()
    attributes = _Child(job, "-C", job.git_dir, f"--work-tree={job.git_dir}", "ls-files", "-z", "--", _CONVERTED)
    with open(job.git_dir + "/index", "rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        data = stream.read()
    entries = index_file.parse_entries(data, hash_bytes)
    converted = frozenset(attributes.read().split(b"\0"))
    with mmap.mmap(-1, len(data)) as shared:
        shared[:] = data
        missed = _copy_all(job, shared, entries, converted)
        _write_index(job, shared, hash_bytes, mode)
    return INCOMPLETE if missed else COMPLETE


def is_converting(settings: bytes) -> bool:
    """Whether this configuration (`git config --list -z`) has a checkout write anything but what is recorded."""
    found = {}
    for record in settings.decode("utf-8", "surrogateescape").split("\0"):
        key, given, value = record.partition("\n")
        found[key] = value.lower() if given else "true"
    return (
        found.get("core.autocrlf", "") not in (*_FALSE, "input")
        or found.get("core.eol", "lf") not in ("lf", "native")
        or any(found.get(key, "") not in _FALSE for key in ("core.ignorecase", "core.sparsecheckout", "core.splitindex"))
        or any(found.get(key, "true") in _FALSE for key in ("core.symlinks", "core.filemode"))
    )


class _Child:
    """A git of ours: started at once, waited for when its answer is wanted."""

    def __init__(self, job: Job, *arguments: str) -> None:
        self._output, theirs = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, theirs, 1)]
        words = [*job.git, *arguments]
        self._pid = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
        os.close(theirs)

    def read(self) -> bytes:
        """Give what it printed. Raises `Unsuited` when it failed."""
        pieces = []
        while piece := os.read(self._output, _SMALL):
            pieces.append(piece)
        os.close(self._output)
        if os.waitpid(self._pid, 0)[1]:
            raise index_file.Unsuited("git failed")
        return b"".join(pieces)


def _copy_all(job: Job, shared: mmap.mmap, entries: list[tuple[int, bytes]], converted: frozenset[bytes]) -> int:
    """Copy with several processes, which take the next piece of work as they are done; gives how much was not taken.

    Raises:
        OSError: the target could not be written.
    """
    size = max(_CHUNK_ENTRIES, len(entries) // _MOST_CHUNKS + 1)
    queue, end = os.pipe()
    os.write(end, b"".join(at.to_bytes(4, "big") for at in range(0, len(entries), size)))
    os.close(end)
    with mmap.mmap(-1, _COUNT.size * job.processes) as counts:
        children = [_fork(job, shared, entries, converted, queue, size, counts, n) for n in range(1, job.processes)]
        _work(job, shared, entries, converted, queue, size, counts, 0)
        for child in children:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code:
                raise OSError(code if code > 0 else errno.EIO, "a copying process failed")
        return sum(_COUNT.unpack_from(counts, n * _COUNT.size)[0] for n in range(job.processes))


def _fork(*task: object) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = errno.EIO
    try:
        _work(*task)  # type: ignore[arg-type]
        code = 0
    except OSError as error:
        code = error.errno or errno.EIO
    finally:
        os._exit(code)


def _work(
    job: Job,
    shared: mmap.mmap,
    entries: list[tuple[int, bytes]],
    converted: frozenset[bytes],
    queue: int,
    size: int,
    counts: mmap.mmap,
    number: int,
) -> None:
    """Take piece after piece; stop trying once most of what was tried is different: then git is faster."""
    taker = Taker(job.source, job.top, index_file.hash_name(job.commit))
    id_bytes = taker.id_bytes
    tried = missed = 0
    while token := os.read(queue, 4):
        first = int.from_bytes(token, "big")
        for offset, path in entries[first : first + size]:
            tried += 1
            at = offset + index_file.STAT_BYTES
            found = None
            if path not in converted and (tried < _TRIED_ENOUGH or missed * 2 < tried):
                found = taker.take(path, shared[offset + 24 : offset + 28], shared[at : at + id_bytes])
            if found is None:
                missed += 1
            else:
                _record(shared, offset, found)
    _COUNT.pack_into(counts, number * _COUNT.size, missed)


def _record(shared: mmap.mmap, offset: int, found: os.stat_result) -> None:
    """Put in what git would: 32 bits of each."""
    changed, modified = found.st_ctime_ns, found.st_mtime_ns
    _STAT_BEFORE_MODE.pack_into(
        shared,
        offset,
        changed // 1_000_000_000 & _MASK,
        changed % 1_000_000_000,
        modified // 1_000_000_000 & _MASK,
        modified % 1_000_000_000,
        found.st_dev & _MASK,
        found.st_ino & _MASK,
    )
    after = offset + index_file.MODE.stop
    _STAT_AFTER_MODE.pack_into(shared, after, found.st_uid & _MASK, found.st_gid & _MASK, found.st_size & _MASK)


class Taker:
    """Takes files of one checkout into another that has none, if they are the wanted objects.

    Args:
        source: top folder of the one. The process works in it from now on.
        top: top folder of the other.
        algorithm: what objects are named by.
    """

    def __init__(self, source: str, top: str, algorithm: str) -> None:
        os.chdir(source)
        self._target = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._hash = getattr(hashlib, algorithm)
        self.id_bytes = self._hash().digest_size

    def take(self, path: bytes, mode: bytes, object_id: bytes) -> os.stat_result | None:
        """Take one entry of an index; gives what the new file is to `lstat`, None when it was not taken.

        Raises:
            OSError: the target could not be written.
        """
        permissions = _MODES.get(mode)
        if permissions is not None:
            return self._take_file(path, permissions, object_id)
        if mode == _LINK:
            return self._take_link(path, object_id)
        if mode == _SUBMODULE:
            self._make(os.mkdir, path, 0o777, dir_fd=self._target)
            return os.lstat(path, dir_fd=self._target)
        return None

    def _take_file(self, path: bytes, permissions: int, object_id: bytes) -> os.stat_result | None:
        try:
            source = os.open(path, _READ)
        except OSError:
            return None
        try:
            content = os.read(source, _SMALL)
            if len(content) == _SMALL:
                return self._take_large(source, content, path, permissions, object_id)
        except IsADirectoryError:
            return None
        finally:
            os.close(source)
        # A read cut short would not hash to the object.
        name = self._hash(b"blob %d\0" % len(content), usedforsecurity=False)
        name.update(content)
        if name.digest() != object_id:
            return None
        target = self._make(os.open, path, _WRITE, permissions, dir_fd=self._target)
        try:
            _write(target, content)
            return os.fstat(target)
        finally:
            os.close(target)

    def _take_large(
        self, source: int, content: bytes, path: bytes, permissions: int, object_id: bytes
    ) -> os.stat_result | None:
        size = os.fstat(source).st_size
        if not stat.S_ISREG(os.fstat(source).st_mode) or size >= _LONGEST:
            return None
        name = self._hash(b"blob %d\0" % size, usedforsecurity=False)
        target = self._make(os.open, path, _WRITE, permissions, dir_fd=self._target)
        try:
            while content and size >= 0:
                name.update(content)
                _write(target, content)
                size -= len(content)
                content = os.read(source, _LARGE)
            if size == 0 and name.digest() == object_id:
                return os.fstat(target)
        finally:
            os.close(target)
        os.unlink(path, dir_fd=self._target)
        return None

    def _take_link(self, path: bytes, object_id: bytes) -> os.stat_result | None:
        try:
            leads_to = os.readlink(path)
        except OSError:
            return None
        if self._hash(b"blob %d\0" % len(leads_to) + leads_to, usedforsecurity=False).digest() != object_id:
            return None
        self._make(os.symlink, leads_to, path, dir_fd=self._target)
        return os.lstat(path, dir_fd=self._target)

    def _make(self, function, *arguments, dir_fd: int):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN202
        """Make something, and the folders above it if they are missing."""
        try:
            return function(*arguments, dir_fd=dir_fd)
        except FileNotFoundError:
            path = arguments[1] if function is os.symlink else arguments[0]
            at = path.find(b"/")
            while at > 0:
                _make_folder(path[:at], dir_fd)
                at = path.find(b"/", at + 1)
            return function(*arguments, dir_fd=dir_fd)


def _make_folder(path: bytes, within: int) -> None:
    try:
        os.mkdir(path, 0o777, dir_fd=within)
    except FileExistsError:
        return


def _write(target: int, content: bytes) -> None:
    written = os.write(target, content)
    while written < len(content):
        written += os.write(target, memoryview(content)[written:])


def _write_index(job: Job, shared: mmap.mmap, hash_bytes: int, mode: int) -> None:
    end = len(shared) - hash_bytes
    with memoryview(shared) as data:
        trailer = index_file.make_trailer(data[:end], index_file.hash_name(job.commit), bytes(data[end:]))
        lock = os.open(job.git_dir + "/index.lock", _WRITE, 0o666)
        try:
            os.fchmod(lock, stat.S_IMODE(mode))
            written = 0
            while written < end:
                written += os.write(lock, data[written:end])
            _write(lock, trailer)
        finally:
            os.close(lock)
    os.rename(job.git_dir + "/index.lock", job.git_dir + "/index")


if __name__ == "__main__":
    main()
