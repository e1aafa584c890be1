"""How a folder becomes a project."""

import os
from pathlib import Path, PurePosixPath

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.git import links
from exeora_ws.git.port import Checkout
from exeora_ws.names import (
    MAIN,
    derive_distinct_slug,
    derive_slug,
    is_text,
    new_project_id,
    new_workspace_id,
    parse_slug,
)
from exeora_ws.workspaces.place import Project, Workspace
from exeora_ws.workspaces.registry import Registry, delete_project, insert_project, insert_workspace, reshape_project
from exeora_ws.workspaces.trash import list_removed


def describe_folder(folder: Path, *, exact: bool) -> Project:
    """Work out the project that a folder stands for, without registering it. Its slug is the plain derived one.

    Args:
        folder: an existing folder, absolute and real.
        exact: take the folder itself as root (`project add packages/api`), not the repository around it. Inside a
            linked worktree it is the same folder of the main worktree.

    Raises:
        ToolFailed: reason `missing_subdirectory` when the main worktree has no such folder.
    """
    checkout = links.find_checkout(folder)
    if checkout is None:
        return _project(folder, None, PurePosixPath("."), bare=False)
    subdirectory = _subdirectory(folder, checkout) if exact else PurePosixPath(".")
    root = checkout.main / subdirectory
    if not root.is_dir():
        raise ToolFailed(
            f"the main worktree has no folder {str(subdirectory)!r}",
            reason="missing_subdirectory",
            hint="register a folder that the main worktree has",
        )
    return _project(root, checkout.common_dir, subdirectory, bare=checkout.bare)


def register_project(registry: Registry, folder: Path, *, exact: bool, slug: str | None) -> tuple[Project, bool]:
    """Register the project a folder stands for; gives it and whether it is new. Main is registered with it.

    Raises:
        ToolFailed: reason `path_not_utf8`, `missing_subdirectory`.
        InvalidArguments: the folder does not exist, the slug is malformed, reserved or taken.
    """
    real = Path(os.path.realpath(folder))
    if not os.path.isdir(real):
        raise InvalidArguments("path: there is no such folder", reason="missing_folder")
    _require_text(real)
    wanted = describe_folder(real, exact=exact)
    _require_text(wanted.root)
    _require_text(wanted.common_dir or wanted.root)
    with registry.change() as connection:
        known = connection.execute("SELECT slug FROM projects WHERE root = ?", (str(wanted.root),)).fetchone()
        if known is None:
            taken = {row[0] for row in connection.execute("SELECT slug FROM projects")}
            project = _with_slug(wanted, slug, taken)
            insert_project(connection, project)
            insert_workspace(connection, _main_of(project), None, "registered")
            return project, True
    found = _find_shaped(registry, wanted)
    if found is None:
        raise ToolFailed("the project was removed at the same time", reason="busy", hint="try again")
    if slug is not None and slug != found.slug:
        raise InvalidArguments(f"slug: this folder is already project {found.slug!r}", reason="already_registered")
    return found, False


def is_in_repository(folder: Path) -> bool:
    """Whether a folder lies in a Git repository at all."""
    return links.find_checkout(folder) is not None


def find_project_of(registry: Registry, folder: Path) -> Project | None:
    """Find the registered project that the repository around a folder stands for, from whichever of its worktrees."""
    checkout = links.find_checkout(folder)
    return None if checkout is None else _find_shaped(registry, describe_folder(checkout.main, exact=False))


def _find_shaped(registry: Registry, wanted: Project) -> Project | None:
    """Find the project at a root; one that was no repository when it was registered, and is by now, becomes one."""
    found = registry.find_project_at(wanted.root)
    if found is None or found.common_dir is not None or wanted.common_dir is None:
        return found
    with registry.change() as connection:
        reshape_project(connection, found.id, wanted)
    return registry.find_project_at(wanted.root)


def is_in_other_worktree(project: Project, folder: Path) -> bool:
    """Whether a folder lies in a worktree of the project's repository that is not its main one.

    Whoever stands there and names only the project cannot mean main.
    """
    checkout = links.find_checkout(folder)
    if checkout is None or checkout.top is None or checkout.common_dir != project.common_dir:
        return False
    return checkout.top != checkout.main or checkout.bare


def remove_project(registry: Registry, project: Project, *, force: bool) -> None:
    """Take a project off the registry. Nothing on disk changes.

    Raises:
        ToolFailed: unless `force` is set, reason `has_workspaces` while it still has managed workspaces, which would be
            folders that nobody knows, and `has_removed` while removed ones could still be brought back.
    """
    managed = [w.slug for w in registry.list_workspaces(project.id) if w.managed]
    if managed and not force:
        raise ToolFailed(
            f"project {project.slug!r} still has workspaces: {', '.join(managed[:10])}",
            reason="has_workspaces",
            hint="remove or detach them first, or pass --force to leave their folders where they are",
        )
    removed = [r.workspace.slug for r in list_removed(registry, project.id) if r.restorable]
    if removed and not force:
        raise ToolFailed(
            f"project {project.slug!r} has removed workspaces that can still come back: {', '.join(removed[:10])}",
            reason="has_removed",
            hint="restore them first, or pass --force to give them up",
        )
    with registry.change() as connection:
        delete_project(connection, project.id)


def _subdirectory(folder: Path, checkout: Checkout) -> PurePosixPath:
    top = checkout.top if checkout.top is not None else checkout.main
    return PurePosixPath(folder.relative_to(top).as_posix()) if folder.is_relative_to(top) else PurePosixPath(".")


def _project(root: Path, common_dir: Path | None, subdirectory: PurePosixPath, *, bare: bool) -> Project:
    return Project(new_project_id(), derive_slug(root.name or "root"), root, common_dir, subdirectory, bare)


def _with_slug(project: Project, slug: str | None, taken: set[str]) -> Project:
    if slug is not None:
        chosen = parse_slug(slug)
        if chosen in taken:
            raise InvalidArguments(f"slug: {slug!r} is taken by another project", reason="slug_taken")
    elif project.slug in taken:
        chosen = derive_distinct_slug(project.root.name, identity=str(project.root))
    else:
        chosen = project.slug
    return Project(project.id, chosen, project.root, project.common_dir, project.subdirectory, project.bare)


def _main_of(project: Project) -> Workspace:
    depth = len(project.subdirectory.parts)
    top = project.root.parents[depth - 1] if depth else project.root
    return Workspace(
        id=new_workspace_id(),
        project_id=project.id,
        slug=MAIN,
        name=MAIN,
        branch=None,
        worktree=top,
        path=project.root,
        managed=False,
    )


def _require_text(path: Path) -> None:
    if not is_text(str(path)):
        raise ToolFailed("the path is not valid UTF-8", reason="path_not_utf8", hint="rename the folder")
