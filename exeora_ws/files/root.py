"""The confined root: the only way from a path to a descriptor in this room (contract, section 5).

A path is walked one name at a time from the root's own descriptor, each step with `O_NOFOLLOW`; a link is read and
walked by hand the same way. So what is opened was reached inside the root, whatever is swapped meanwhile.
"""

import errno
import os
import stat as modes
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from exeora_ws.errors import PathEscape, PathNotFound, ToolFailed, WorkspaceUnavailable
from exeora_ws.files.faults import translate, translated
from exeora_ws.files.paths import RelativePath, find_bytes_shown, parse_path, show

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAX_LINKS = 40

_KINDS = {
    modes.S_IFDIR: "a folder",
    modes.S_IFIFO: "a FIFO (named pipe)",
    modes.S_IFSOCK: "a socket",
    modes.S_IFCHR: "a character device",
    modes.S_IFBLK: "a block device",
    modes.S_IFLNK: "a symbolic link",
}
_REASONS = {
    modes.S_IFDIR: "is_a_folder",
    modes.S_IFIFO: "is_a_fifo",
    modes.S_IFSOCK: "is_a_socket",
    modes.S_IFCHR: "is_a_device",
    modes.S_IFBLK: "is_a_device",
    modes.S_IFLNK: "is_a_link",
}


class Held:
    """Something that owns one descriptor; a context manager that closes it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def descriptor(self) -> int:
        """The open descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close it; a second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Spot(Held):
    """Where a path leads: a name (there or not) in an open folder inside the root.

    `descriptor` is that folder. `stat` is the name's own `lstat`, None when nothing is there.
    """

    def __init__(
        self, folder: int, root: "Root", *, shown: str, trail: "Trail", name: str, stat: os.stat_result | None
    ) -> None:
        super().__init__(folder)
        self.root = root
        self.shown = shown
        self.name = name
        self.stat = stat
        self.missing = trail.missing
        """Folders that would have to be made between `descriptor` and `name`."""
        self.real = (*trail.names, *trail.missing, *(() if name == "." else (name,)))
        """The parts below the root once every link has been followed."""
        self.visited = (*trail.visited, name)
        """Every name stepped on, links and their targets too."""

    @property
    def is_folder(self) -> bool:
        """Whether a folder is there."""
        return self.stat is not None and modes.S_ISDIR(self.stat.st_mode)

    @property
    def is_link(self) -> bool:
        """Whether a symbolic link is there."""
        return self.stat is not None and modes.S_ISLNK(self.stat.st_mode)

    def require_there(self) -> os.stat_result:
        """Give its `lstat`.

        Raises:
            PathNotFound: nothing is there.
        """
        if self.stat is None:
            raise PathNotFound(f"{self.shown}: no such file or folder")
        return self.stat

    def require_file(self) -> os.stat_result:
        """Give its `lstat` when it is a regular file.

        Raises:
            PathNotFound: nothing is there.
            ToolFailed: `is_a_folder`, `is_a_fifo`, `is_a_socket`, `is_a_device`: named, and never opened.
        """
        found = self.require_there()
        require_regular(found, self.shown)
        return found

    def open_file(self) -> int:
        """Open the regular file for reading; gives a descriptor that the caller owns. Raises as `require_file`."""
        self.require_file()
        with translated(self.shown):
            descriptor = os.open(self.name, _READ, dir_fd=self.descriptor)
        try:
            require_regular(os.fstat(descriptor), self.shown)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def open_folder(self) -> int:
        """Open the folder for listing; gives a descriptor that the caller owns.

        Raises:
            PathNotFound: nothing is there, or `not_a_folder`.
        """
        self.require_there()
        if not self.is_folder:
            raise PathNotFound(f"{self.shown}: is not a folder", reason="not_a_folder")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with translated(self.shown):
            return os.open(self.name, flags, dir_fd=self.descriptor)


def require_regular(found: os.stat_result, shown: str) -> None:
    """Refuse anything but a regular file, by the name of its kind.

    Raises:
        ToolFailed: `is_a_folder`, `is_a_fifo`, `is_a_socket`, `is_a_device`, `is_a_link`.
    """
    kind = modes.S_IFMT(found.st_mode)
    if kind != modes.S_IFREG:
        raise ToolFailed(
            f"{shown}: is {_KINDS.get(kind, 'not a regular file')}",
            reason=_REASONS.get(kind, "not_a_file"),
            hint="list_files shows what is in a folder" if kind == modes.S_IFDIR else None,
        )


@dataclass(slots=True)
class Trail:
    """The folders a walk has entered: their descriptors and real names. The root's own descriptor is not among them."""

    root: int
    names: list[str] = field(default_factory=list)
    visited: list[str] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    _open: list[int] = field(default_factory=list)

    @property
    def here(self) -> int:
        """The folder reached so far."""
        return self._open[-1] if self._open else self.root

    def enter(self, name: str) -> None:
        """Step into a folder. Raises `OSError`: `ENOTDIR` or `ELOOP` for anything else, links too."""
        self._open.append(os.open(name, _STEP, dir_fd=self.here))
        self.names.append(name)

    def leave(self) -> bool:
        """Step back to where the last step was taken from; False at the root."""
        if not self._open:
            return False
        os.close(self._open.pop())
        self.names.pop()
        return True

    def restart(self) -> None:
        """Go back to the root."""
        while self.leave():
            pass

    def take(self) -> int:
        """Give the folder reached, for the caller to own."""
        return self._open.pop() if self._open else os.dup(self.root)

    def close(self) -> None:
        """Close what is still open."""
        while self._open:
            os.close(self._open.pop())


class Root(Held):
    """A folder that nothing reached through it can leave. Owns a descriptor: use it as a context manager.

    Args:
        path: absolute; opened once, here.
        shown: what its paths are shown under: empty for the project, `~/.agents/skills` for the user's skills.
        writable: whether the writer may touch it at all.
        follow: whether the folder itself may be a link (the user's own folders; never a workspace).

    Raises:
        WorkspaceUnavailable: reason `folder_missing`, when it is not a folder.
    """

    def __init__(self, path: Path, *, shown: str = "", writable: bool = True, follow: bool = False) -> None:
        flags = _STEP & ~os.O_NOFOLLOW if follow else _STEP
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise WorkspaceUnavailable("the root folder is not there any more", reason="folder_missing") from error
            raise translate(error, shown or ".") from error
        super().__init__(descriptor)
        self.path = path
        self.shown = shown
        self.writable = writable

    @classmethod
    def below(cls, spot: Spot) -> Self:
        """Make a root of the folder at a spot, which nothing reached through it can leave either."""
        inner = cls.__new__(cls)
        Held.__init__(inner, spot.open_folder())
        inner.path = spot.root.path.joinpath(*spot.real)
        inner.shown = spot.shown
        inner.writable = False
        return inner

    def show(self, parts: tuple[str, ...]) -> str:
        """Name a path below this root as callers know it."""
        below = show("/".join(parts))
        return f"{self.shown}/{below}" if self.shown and below else self.shown or below or "."

    def locate(self, path: str, *, follow_last: bool = True) -> Spot:
        """Walk to where `path` leads, inside the root; the last name need not exist.

        Args:
            path: relative, as a caller wrote it.
            follow_last: False to stop at a link in the last place instead of going where it leads.

        Raises:
            PathEscape: it leads out, as written or through a link.
            PathNotFound: a folder on the way is no folder, or a link leads to nothing (`dangling_link`).
            InvalidArguments: the path is malformed.
            ToolFailed: `link_loop`.
        """
        relative = parse_path(path)
        spot = self._walk(relative, follow_last=follow_last)
        raw = find_bytes_shown(path) if spot.stat is None else None
        if raw is not None:
            spot = self._prefer_there(self._walk(parse_path(raw), follow_last=follow_last), spot)
        if relative.names_folder and not spot.is_folder:
            spot.close()
            raise PathNotFound(f"{spot.shown}: is not a folder", reason="not_a_folder")
        return spot

    @staticmethod
    def _prefer_there(first: Spot, second: Spot) -> Spot:
        chosen, other = (first, second) if first.stat is not None else (second, first)
        other.close()
        return chosen

    def _walk(self, relative: RelativePath, *, follow_last: bool) -> Spot:
        trail = Trail(self._descriptor)
        shown = self.show(relative.parts)
        try:
            with translated(shown):
                return self._follow(trail, list(reversed(relative.parts)), shown, follow_last=follow_last)
        finally:
            trail.close()

    def _follow(self, trail: Trail, pending: list[str], shown: str, *, follow_last: bool) -> Spot:
        links = 0
        outside_links = len(pending)  # how many of the pending names do not come out of a link
        while pending:
            name = pending.pop()
            from_link = len(pending) >= outside_links
            outside_links = min(outside_links, len(pending))
            trail.visited.append(name)
            if name == "..":
                if not trail.leave():
                    raise _escapes(shown)
                continue
            if pending:
                target = self._step(trail, name, pending)
                if trail.missing:
                    return self._arrive(trail, pending[0], None, shown, from_link=from_link)
            else:
                found = _lstat(name, trail.here)
                if found is None or not (follow_last and modes.S_ISLNK(found.st_mode)):
                    return self._arrive(trail, name, found, shown, from_link=from_link)
                target = os.readlink(name, dir_fd=trail.here)
            if target is not None:
                links += 1
                if links > _MAX_LINKS:
                    raise ToolFailed(f"{shown}: its links lead in a circle", reason="link_loop")
                outside_links = min(outside_links, len(pending))
                pending += self._read_link(trail, target, shown)
        found = os.fstat(trail.here)
        return Spot(trail.take(), self, shown=shown, trail=trail, name=".", stat=found)

    @staticmethod
    def _step(trail: Trail, name: str, pending: list[str]) -> str | None:
        """Enter `name`; gives a link's target instead when it is one. Notes in `trail.missing` what is not there."""
        try:
            trail.enter(name)
        except FileNotFoundError:
            if ".." in pending:
                raise
            trail.missing = (name, *reversed(pending[1:]))
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            try:
                return os.readlink(name, dir_fd=trail.here)
            except OSError:
                raise error from None
        return None

    def _arrive(self, trail: Trail, name: str, found: os.stat_result | None, shown: str, *, from_link: bool) -> Spot:
        if found is None and from_link:
            raise PathNotFound(f"{shown}: is a link, or lies behind one, that leads to nothing", reason="dangling_link")
        return Spot(trail.take(), self, shown=shown, trail=trail, name=name, stat=found)

    def _read_link(self, trail: Trail, target: str, shown: str) -> list[str]:
        """Give the parts of a link's target in the order they are popped, from the root for an absolute one."""
        if target.startswith("/"):
            top = str(self.path).rstrip("/")
            if target != top and not target.startswith(top + "/"):
                raise _escapes(shown)
            trail.restart()
            target = target[len(top) :]
        return [part for part in reversed(target.split("/")) if part not in ("", ".")]


def _lstat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _escapes(shown: str) -> PathEscape:
    return PathEscape(f"{shown}: leads out of the root through a link", reason="outside_root")
