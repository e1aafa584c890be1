"""Reading inside one folder of skills, by the confined walk of `files/`: a link that leads out is not followed."""

import os
from pathlib import Path

from exeora_ws.errors import ExeoraError, PathNotFound, WorkspaceUnavailable
from exeora_ws.files.root import Root


class Unreadable(Exception):
    """What is there cannot be read as a skill; the one argument says why."""


class SkillFolder:
    """A folder whose sub-folders are skills.

    Args:
        top: what no path may leave; may itself be a link.
        inside: the folder of skills below it.
    """

    def __init__(self, top: Path, inside: str) -> None:
        self._top = Path(os.path.realpath(top))
        self._inside = inside

    def list_names(self) -> list[str]:
        """List what is in the folder, sorted; nothing when there is no such folder.

        Raises:
            Unreadable: it is there and cannot be listed.
        """
        try:
            with Root(self._top) as root, root.locate(self._inside) as spot:
                descriptor = spot.open_folder()
                try:
                    return sorted(os.listdir(descriptor))
                finally:
                    os.close(descriptor)
        except WorkspaceUnavailable:
            return []
        except ExeoraError as error:
            if _is_absent(error):
                return []
            raise Unreadable(error.message) from error
        except OSError as error:
            raise Unreadable(os.strerror(error.errno or 0)) from error

    def read_head(self, name: str, limit: int) -> bytes | None:
        """Read the beginning of a skill's `SKILL.md`; None when the name is no folder with such a file.

        Raises:
            Unreadable: it is there and is no regular file inside the folder, or cannot be read.
        """
        try:
            path = f"{self._inside}/{name}/SKILL.md"
            with (
                Root(self._top) as root,
                root.locate(path) as spot,
                open(spot.open_file(), "rb", buffering=0) as stream,
            ):
                return stream.read(limit)
        except ExeoraError as error:
            if _is_absent(error):
                return None
            raise Unreadable(error.message) from error
        except OSError as error:
            raise Unreadable(os.strerror(error.errno or 0)) from error


def _is_absent(error: ExeoraError) -> bool:
    return isinstance(error, PathNotFound) and error.reason in (None, "not_a_folder")
