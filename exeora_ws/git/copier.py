"""The program that makes a new worktree out of the files that another checkout has already.

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
import mmap
import os
import stat
import sys

from exeora_ws.git import gitfiles
from exeora_ws.git.index_file import MODE_AT, MODE_BYTES, STAT_BYTES, Index, Unsuited, hash_name, make_trailer
from exeora_ws.git.taking import Taker, is_full, pack_stat, write_all

COMPLETE, FAILED, INCOMPLETE, NO_ROOM, NOT_ADDED = 0, 1, 3, 4, 5
"""How it ends: with every file; it cannot be said with what; git has to write the rest; there is no room for it; git
added no worktree."""

_PIPE_BYTES = 65_536
_CHUNK_ENTRIES = 64
_MOST_CHUNKS = 8_192  # the numbers of all of them fit into a pipe
_TRIED_ENOUGH = 256
_COUNT_BYTES = 8
# All files but those without any attribute that changes what a checkout writes.
_CONVERTED = tuple(f":(exclude,attr:!filter !ident !crlf !working-tree-encoding {eol})" for eol in ("!eol", "eol=lf"))
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "")  # other spellings are left to git
_UNSUITED = ("core.ignorecase", "core.sparsecheckout", "core.splitindex")
_NEEDED = ("core.symlinks", "core.filemode")
_SHAPING = ("index.", "feature.", "core.untrackedcache", "core.sharedrepository")


class Job:
    """What is to be done, out of the command line."""

    __slots__ = ("add", "commit", "git", "index", "processes", "program", "source", "top")

    def __init__(self, words: list[str]) -> None:
        self.source, self.index, self.top, self.commit, processes, *rest = words
        self.processes = int(processes)
        split = rest.index("")
        self.add = rest[:split]
        """What git is told to add the worktree."""
        self.git = rest[split + 1 :]
        """How git is called in the repository."""
        self.program = self.git[0]


def main() -> None:
    """Make the worktree; see `COMPLETE` for the exit codes."""
    try:
        code = _make(Job(sys.argv[1:]))
    except OSError as error:
        code = NO_ROOM if is_full(error) else FAILED
    os._exit(code)


def _make(job: Job) -> int:
    """Have git add the worktree, find out meanwhile what will be in it, and fill it."""
    adding = _Child([*job.git, *job.add])
    tree = _Child([*job.git, "rev-parse", "--verify", f"{job.commit}^{{tree}}"])
    import hashlib  # noqa: F401, PLC0415  10 ms, in which git works

    same = _load_if_of(job, bytes.fromhex(tree.read().decode()))
    try:
        adding.read()
    except Unsuited:
        return NOT_ADDED
    git_dir = gitfiles.read_git_link(job.top + "/.git")
    if git_dir is None:
        return NOT_ADDED
    try:
        return _fill(job, _Target(job, git_dir), same)
    except Unsuited:
        return INCOMPLETE


def _load_if_of(job: Job, tree: bytes) -> Index | None:
    """Load the index of the source, if it is the one that the new worktree will have but for stat data."""
    try:
        with open(job.index, "rb") as stream:
            index = Index(stream.read(), len(tree))
    except (OSError, Unsuited):
        return None
    return index if index.is_of(tree) else None


class _Target:
    """The new worktree, and git in it."""

    __slots__ = ("git", "git_dir", "index")

    def __init__(self, job: Job, git_dir: str) -> None:
        self.git = [job.program, "-C", job.top, f"--git-dir={git_dir}", "-c", "core.fsmonitor=false"]
        self.git_dir = git_dir
        self.index = git_dir + "/index"

    def list_converted(self) -> _Child:
        """Ask for the files that git would not write as they are recorded.

        The attributes come out of the index, and not out of files: there are none in its own folder.
        """
        words = [*self.git, "-C", self.git_dir, f"--work-tree={self.git_dir}", "ls-files", "-z", "--", *_CONVERTED]
        return _Child(words)


def _fill(job: Job, target: _Target, same: Index | None) -> int:
    settings = _Child([*target.git, "config", "--list", "-z"]).read()
    if is_converting(settings):
        return INCOMPLETE
    mode = None
    if same is None or any(b"\0" + key.encode() in b"\0" + settings for key in _SHAPING):
        _Child([*target.git, "read-tree", job.commit]).read()
        with open(target.index, "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            same = Index(stream.read(), len(job.commit) // 2)
        same.require_fresh()
    else:
        # Asked of a copy: somebody may write the source's own meanwhile.
        with open(target.index, "wb") as stream:
            stream.write(same.data)
    converted = target.list_converted().read()
    with mmap.mmap(-1, len(same.data)) as shared:
        shared[:] = same.data
        missed = _Copying(job, same, shared, frozenset(converted.split(b"\0"))).copy_all()
        _write_index(target, shared, hash_name(job.commit), same.hash_bytes, mode)
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
        or any(found.get(key, "") not in _FALSE for key in _UNSUITED)
        or any(found.get(key, "true") not in _TRUE for key in _NEEDED)
    )


class _Child:
    """A git of ours: started at once, waited for when its answer is wanted."""

    def __init__(self, words: list[str]) -> None:
        self._output, theirs = os.pipe()
        self._pid = os.posix_spawn(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
        os.close(theirs)

    def read(self) -> bytes:
        """Give what it printed. Raises `Unsuited` when it failed."""
        pieces = []
        while piece := os.read(self._output, _PIPE_BYTES):
            pieces.append(piece)
        os.close(self._output)
        if os.waitpid(self._pid, 0)[1]:
            raise Unsuited("git failed")
        return b"".join(pieces)


class _Copying:
    """Copies with several processes, which take the next piece of work as they are done.

    Args:
        job: from where, to where.
        index: what belongs there.
        shared: the index to write, seen by all processes.
        converted: what git has to write.
    """

    def __init__(self, job: Job, index: Index, shared: mmap.mmap, converted: frozenset[bytes]) -> None:
        self._job = job
        self._index = index
        self._shared = shared
        self._converted = converted
        self._size = max(_CHUNK_ENTRIES, len(index.entries) // _MOST_CHUNKS + 1)
        self._queue, end = os.pipe()
        os.write(end, b"".join(at.to_bytes(4, "big") for at in range(0, len(index.entries), self._size)))
        os.close(end)
        self._missed = mmap.mmap(-1, _COUNT_BYTES * job.processes)

    def copy_all(self) -> int:
        """Copy; gives how many entries were not taken.

        Raises:
            OSError: the target could not be written.
        """
        children = [self._fork(number) for number in range(1, self._job.processes)]
        self._work(0)
        for child in children:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code:
                raise OSError(code if code > 0 else errno.EIO, "a copying process failed")
        counts = bytes(self._missed)
        return sum(int.from_bytes(counts[at : at + _COUNT_BYTES], "big") for at in range(0, len(counts), _COUNT_BYTES))

    def _fork(self, number: int) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = errno.EIO
        try:
            self._work(number)
            code = 0
        except OSError as error:
            code = error.errno or errno.EIO
        finally:
            os._exit(code)

    def _work(self, number: int) -> None:
        """Take piece after piece; stop trying once most of what was tried is different: then git is faster."""
        taker = Taker(self._job.source, self._job.top, hash_name(self._job.commit))
        entries, data, shared, converted = self._index.entries, self._index.data, self._shared, self._converted
        mode_end, id_end = MODE_AT + MODE_BYTES, STAT_BYTES + self._index.hash_bytes
        tried = missed = 0
        while token := os.read(self._queue, 4):
            first = int.from_bytes(token, "big")
            for at, path in entries[first : first + self._size]:
                tried += 1
                found = None
                if path not in converted and (tried < _TRIED_ENOUGH or missed * 2 < tried):
                    found = taker.take(path, data[at + MODE_AT : at + mode_end], data[at + STAT_BYTES : at + id_end])
                if found is None:
                    missed += 1
                pack_stat(shared, at, found)
        self._missed[number * _COUNT_BYTES : (number + 1) * _COUNT_BYTES] = missed.to_bytes(_COUNT_BYTES, "big")


def _write_index(target: _Target, shared: mmap.mmap, algorithm: str, hash_bytes: int, mode: int | None) -> None:
    end = len(shared) - hash_bytes
    content = bytes(shared)
    trailer = make_trailer(memoryview(content)[:end], algorithm, content[end:])
    lock = os.open(target.index + ".lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        if mode is not None:
            os.fchmod(lock, stat.S_IMODE(mode))
        write_all(lock, content[:end])
        write_all(lock, trailer)
    finally:
        os.close(lock)
    os.rename(target.index + ".lock", target.index)


if __name__ == "__main__":
    main()
