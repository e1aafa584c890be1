"""Copy and link untracked files into a new workspace: nothing is overwritten, no link is followed, no checkout entered.

Files are cloned (`FICLONE`) where the file system can: 1 GB takes a millisecond then, and no space.
"""

import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from exeora_ws.errors import ToolFailed
from exeora_ws.limits import COPY_SEARCH_ENTRIES

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_SHOWN = 100
_CLASS = re.compile(r"\[[!^]?\[:")
_FICLONE = 0x40049409
_CANNOT_CLONE = frozenset((errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM))


@dataclass(slots=True)
class Copied:
    """What was done. `skipped` holds (path, reason).

    Reasons: `exists`, `link_in_the_way`, `checkout`, `special`, `missing`, `leads_out`, `too_many_to_search`,
    `disk_full`, `failed`.
    """

    files: int = 0
    cloned: int = 0
    links: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


class Patterns:
    """Patterns in the syntax of `.gitignore`.

    Raises:
        ToolFailed: reason `setup_invalid`, naming the pattern: what is not understood is not guessed at.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        for line in lines:
            _require_understood(line)
        self._spec = _compile(lines) if lines else None

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return self._spec is not None

    def match(self, path: str) -> bool:
        """Whether a path is meant; a folder's ends in `/`."""
        return self._spec is not None and bool(self._spec.match_file(path))


def _compile(lines: Sequence[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  most projects have none

    return GitIgnoreSpec.from_lines(lines)


def _require_understood(line: str) -> None:
    try:
        # A class like [[:digit:]] compiles, and means something else.
        understood = _CLASS.search(line) is None and _compile([line]) is not None
    except (ValueError, re.error):
        understood = False
    if not understood:
        raise ToolFailed(
            f"{line[:_SHOWN]!r} is not understood as a pattern of files to copy",
            reason="setup_invalid",
            hint="correct it, then exeora setup",
        )


def choose(root: Path, entries: Sequence[str], patterns: Patterns, copied: Copied) -> Iterator[str]:
    """Choose what the patterns mean among entries as `git status` gives them; a folder's name ends in `/`.

    In a folder that is untracked as a whole at most 5,000 entries are looked through for a deeper match; what is
    beyond is said in `copied.skipped`.
    """
    for entry in entries:
        if patterns.match(entry):
            yield entry
        elif entry.endswith("/"):
            yield from _search(root, entry, patterns, copied)


def _search(root: Path, folder: str, patterns: Patterns, copied: Copied) -> Iterator[str]:
    waiting, seen = [folder], 0
    while waiting:
        current = waiting.pop(0)
        if os.path.lexists(root / current / ".git"):
            continue
        items = _list(root / current)
        if items is None:
            copied.skipped.append((current, "failed"))
            continue
        for item in items:
            seen += 1
            if seen > COPY_SEARCH_ENTRIES:
                copied.skipped.append((folder, "too_many_to_search"))
                return
            is_folder = item.is_dir(follow_symlinks=False)
            path = f"{current}{item.name}/" if is_folder else f"{current}{item.name}"
            if patterns.match(path):
                yield path
            elif is_folder:
                waiting.append(path)


def _list(folder: Path) -> list["os.DirEntry[str]"] | None:
    """List a folder; None when it cannot be read."""
    try:
        return sorted(os.scandir(folder), key=lambda item: item.name)
    except OSError:
        return None


class Copier:
    """Copies from one checkout to another, remembering whether the file system can clone."""

    def __init__(self, source: Path, target: Path, copied: Copied) -> None:
        self._source = source
        self._target = target
        self._copied = copied
        self._can_clone = True

    def copy(self, path: str) -> None:
        """Copy a file, a link as a link, or a folder with all in it; never raises for what the kernel refuses."""
        relative = path.rstrip("/")
        with self._telling(relative):
            self._copy(relative)

    def link(self, path: str) -> None:
        """Make a link to the source's file or folder; never raises for what the kernel refuses."""
        source = self._source / path
        if not os.path.lexists(source):
            self._skip(path, "missing")
        elif not Path(os.path.realpath(source)).is_relative_to(self._source):
            self._skip(path, "leads_out")
        else:
            with self._telling(path):
                self._link(source, path)

    @contextmanager
    def _telling(self, path: str) -> Iterator[None]:
        """What the kernel refuses skips this one, and is said."""
        try:
            yield
        except OSError as error:
            self._skip(path, "disk_full" if error.errno == errno.ENOSPC else "failed")

    def _link(self, source: Path, path: str) -> None:
        if self._is_free(path):
            os.symlink(source, self._target / path)
            self._copied.links.append(path)

    def _copy(self, relative: str) -> None:
        source = self._source / relative
        mode = source.lstat().st_mode
        if stat.S_ISDIR(mode):
            self._copy_folder(relative)
        elif not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            self._skip(relative, "special")
        elif self._is_free(relative):
            if stat.S_ISLNK(mode):
                os.symlink(os.readlink(source), self._target / relative)
            else:
                self._copy_file(source, self._target / relative)
            self._copied.files += 1

    def _copy_folder(self, relative: str) -> None:
        source = self._source / relative
        if os.path.lexists(source / ".git"):
            self._skip(relative + "/", "checkout")
            return
        if not self._make_folders(relative):
            self._skip(relative + "/", "link_in_the_way")
            return
        items = _list(source)
        if items is None:
            self._skip(relative + "/", "failed")
        for item in items or ():
            self.copy(f"{relative}/{item.name}")
        with suppress(OSError):
            shutil.copystat(source, self._target / relative, follow_symlinks=False)

    def _copy_file(self, source: Path, target: Path) -> None:
        read = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                if not self._clone(read, write):
                    _copy_bytes(read, write)
            finally:
                os.close(write)
        finally:
            os.close(read)
        shutil.copystat(source, target, follow_symlinks=False)

    def _clone(self, read: int, write: int) -> bool:
        if not self._can_clone:
            return False
        try:
            fcntl.ioctl(write, _FICLONE, read)
        except OSError as error:
            if error.errno not in _CANNOT_CLONE:
                raise
            self._can_clone = False
            return False
        self._copied.cloned += 1
        return True

    def _is_free(self, relative: str) -> bool:
        """See that nothing stands there, and make the folders above; says so when not."""
        if not self._make_folders(os.path.dirname(relative)):
            self._skip(relative, "link_in_the_way")
        elif os.path.lexists(self._target / relative):
            self._skip(relative, "exists")
        else:
            return True
        return False

    def _make_folders(self, relative: str) -> bool:
        """Make the folders down to `relative`; False where one is no folder, as a link to elsewhere is."""
        folder = self._target
        for part in Path(relative).parts:
            folder = folder / part
            with suppress(FileExistsError):
                os.mkdir(folder)
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return False
        return True

    def _skip(self, path: str, reason: str) -> None:
        self._copied.skipped.append((path, reason))


def _copy_bytes(read: int, write: int) -> None:
    size = os.fstat(read).st_size
    offset = 0
    while offset < size:
        sent = os.sendfile(write, read, offset, size - offset)
        if sent == 0:
            return
        offset += sent
