"""The confined root: the only way from a path to a descriptor in this room (contract, section 5).

A path is walked one name at a time from the root's own descriptor, each step with `O_NOFOLLOW`; a link is read and
walked by hand the same way. So what is opened was reached inside the root, whatever is swapped meanwhile.
"""

import errno
import os
import stat as modes
from pathlib import Path
from typing import Self

from exeora_ws.errors import PathEscape, PathNotFound, ToolFailed, WorkspaceUnavailable
from exeora_ws.files.faults import translate, translated
from exeora_ws.files.paths import RelativePath, find_bytes_shown, join_shown, parse_path
from exeora_ws.files.spot import STEP, Held, Spot, Trail

_MAX_LINKS = 40


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
        flags = STEP & ~os.O_NOFOLLOW if follow else STEP
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
        return join_shown(self.shown or ".", "/".join(parts))

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

    def locate_real(self, parts: tuple[str, ...]) -> Spot:
        """Walk to a path as `Spot.real` or a walk of our own gives it: each name as it is, and no link followed.

        Raises:
            PathNotFound: `not_a_folder`, also where a link has taken a folder's place.
        """
        trail = Trail(self._descriptor)
        shown = self.show(parts)
        try:
            with translated(shown):
                return self._enter_all(trail, parts, shown)
        finally:
            trail.close()

    def _enter_all(self, trail: Trail, parts: tuple[str, ...], shown: str) -> Spot:
        trail.visited += parts[:-1]
        for depth, name in enumerate(parts[:-1]):
            try:
                trail.enter(name)
            except FileNotFoundError:
                trail.missing = parts[depth:-1]
                return Spot(trail.take(), self, shown=shown, trail=trail, name=parts[-1], stat=None)
        name = parts[-1] if parts else "."
        found = _lstat(name, trail.here)
        return Spot(trail.take(), self, shown=shown, trail=trail, name=name, stat=found)

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
                target = _read_link(name, trail.here)
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


def _read_link(name: str, folder: int) -> str:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:  # it was a link an instant ago
            error.errno = errno.ELOOP
        raise


def _escapes(shown: str) -> PathEscape:
    return PathEscape(f"{shown}: leads out of the root through a link", reason="outside_root")
