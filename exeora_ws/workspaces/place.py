"""What a call acts on: values that only `resolve` makes from a selector, and that carry no default."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from exeora_ws.names import MAIN, ProjectId, Slug, WorkspaceId


@dataclass(frozen=True, slots=True)
class Project:
    """A registered directory (contract, section 1)."""

    id: ProjectId
    slug: Slug
    root: Path
    """Absolute and real."""
    common_dir: Path | None
    """The repository's shared Git folder; None for a directory outside Git."""
    subdirectory: PurePosixPath
    """The root below the main worktree's top; `.` when it is the top."""
    bare: bool
    """Whether the repository has no main worktree, so that main holds no files."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Main, or a worktree connected to a project."""

    id: WorkspaceId
    project_id: ProjectId
    slug: Slug
    name: str
    branch: str | None
    """Branch at registration or last seen; None when detached or outside Git."""
    worktree: Path
    """Top folder of the worktree."""
    path: Path
    """Where tools act: the worktree's top and the project's subdirectory."""
    managed: bool

    @property
    def main(self) -> bool:
        """Whether this is the project root itself."""
        return self.slug == MAIN


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace that a selector named, resolved. `root` is where every tool of the call acts."""

    project: Project
    workspace: Workspace

    @property
    def root(self) -> Path:
        """The folder that confines the call."""
        return self.workspace.path
