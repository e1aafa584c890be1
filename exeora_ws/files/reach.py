"""Which root a path belongs to: the project's, or the two places under `~/.agents` that may be read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import PathEscape, PathNotFound, WorkspaceUnavailable
from exeora_ws.files.protection import Protection
from exeora_ws.files.root import Root
from exeora_ws.files.spot import Spot

_AGENTS = "~/.agents"
_AGENTS_FILE = f"{_AGENTS}/AGENTS.md"
_SKILLS = f"{_AGENTS}/skills"


@dataclass(frozen=True, slots=True)
class Reach:
    """What the paths of one call can mean.

    Args:
        folder: the workspace's root, absolute and real.
        home: the user's home folder.
        policy_writable: the setting `tools-may-edit-policy`.
    """

    folder: Path
    home: Path
    policy_writable: bool = False

    @property
    def protection(self) -> Protection:
        """What stays unwritten inside the root."""
        return Protection(policy_writable=self.policy_writable, home=self.home)

    @contextmanager
    def open_project(self) -> Iterator[Root]:
        """Open the workspace's own root, the only one that is ever written."""
        with Root(self.folder) as root:
            yield root

    @contextmanager
    def locate_for_reading(self, path: str) -> Iterator[Spot]:
        """Walk to a path of the project or under `~/.agents`, following links inside its root.

        Raises:
            PathEscape, PathNotFound, InvalidArguments, ToolFailed: as `Root.locate`.
        """
        user = self._find_user_path(path)
        if user is None:
            with self.open_project() as root, root.locate(path) as spot:
                yield spot
            return
        base, shown, inner = user
        try:
            root = Root(base, shown=shown, writable=False, follow=True)
        except WorkspaceUnavailable:
            raise PathNotFound(f"{shown}: no such folder") from None
        with root, root.locate(inner) as spot:
            yield spot

    def _find_user_path(self, path: str) -> tuple[Path, str, str] | None:
        """Give root, shown name and inner path of something under `~/.agents`; None for any other path."""
        agents = f"{self.home}/.agents"
        short = _AGENTS + path[len(agents) :] if path.startswith(agents + "/") else path
        short = short.rstrip("/") or "/"
        if short == _AGENTS_FILE:
            return self.home / ".agents", _AGENTS, "AGENTS.md"
        if short == _SKILLS or short.startswith(_SKILLS + "/"):
            return Path(os.path.realpath(self.home / ".agents" / "skills")), _SKILLS, short[len(_SKILLS) + 1 :] or "."
        return None

    @contextmanager
    def locate_for_writing(self, path: str, *, follow_last: bool = True) -> Iterator[Spot]:
        """Walk to a path of the project that a tool may write.

        Raises:
            PathEscape: also for what is protected, and for anything under `~/.agents`.
        """
        if self._find_user_path(path) is not None:
            raise PathEscape(f"{_AGENTS} can be read, never written", reason="read_only_root")
        with self.open_project() as root, root.locate(path, follow_last=follow_last) as spot:
            self.protection.require_writable(spot)
            yield spot
