"""Folders of workspaces on disk: where a new one goes, how one is deleted, what a worktree is called in a message."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exeora_ws.errors import ToolFailed
from exeora_ws.git import links
from exeora_ws.git.port import Worktree
from exeora_ws.names import Slug
from exeora_ws.storage import make_private_folder
from exeora_ws.workspaces.place import Project
from exeora_ws.workspaces.registry import Registry

TRASH = ".trash"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a new worktree goes. `present` says that an empty folder stands there already."""

    path: Path
    present: bool


@dataclass(frozen=True, slots=True)
class Holder:
    """A worktree as a message may name it: by slug when connected, never by its absolute path."""

    text: str
    hint: str
    data: dict[str, Any] | None


def settle_target(registry: Registry, managed_root: Path, project: Project, slug: Slug) -> Target:
    """Settle the folder `<managed root>/<project>/<workspace>`, touching nothing.

    Raises:
        ToolFailed: `target_not_empty`, or `target_inside_checkout` when the managed root lies in a project or worktree.
    """
    folder = Path(os.path.realpath(managed_root)) / project.slug
    path = folder / slug
    _refuse_inside_checkout(registry, folder)
    if not os.path.lexists(path):
        return Target(path, present=False)
    if path.is_symlink() or not path.is_dir() or any(os.scandir(path)):
        raise ToolFailed(
            f"the folder for workspace {slug!r} exists and is not empty",
            reason="target_not_empty",
            hint="pass another slug, or move what is in it away",
        )
    return Target(path, present=True)


def _refuse_inside_checkout(registry: Registry, folder: Path) -> None:
    nearest = folder
    while not nearest.is_dir():
        nearest = nearest.parent
    inside = links.find_checkout(nearest) is not None
    if inside or any(folder.is_relative_to(p.root) for p in registry.list_projects()):
        raise ToolFailed(
            "the managed root lies inside a project or another worktree",
            reason="target_inside_checkout",
            hint="exeora config set worktree-root PATH, with a folder outside any repository",
        )


def make_parents(target: Target) -> None:
    """Make the folders above a target, private to the user."""
    try:
        make_private_folder(target.path.parent)
    except OSError as error:
        raise ToolFailed(
            f"the managed root cannot be written: {error.strerror}", reason="managed_root_unwritable"
        ) from error


def delete_tree(path: Path, *, keep_top: bool = False) -> None:
    """Delete a folder with all that is in it, following no link.

    Args:
        path: the folder; none is no error.
        keep_top: leave the folder itself, empty.

    Raises:
        ToolFailed: reason `delete_failed`, naming what the kernel said.
    """
    try:
        if keep_top:
            for entry in list(os.scandir(path)):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
        elif os.path.lexists(path):
            shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ToolFailed(f"the folder cannot be deleted: {error.strerror}", reason="delete_failed") from error


def name_worktree(registry: Registry, project: Project, worktree: Worktree) -> Holder:
    """Say which worktree it is, by its slug in this project when it is connected."""
    if worktree.main:
        return Holder("main", "choose another branch", {"workspace": "main"})
    for workspace in registry.list_workspaces(project.id):
        if workspace.worktree == worktree.path:
            slug = workspace.slug
            return Holder(f"workspace {slug!r}", f"use workspace {slug!r}", {"workspace": slug})
    if worktree.prunable is not None:
        hint = "its folder is gone: git worktree prune, if it will not come back"
        return Holder("a worktree whose folder is missing", hint, None)
    return Holder(
        "a worktree that is not connected", "list_git_workspaces shows it; attach_workspace connects it", None
    )
