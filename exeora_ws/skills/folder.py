"""Reading inside one folder of skills, by descriptor: a link that leads out of it is not followed."""

import errno
import os
import stat
from contextlib import ExitStack
from pathlib import Path


class Unreadable(Exception):
    """What is there cannot be read as a skill; the one argument says why."""


class SkillFolder:
    """A folder whose sub-folders are skills.

    Args:
        top: what no path may leave, links resolved.
        inside: the folder of skills below it.
    """

    def __init__(self, top: Path, inside: str) -> None:
        self._top = os.path.realpath(top)
        self._inside = inside

    def list_names(self) -> list[str]:
        """List what is in the folder, sorted; nothing when there is no such folder.

        Raises:
            Unreadable: it is there and cannot be listed.
        """
        try:
            with ExitStack() as stack:
                return sorted(os.listdir(self._open(stack, self._inside, os.O_RDONLY | os.O_DIRECTORY)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise Unreadable(_explain(error)) from error

    def read_head(self, name: str, limit: int) -> bytes | None:
        """Read the beginning of a skill's `SKILL.md`; None when the name is no folder with such a file.

        Raises:
            Unreadable: it is there and is no regular file inside the folder, or cannot be read.
        """
        try:
            with ExitStack() as stack:
                path = os.path.join(self._inside, name, "SKILL.md")
                descriptor = self._open(stack, path, os.O_RDONLY | os.O_NONBLOCK)
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise Unreadable("SKILL.md is not a regular file")
                return os.read(descriptor, limit)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.islink(os.path.join(self._top, self._inside, name)):
                raise Unreadable("it is a link to no skill") from None
            return None
        except OSError as error:
            raise Unreadable(_explain(error)) from error

    def _open(self, stack: ExitStack, path: str, flags: int) -> int:
        """Resolve links, see that the end lies inside, then walk there following none: a swap in between fails."""
        target = os.path.realpath(os.path.join(self._top, path))
        if os.path.commonpath([self._top, target]) != self._top:
            raise Unreadable("a link leads out of the folder")
        steps = os.path.relpath(target, self._top).split(os.sep)
        here = os.open(self._top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, here)
        for at, step in enumerate(steps):
            how = flags if at == len(steps) - 1 else os.O_RDONLY | os.O_DIRECTORY
            here = os.open(step, how | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            stack.callback(os.close, here)
        return here


def _explain(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "a link leads nowhere"
    return os.strerror(error.errno or 0)
