"""From a selector to a place. No function here has a default, walks up, or answers with main instead."""

from dataclasses import replace
from pathlib import Path

from exeora_ws.errors import ToolFailed, UnknownProject, UnknownWorkspace, WorkspaceUnavailable
from exeora_ws.git import links
from exeora_ws.workspaces.place import Place, Project, Workspace
from exeora_ws.workspaces.registry import Registry

_SHOWN = 100
"""How much of a selector that names nothing is said again."""
_FAULTS = {
    "missing": "its folder is gone",
    "not_a_worktree": "its folder is no Git worktree any more: the .git file is missing",
    "other_repository": "its folder now belongs to another repository",
    "broken_link": "its folder and the repository no longer point at each other",
    "bare": "the project is a bare repository, so main has no files",
    "missing_subdirectory": "the project's subdirectory does not exist in it",
}


def require_project(registry: Registry, selector: str) -> Project:
    """Find a project by slug or id.

    Raises:
        UnknownProject: there is none.
    """
    project = registry.find_project(selector)
    if project is None:
        raise UnknownProject(f"there is no project {selector[:_SHOWN]!r}", hint="list_projects names those there are")
    return project


def require_place(registry: Registry, project: Project, selector: str) -> Place:
    """Find a project's workspace by slug or id, whether or not its folder is there.

    Raises:
        UnknownWorkspace: there is none; never answered with main.
    """
    workspace = registry.find_workspace(project.id, selector)
    if workspace is None:
        known = ", ".join(w.slug for w in registry.list_workspaces(project.id)[:20])
        raise UnknownWorkspace(
            f"there is no workspace {selector[:_SHOWN]!r} in project {project.slug!r}", hint=f"workspaces: {known}"
        )
    return Place(project, workspace)


def require_available(place: Place, *, files: bool) -> None:
    """See that the place is what was registered, by looking at its links on disk.

    Args:
        place: the place.
        files: whether its files are needed; else a bare project's main will do.

    Raises:
        WorkspaceUnavailable: with the fault as reason.
    """
    fault = find_fault(place.project, place.workspace)
    if fault is None or (fault == "bare" and not files):
        return
    hint = None if place.workspace.main else f"exeora doctor; or exeora remove {place.workspace.slug}"
    raise WorkspaceUnavailable(
        f"workspace {place.workspace.slug!r} is unavailable: {_FAULTS[fault]}",
        reason=fault,
        hint="name a workspace" if fault == "bare" else hint,
    )


def find_fault(project: Project, workspace: Workspace) -> str | None:
    """Why a workspace cannot be acted in, or None: a few small reads, no Git, no process."""
    if project.common_dir is None:
        return None if workspace.path.is_dir() else "missing"
    common = str(project.common_dir)
    if not workspace.main:
        fault = links.find_link_fault(str(workspace.worktree), common)
    elif project.bare:
        return "bare" if workspace.worktree.is_dir() else "missing"
    else:
        fault = links.find_main_fault(str(workspace.worktree), common)
    if fault is not None:
        return str(fault)
    return None if workspace.path.is_dir() else "missing_subdirectory"


def refresh_branch(project: Project, workspace: Workspace) -> Workspace:
    """Give the workspace with the branch its HEAD is on now, where that can be read; else as last recorded.

    What stands in its folder and is not it (a foreign clone, another workspace's link) has no say.
    """
    if project.common_dir is not None and not project.bare and workspace.worktree == workspace.path:
        plain = links.read_plain_branch(str(workspace.worktree), str(project.common_dir))
        if plain is not None:
            return workspace if plain == (workspace.branch or "") else replace(workspace, branch=plain or None)
    if find_fault(project, workspace) not in (None, "missing_subdirectory") or project.common_dir is None:
        return workspace
    branch = links.read_branch(str(workspace.worktree))
    return workspace if branch is None else replace(workspace, branch=branch or None)


def require_repository_dir(project: Project) -> Path:
    """Give the project's shared Git folder.

    Raises:
        ToolFailed: reason `not_a_repository`.
    """
    if project.common_dir is None:
        raise ToolFailed(
            f"project {project.slug!r} is not a Git repository",
            reason="not_a_repository",
            hint="git init in its folder, then exeora project add there",
        )
    return project.common_dir


def find_around(registry: Registry, folder: Path) -> Place | None:
    """Find the workspace around a folder, nearest first; None when the folder is in none.

    A worktree that is not connected, a submodule and a foreign clone inside main are not main: what counts is the
    checkout around the folder, not the path above it. A workspace that has lost its `.git` file is still the one
    around its folder, though the next checkout up is another: it is found, and then found unavailable.
    """
    try:
        checkout = links.find_checkout(folder)
    except ToolFailed as error:
        raise WorkspaceUnavailable(error.message, reason=error.reason, hint=error.hint) from error
    best: Place | None = None
    for workspace in registry.list_workspaces_at((folder, *folder.parents)):
        project = require_project(registry, workspace.project_id)
        if not _contains(project, workspace, folder, checkout.top if checkout else None, checkout is not None):
            continue
        if best is None or _depth_of(workspace) > _depth_of(best.workspace):
            best = Place(project, workspace)
    return best


def _depth_of(workspace: Workspace) -> tuple[int, int]:
    return len(workspace.worktree.parts), len(workspace.path.parts)


def _contains(project: Project, workspace: Workspace, folder: Path, top: Path | None, in_git: bool) -> bool:
    if project.common_dir is None:
        inside = folder.is_relative_to(workspace.path)
        return inside and not (in_git and top is not None and top.is_relative_to(workspace.path))
    if project.bare and workspace.main:
        return folder.is_relative_to(workspace.path) and top is None
    if top == workspace.worktree:
        return folder.is_relative_to(workspace.path)
    broken = top is None or len(top.parts) < len(workspace.worktree.parts)
    return broken and folder.is_relative_to(workspace.worktree)
