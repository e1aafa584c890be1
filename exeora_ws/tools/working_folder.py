"""Where a command starts: a folder of the workspace, or one under `~/.agents/skills` (contract, section 5).

The folder is opened one name at a time, each with `O_NOFOLLOW`, and the command starts in what was opened: a link that
is swapped meanwhile cannot lead it out.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import ExeoraError, InvalidArguments, PathEscape, PathNotFound

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_MAX_LINKS = 40
_SKILLS = "~/.agents/skills"


@dataclass(frozen=True, slots=True)
class WorkingFolder:
    """An open folder to start in. The descriptor is closed at the end of the `with` block."""

    path: str
    """Absolute and real."""
    descriptor: int


@contextmanager
def open_working_folder(root: Path, home: Path, cwd: str | None) -> Iterator[WorkingFolder]:
    """Open a command's `cwd`.

    Args:
        root: the workspace's root, absolute and real.
        home: the user's home folder.
        cwd: relative to the root, or under `~/.agents/skills`; None for the root itself.

    Raises:
        PathEscape: it leads out, as written or through a link.
        PathNotFound: no such folder, or reason `not_a_folder`, or the root itself is gone (`cwd_gone`).
        InvalidArguments: a NUL or half a character in it.
    """
    shown = cwd or "."
    base, inner = _find_base(root, home, shown)
    with ExitStack() as opened:
        walk = _Walk(base, shown, opened)
        walk.go(inner)
        yield WorkingFolder("/".join((str(base).rstrip("/"), *walk.names)) or "/", walk.here)


def _find_base(root: Path, home: Path, cwd: str) -> tuple[Path, str]:
    if "\0" in cwd or not _is_encodable(cwd):
        raise InvalidArguments("cwd: holds a NUL or half a character", reason="invalid_path")
    short = cwd.replace(str(home), "~", 1) if cwd.startswith(f"{home}/.agents/") else cwd
    if short == _SKILLS or short.startswith(_SKILLS + "/"):
        # The user may keep the skills elsewhere behind a link of their own.
        return Path(os.path.realpath(home / ".agents" / "skills")), short[len(_SKILLS) :].lstrip("/")
    if cwd.startswith(("/", "~/")) or cwd == "~":
        raise _escapes(cwd)
    return root, cwd


class _Walk:
    """Steps through folders below one root, by descriptor."""

    def __init__(self, base: Path, shown: str, opened: ExitStack) -> None:
        self._base = base
        self._shown = shown
        self._opened = opened
        self.names: list[str] = []
        self._folders = [self._hold(os.fspath(base), None)]

    @property
    def here(self) -> int:
        """The folder reached so far."""
        return self._folders[-1]

    def go(self, path: str) -> None:
        """Walk `path`, following links by hand as long as they stay below the root."""
        pending = _split(path)
        links = 0
        while pending:
            name = pending.pop()
            if name == "..":
                self._leave()
                continue
            target = self._enter(name)
            if target is not None:
                links += 1
                if links > _MAX_LINKS:
                    raise PathNotFound(f"cwd: {self._shown!r}: its links lead in a circle", reason="link_loop")
                pending += self._read(target)

    def _enter(self, name: str) -> str | None:
        """Step into a folder; gives the target instead when it is a link."""
        try:
            target = os.readlink(name, dir_fd=self.here)
        except OSError:
            self._folders.append(self._hold(name, self.here))
            self.names.append(name)
            return None
        return target

    def _leave(self) -> None:
        if not self.names:
            raise _escapes(self._shown)
        self._folders.pop()
        self.names.pop()

    def _read(self, target: str) -> list[str]:
        if target.startswith("/"):
            top = str(self._base).rstrip("/")
            if target != top and not target.startswith(top + "/"):
                raise _escapes(self._shown)
            del self._folders[1:], self.names[:]
            target = target[len(top) :]
        return _split(target)

    def _hold(self, name: str, folder: int | None) -> int:
        try:
            descriptor = os.open(name, _STEP, dir_fd=folder)
        except OSError as error:
            raise self._translate(error, top=folder is None) from error
        self._opened.callback(os.close, descriptor)
        return descriptor

    def _translate(self, error: OSError, *, top: bool) -> ExeoraError:
        if top and not self._shown.startswith("~"):
            return PathNotFound("cwd: the workspace's folder is gone", reason="cwd_gone")
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return PathNotFound(f"cwd: {self._shown!r} is not a folder", reason="not_a_folder")
        return PathNotFound(f"cwd: there is no folder {self._shown!r}")


def _split(path: str) -> list[str]:
    """Give the names of a path in the order they are popped."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _escapes(cwd: str) -> PathEscape:
    return PathEscape(
        f"cwd: {cwd!r} leads out of the workspace", hint="use a path relative to the workspace, or ~/.agents/skills/…"
    )


def _is_encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True
