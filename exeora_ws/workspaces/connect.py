"""Connect worktrees that others made, and disconnect workspaces. Neither touches anything on disk."""

import os
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import ExeoraError, InvalidArguments, ToolFailed
from exeora_ws.git import links
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Worktree
from exeora_ws.names import Slug, derive_distinct_slug, derive_slug, is_text, new_workspace_id, parse_slug
from exeora_ws.workspaces import resolve
from exeora_ws.workspaces.place import Place, Project, Workspace
from exeora_ws.workspaces.ports import release_ports
from exeora_ws.workspaces.registry import Registry, delete_workspace, insert_workspace


@dataclass(frozen=True, slots=True)
class Candidate:
    """A worktree to connect, named by exactly one of path and branch."""

    path: str | None
    branch: str | None
    name: str | None
    slug: str | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A worktree of the repository and the slug it is connected under, if it is."""

    worktree: Worktree
    connected: Slug | None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A worktree that could not be connected, and why."""

    path: Path
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """What adopting came to."""

    connected: list[Workspace]
    skipped: list[Skipped]


def list_worktrees(registry: Registry, project: Project) -> list[Listed]:
    """List every worktree of the repository, broken ones too.

    Raises:
        ToolFailed: `not_a_repository`, or what Git says.
    """
    common_dir = resolve.require_repository_dir(project)
    slugs = {w.worktree: w.slug for w in registry.list_workspaces(project.id)}
    worktrees = open_repository(common_dir).list_worktrees()
    return [Listed(w, slugs.get(_top_of(project, w))) for w in worktrees]


def _top_of(project: Project, worktree: Worktree) -> Path:
    if not worktree.main or worktree.bare:
        return project.root if worktree.main else worktree.path
    return worktree.path


def attach_workspace(registry: Registry, project: Project, candidate: Candidate) -> Workspace:
    """Connect a worktree of this repository, without taking ownership.

    Raises:
        InvalidArguments: `invalid_slug`, `reserved_slug`, `slug_taken`, `relative_path`.
        ToolFailed: `not_a_worktree`, `other_repository`, `is_main`, `already_connected`, `broken_worktree`,
            `missing_subdirectory`, `path_not_utf8`, `not_found`, `not_a_repository`.
    """
    worktree = _find_worktree(registry, project, candidate)
    _refuse_unfit(registry, project, worktree)
    path = worktree.path / project.subdirectory
    if not is_text(str(path)):
        raise ToolFailed(
            "the path of that worktree is not valid UTF-8", reason="path_not_utf8", hint="git worktree move it"
        )
    if not path.is_dir():
        raise ToolFailed(
            f"that worktree has no folder {str(project.subdirectory)!r}, which is the project's root",
            reason="missing_subdirectory",
        )
    name = candidate.name or worktree.branch or worktree.path.name
    with registry.change() as connection:
        taken = {r[0] for r in connection.execute("SELECT slug FROM workspaces WHERE project_id = ?", (project.id,))}
        workspace = Workspace(
            id=new_workspace_id(),
            project_id=project.id,
            slug=_settle_slug(candidate, worktree, taken),
            name=name,
            branch=worktree.branch,
            worktree=worktree.path,
            path=path,
            managed=False,
        )
        insert_workspace(connection, workspace, None, "attached")
    return workspace


def adopt_worktrees(registry: Registry, project: Project) -> Adoption:
    """Connect every worktree of the repository that is not connected: made by git, by an agent, by an editor.

    What cannot be connected is left as it is, with the reason.
    """
    connected: list[Workspace] = []
    skipped: list[Skipped] = []
    for entry in list_worktrees(registry, project):
        if entry.worktree.main or entry.connected is not None:
            continue
        path = entry.worktree.path
        try:
            connected.append(attach_workspace(registry, project, Candidate(str(path), None, None, None)))
        except ExeoraError as error:
            skipped.append(Skipped(path, error.reason or "failed", error.message))
    return Adoption(connected, skipped)


def detach_workspace(registry: Registry, place: Place) -> None:
    """Disconnect a workspace.

    Raises:
        ToolFailed: `is_main`.
    """
    if place.workspace.main:
        raise ToolFailed("main is the project itself and cannot be detached", reason="is_main")
    with registry.change() as connection:
        delete_workspace(connection, place.workspace, "detached")
        release_ports(connection, place.workspace.id)


def _find_worktree(registry: Registry, project: Project, candidate: Candidate) -> Worktree:
    listed = [entry.worktree for entry in list_worktrees(registry, project)]
    if candidate.branch is not None:
        for worktree in listed:
            if worktree.branch == candidate.branch:
                return worktree
        raise ToolFailed(
            f"no worktree of this repository has branch {candidate.branch!r} checked out",
            reason="not_found",
            hint="list_git_workspaces names those there are",
        )
    path = Path(candidate.path or "")
    if not path.is_absolute():
        raise InvalidArguments("path: must be absolute", reason="relative_path", hint="list_git_workspaces gives paths")
    if "\0" in str(path):
        raise InvalidArguments("path: cannot hold a NUL character", reason="wrong_value")
    real = Path(os.path.realpath(path))
    for worktree in listed:
        if real in (worktree.path, worktree.path / project.subdirectory, _top_of(project, worktree)):
            return worktree
    raise _explain_stranger(real)


def _explain_stranger(path: Path) -> ToolFailed:
    checkout = links.find_checkout(path) if os.path.isdir(path) else None
    if checkout is not None and checkout.top == path:
        return ToolFailed("that is a checkout of another repository", reason="other_repository")
    return ToolFailed(
        "that folder is not a worktree of this repository",
        reason="not_a_worktree",
        hint="list_git_workspaces names those there are",
    )


def _refuse_unfit(registry: Registry, project: Project, worktree: Worktree) -> None:
    if worktree.main:
        raise ToolFailed("that is the main worktree: it is workspace 'main' already", reason="is_main")
    for workspace in registry.list_workspaces(project.id):
        if workspace.worktree == worktree.path:
            raise ToolFailed(
                f"that worktree is connected already, as workspace {workspace.slug!r}",
                reason="already_connected",
                data={"workspace": workspace.slug},
            )
    fault = links.find_link_fault(str(worktree.path), str(resolve.require_repository_dir(project)))
    if fault is not None:
        raise ToolFailed(
            f"that worktree cannot be used: {worktree.prunable or fault}",
            reason="broken_worktree",
            hint="git worktree repair, or git worktree prune",
        )


def _settle_slug(candidate: Candidate, worktree: Worktree, taken: set[str]) -> Slug:
    if candidate.slug is not None:
        slug = parse_slug(candidate.slug)
        if slug in taken:
            raise InvalidArguments(f"slug: {slug!r} is taken by another workspace", reason="slug_taken")
        return slug
    source = worktree.branch or worktree.path.name
    slug = derive_slug(source)
    if slug in taken:
        slug = derive_distinct_slug(source)
    if slug in taken:
        slug = derive_distinct_slug(source, identity=str(worktree.path))
    return slug
