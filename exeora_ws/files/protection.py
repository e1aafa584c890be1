"""What no tool may write, though it lies inside the root (contract, section 5)."""

import os
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import PathEscape
from exeora_ws.files.paths import is_git_name, means_one_of
from exeora_ws.files.root import Root
from exeora_ws.files.spot import Spot

_POLICY_NAMES = ("exeora.toml", "exeora~1.tom")


@dataclass(frozen=True, slots=True)
class Protection:
    """The rules for writing that do not follow from confinement."""

    policy_writable: bool = False
    """Whether the user's settings let tools write `exeora.toml`."""
    home: Path | None = None
    """Whose `.agents` is never written, should a project hold it."""

    def require_writable(self, spot: Spot) -> None:
        """Refuse a spot that no tool may create, change, move or delete.

        Raises:
            PathEscape: `read_only_root`, `git_folder`, `policy_file` or `user_folder`.
        """
        if not spot.root.writable:
            raise PathEscape(f"{spot.shown}: can be read, never written", reason="read_only_root")
        if any(map(is_git_name, (*spot.visited, *spot.real))) or _is_below(spot.real, _find_git_folder(spot.root)):
            raise PathEscape(
                f"{spot.shown}: Git's own folder cannot be written", reason="git_folder", hint="use git itself"
            )
        if not self.policy_writable and spot.real and means_one_of(spot.real[0], _POLICY_NAMES):
            raise PathEscape(
                f"{spot.shown}: holds the project's policy, which tools cannot write",
                reason="policy_file",
                hint="a person edits it, or allows it with `exeora config set tools-may-edit-policy true`",
            )
        self._refuse_user_folder(spot)

    def _refuse_user_folder(self, spot: Spot) -> None:
        if self.home is None:
            return
        target = os.path.join(spot.root.path, *spot.real)
        if "/.agents/" not in target:  # where the home folder really is need not be found out then
            return
        agents = os.path.join(os.path.realpath(self.home), ".agents")
        if any(target == own or target.startswith(own + "/") for own in (f"{agents}/AGENTS.md", f"{agents}/skills")):
            raise PathEscape(f"{spot.shown}: the user's own agent files are never written", reason="user_folder")


def _is_below(parts: tuple[str, ...], folder: tuple[str, ...] | None) -> bool:
    return folder is not None and parts[: len(folder)] == folder


def _find_git_folder(root: Root) -> tuple[str, ...] | None:
    """Find where a `.git` that is a link or a file leads, if that is inside the root; None for the usual folder."""
    entry = os.path.join(root.path, ".git")
    try:
        if os.path.islink(entry):
            target = os.path.realpath(entry)
        elif os.path.isfile(entry):
            with open(entry, "rb") as stream:
                line = os.fsdecode(stream.read(4_096)).strip()
            target = os.path.realpath(os.path.join(root.path, line.removeprefix("gitdir:").strip()))
        else:
            return None
    except OSError:
        return None
    top = os.path.realpath(root.path)
    return tuple(target[len(top) + 1 :].split("/")) if target.startswith(top + "/") else None
