"""Folders of workspaces on disk: where a new one goes, how one is deleted, what a worktree is called in a message."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exeora_ws.errors import ToolFailed
from exeora_ws.git import links
from exeora_ws.git.port import Worktree
from exeora_ws.names import Slug
from exeora_ws.storage import make_private_folder
from exeora_ws.workspaces.place import Project, Workspace
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
    if inside or any(registry.find_project_at(above) for above in (folder, *folder.parents)):
        raise ToolFailed(
            "the managed root lies inside a project or another worktree",
            reason="target_inside_checkout",
            hint="exeora config set worktree-root PATH, with a folder outside any repository",
        )


def refuse_nested(registry: Registry, worktrees: Iterable[Worktree], workspace: Workspace) -> None:
    """See that nothing else that is known lies in a workspace's folder: it would move along, and be lost.

    Nor may another project have the same worktree connected: it would be left with a workspace that is not there.

    Args:
        registry: other projects and workspaces, also of other repositories.
        worktrees: those of the repository, connected or not.
        workspace: what is to move.

    Raises:
        ToolFailed: reason `nested_workspace`, `connected_elsewhere`.
    """
    folder = workspace.worktree
    inside = [f"worktree {w.path.name!r}" for w in worktrees if _lies_in(folder, w.path)]
    for project in registry.list_projects():
        inside += [f"project {project.slug!r}"] if _lies_in(folder, project.root) else []
        for other in registry.list_workspaces(project.id):
            if not other.main and other.id != workspace.id:
                _refuse_shared(project, other, workspace)
                inside += [f"workspace {other.slug!r}"] if _lies_in(folder, other.worktree) else []
    if inside:
        raise ToolFailed(
            f"{inside[-1]} lies in the folder of workspace {workspace.slug!r}, and would go with it",
            reason="nested_workspace",
            hint="remove or move that first: exeora remove, git worktree remove or move, exeora project remove",
        )


def _refuse_shared(project: Project, other: Workspace, workspace: Workspace) -> None:
    if other.worktree == workspace.worktree and os.path.lexists(other.worktree):
        raise ToolFailed(
            f"workspace {workspace.slug!r} is connected to project {project.slug!r} too, as {other.slug!r}",
            reason="connected_elsewhere",
            hint=f"exeora --project {project.slug} detach {other.slug}",
        )


def _lies_in(folder: Path, path: Path) -> bool:
    return path != folder and path.is_relative_to(folder) and os.path.lexists(path)


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
