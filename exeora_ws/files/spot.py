"""Where a walk has got to: open folders on the way, and the name it ends at. Made by `root.py` only."""

import os
import stat as modes
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from exeora_ws.errors import PathNotFound, ToolFailed
from exeora_ws.files.faults import translated

if TYPE_CHECKING:
    from exeora_ws.files.root import Root

Kind = Literal["file", "directory", "symlink", "other"]
"""What an entry of a folder is, in a listing."""
STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""How a folder on the way is opened."""
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

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
    def real_path(self) -> str:
        """Its absolute path, every link below the root followed."""
        return os.path.join(self.root.path, *self.real)

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
        return self._open_folder(_LIST)

    def enter_folder(self) -> int:
        """Open the folder to start a command in, which may be closed to listing. Otherwise as `open_folder`."""
        return self._open_folder(STEP)

    def _open_folder(self, flags: int) -> int:
        self.require_there()
        if not self.is_folder:
            raise PathNotFound(f"{self.shown}: is not a folder", reason="not_a_folder")
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
        self._open.append(os.open(name, STEP, dir_fd=self.here))
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
