"""The registry: which projects and workspaces there are, what became of them, and what is under way (SQLite).

Reading it needs no Git and no server. Every change of the inventory goes through `change`, which also keeps the
plain-text copy for the hot commands in step (`inventory_file.py`).
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from exeora_ws.database import Database
from exeora_ws.errors import ToolFailed, UnknownProject
from exeora_ws.names import ProjectId, Slug, WorkspaceId, is_text, show_bytes
from exeora_ws.settings import Places
from exeora_ws.workspaces import inventory_file
from exeora_ws.workspaces.place import Project, Workspace

REGISTRY_MIGRATIONS: tuple[str, ...] = (
    """
CREATE TABLE projects (
    id TEXT PRIMARY KEY, slug TEXT NOT NULL UNIQUE, root TEXT NOT NULL UNIQUE, common_dir TEXT,
    subdirectory TEXT NOT NULL, bare INTEGER NOT NULL, created_at REAL NOT NULL
);
CREATE TABLE workspaces (
    id TEXT PRIMARY KEY, project_id TEXT NOT NULL REFERENCES projects(id), slug TEXT NOT NULL, name TEXT NOT NULL,
    branch TEXT, worktree TEXT NOT NULL, path TEXT NOT NULL, managed INTEGER NOT NULL,
    base_ref TEXT, base_commit TEXT, created_at REAL NOT NULL,
    UNIQUE (project_id, slug), UNIQUE (project_id, worktree)
);
CREATE TABLE workspace_history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, project_id TEXT NOT NULL, workspace_id TEXT NOT NULL, slug TEXT NOT NULL,
    at REAL NOT NULL, state TEXT NOT NULL, detail TEXT
);
CREATE INDEX workspace_history_of ON workspace_history (workspace_id);
CREATE TABLE operations (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, project_id TEXT NOT NULL, common_dir TEXT NOT NULL, facts BLOB NOT NULL,
    begun_at REAL NOT NULL
);
CREATE TABLE removals (
    workspace_id TEXT PRIMARY KEY, project_id TEXT NOT NULL, slug TEXT NOT NULL, facts BLOB NOT NULL,
    removed_at REAL NOT NULL, until REAL NOT NULL
);
""",
    "ALTER TABLE removals ADD COLUMN bytes INTEGER",
    """
CREATE TABLE ports (
    port INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (workspace_id, name)
);
CREATE TABLE trusted (
    project_id TEXT NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (project_id, digest)
);
""",
)

_PUBLISHED = (
    f"SELECT {', '.join(inventory_file.PROJECT_FIELDS)} FROM projects ORDER BY slug",  # noqa: S608 - constants
    f"SELECT {', '.join(inventory_file.WORKSPACE_FIELDS)} FROM workspaces ORDER BY project_id, slug != 'main', slug",  # noqa: S608 - same
)
"""What the plain-text copy holds, in its order."""


@dataclass(frozen=True, slots=True)
class Base:
    """What a workspace was made from: the ref as named, and its commit then."""

    ref: str
    commit: str


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An operation that began and has not ended: under way in a live process, or cut short in a dead one."""

    id: str
    kind: str
    project_id: ProjectId
    common_dir: Path
    facts: bytes


@dataclass(frozen=True, slots=True)
class State:
    """One entry of a workspace's history."""

    at: float
    state: str
    detail: str | None


class Registry:
    """Reads and writes of the registry's tables; knows nothing of Git or of folders."""

    def __init__(self, database: Database, places: Places) -> None:
        self.database = database
        self._places = places

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction that may change the inventory.

        The plain-text copy is taken away before the transaction ends and written anew after it, both under SQLite's
        write lock: at no instant does a copy stand beside a registry that says something else.
        """
        with self.database.write() as connection:
            yield connection
            inventory_file.withdraw(self._places.inventory)
        # By now it has happened. Without a copy the slow way answers, and the next command makes one.
        with suppress(ToolFailed, OSError):
            self.publish()

    def publish(self) -> None:
        """Write the plain-text copy, unless something is under way: then the slow way, which looks, must answer."""
        with self.database.write() as connection:
            pending = connection.execute("SELECT 1 FROM operations LIMIT 1").fetchone()
            if pending is None:
                inventory_file.publish(self._places.inventory, *map(connection.execute, _PUBLISHED))

    def list_projects(self) -> list[Project]:
        """Every project, by slug."""
        with self.database.read() as connection:
            return _projects(connection)

    def find_project(self, selector: str) -> Project | None:
        """A project by slug or id."""
        if not is_text(selector):
            return None
        row = self.database.find_row("SELECT * FROM projects WHERE slug = ?1 OR id = ?1", (selector,))
        return _project(row) if row else None

    def find_project_at(self, root: Path) -> Project | None:
        """The project registered at exactly this root."""
        if not is_text(str(root)):
            return None
        row = self.database.find_row("SELECT * FROM projects WHERE root = ?", (str(root),))
        return _project(row) if row else None

    def list_workspaces(self, project_id: ProjectId) -> list[Workspace]:
        """A project's workspaces, main first, then by slug."""
        with self.database.read() as connection:
            return _workspaces(connection, project_id)

    def find_workspace(self, project_id: ProjectId, selector: str) -> Workspace | None:
        """A project's workspace by slug or id; nothing else is a selector here."""
        if not is_text(selector):
            return None
        row = self.database.find_row(
            "SELECT * FROM workspaces WHERE project_id = ?1 AND (slug = ?2 OR id = ?2)", (project_id, selector)
        )
        return _workspace(row) if row else None

    def has_slug(self, project_id: ProjectId, slug: Slug) -> bool:
        """Whether one of a project's workspaces has this slug."""
        query = "SELECT 1 FROM workspaces WHERE project_id = ? AND slug = ?"
        with self.database.read() as connection:
            return connection.execute(query, (project_id, slug)).fetchone() is not None

    def list_workspaces_at(self, folders: Iterable[Path]) -> list[Workspace]:
        """Those whose worktree or path is one of these folders, by project, main first, then by slug."""
        named = [str(folder) for folder in folders if is_text(str(folder))]
        marks = ", ".join("?" * len(named))
        query = (
            "SELECT w.* FROM workspaces w JOIN projects p ON p.id = w.project_id "  # noqa: S608 - marks
            f"WHERE w.worktree IN ({marks}) OR w.path IN ({marks}) ORDER BY p.slug, w.slug != 'main', w.slug"
        )
        with self.database.read() as connection:
            return [_workspace(row) for row in connection.execute(query, (*named, *named))]

    def find_root(self, workspace_id: WorkspaceId) -> Path | None:
        """Where a workspace's tools act, by its id alone."""
        row = self.database.find_row("SELECT path FROM workspaces WHERE id = ?", (workspace_id,))
        return Path(row[0]) if row else None

    def find_base(self, workspace_id: WorkspaceId) -> Base | None:
        """What a workspace was made from, if we made it."""
        row = self.database.find_row(
            "SELECT base_ref, base_commit FROM workspaces WHERE id = ? AND base_commit IS NOT NULL", (workspace_id,)
        )
        return Base(*row) if row else None

    def find_birth(self, workspace_id: WorkspaceId) -> float:
        """When a workspace was registered, in seconds since 1970; 0 when it is not."""
        row = self.database.find_row("SELECT created_at FROM workspaces WHERE id = ?", (workspace_id,))
        return float(row[0]) if row else 0.0

    def list_history(self, workspace_id: WorkspaceId) -> list[State]:
        """What became of a workspace, oldest first; also of one that is gone."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT at, state, detail FROM workspace_history WHERE workspace_id = ? ORDER BY seq", (workspace_id,)
            ).fetchall()
        return [State(*row) for row in rows]

    def list_unfinished(self) -> list[Unfinished]:
        """What began and has not ended, oldest first."""
        with self.database.read() as connection:
            rows = connection.execute("SELECT * FROM operations ORDER BY begun_at").fetchall()
        return [
            Unfinished(r["id"], r["kind"], ProjectId(r["project_id"]), Path(r["common_dir"]), bytes(r["facts"]))
            for r in rows
        ]

    def is_unfinished(self, operation_id: str) -> bool:
        """Whether an operation is still on record: neither completed nor taken back."""
        with self.database.read() as connection:
            return connection.execute("SELECT 1 FROM operations WHERE id = ?", (operation_id,)).fetchone() is not None

    def begin(self, operation: Unfinished) -> None:
        """Write down what is about to be done, before any of it is."""
        with self.change() as connection:
            begin_operation(connection, operation)


def begin_operation(connection: sqlite3.Connection, operation: Unfinished) -> None:
    """Write an operation down, in the transaction that ends the one before it."""
    connection.execute(
        "INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?)",
        (
            operation.id,
            operation.kind,
            operation.project_id,
            str(operation.common_dir),
            operation.facts,
            time.time(),
        ),
    )


def end_operation(connection: sqlite3.Connection, operation_id: str) -> None:
    """Strike an operation off, in the transaction that records its outcome."""
    connection.execute("DELETE FROM operations WHERE id = ?", (operation_id,))


def require_registered(connection: sqlite3.Connection, project: Project) -> None:
    """See that a project has not been removed by somebody else since it was looked up.

    Raises:
        UnknownProject: it has.
    """
    if connection.execute("SELECT 1 FROM projects WHERE id = ?", (project.id,)).fetchone() is None:
        raise UnknownProject(
            f"project {project.slug!r} was removed meanwhile", hint="exeora project add registers it again"
        )


def insert_project(connection: sqlite3.Connection, project: Project) -> None:
    """Add a project."""
    connection.execute(
        "INSERT INTO projects VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            project.id,
            project.slug,
            str(project.root),
            str(project.common_dir) if project.common_dir else None,
            str(project.subdirectory),
            project.bare,
            time.time(),
        ),
    )


def reshape_project(connection: sqlite3.Connection, project_id: ProjectId, shape: Project) -> None:
    """Record that a project's folder has become a repository; it has no workspace but main then."""
    connection.execute(
        "UPDATE projects SET common_dir = ?, subdirectory = ?, bare = ? WHERE id = ?",
        (str(shape.common_dir), str(shape.subdirectory), shape.bare, project_id),
    )
    depth = len(shape.subdirectory.parts)
    top = shape.root.parents[depth - 1] if depth else shape.root
    connection.execute("UPDATE workspaces SET worktree = ? WHERE project_id = ?", (str(top), project_id))


def delete_project(connection: sqlite3.Connection, project_id: ProjectId) -> None:
    """Take a project and its workspaces off the registry; nothing on disk changes."""
    connection.execute("DELETE FROM workspaces WHERE project_id = ?", (project_id,))
    connection.execute("DELETE FROM projects WHERE id = ?", (project_id,))


def relocate_project(connection: sqlite3.Connection, project: Project, root: Path, top: Path) -> None:
    """Have a project and its main lead to another folder; `top` is its main worktree's."""
    common_dir = str(top / ".git") if project.common_dir is not None else None
    connection.execute("UPDATE projects SET root = ?, common_dir = ? WHERE id = ?", (str(root), common_dir, project.id))
    connection.execute(
        "UPDATE workspaces SET worktree = ?, path = ? WHERE project_id = ? AND slug = 'main'",
        (str(top), str(root), project.id),
    )


def insert_workspace(connection: sqlite3.Connection, workspace: Workspace, base: Base | None, state: str) -> None:
    """Add a workspace, and the first entry of its history."""
    connection.execute(
        "INSERT INTO workspaces VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            workspace.id,
            workspace.project_id,
            workspace.slug,
            show_bytes(workspace.name),
            _recorded(workspace.branch),
            str(workspace.worktree),
            str(workspace.path),
            workspace.managed,
            show_bytes(base.ref) if base else None,
            base.commit if base else None,
            time.time(),
        ),
    )
    record_state(connection, workspace, state)


def update_workspace(connection: sqlite3.Connection, workspace: Workspace, state: str, detail: str | None) -> None:
    """Change a workspace's slug, name, branch and folder; its id stays."""
    connection.execute(
        "UPDATE workspaces SET slug = ?, name = ?, branch = ?, worktree = ?, path = ? WHERE id = ?",
        (
            workspace.slug,
            show_bytes(workspace.name),
            _recorded(workspace.branch),
            str(workspace.worktree),
            str(workspace.path),
            workspace.id,
        ),
    )
    record_state(connection, workspace, state, detail)


def _recorded(name: str | None) -> str | None:
    # What is recorded is only shown, a branch only where HEAD cannot be read.
    return None if name is None else show_bytes(name)


def delete_workspace(connection: sqlite3.Connection, workspace: Workspace, state: str) -> None:
    """Take a workspace off the registry; its history stays."""
    connection.execute("DELETE FROM workspaces WHERE id = ?", (workspace.id,))
    record_state(connection, workspace, state)


def record_state(connection: sqlite3.Connection, workspace: Workspace, state: str, detail: str | None = None) -> None:
    """Add an entry to a workspace's history."""
    connection.execute(
        "INSERT INTO workspace_history (project_id, workspace_id, slug, at, state, detail) VALUES (?, ?, ?, ?, ?, ?)",
        (workspace.project_id, workspace.id, workspace.slug, time.time(), state, _recorded(detail)),
    )


def _projects(connection: sqlite3.Connection) -> list[Project]:
    return [_project(row) for row in connection.execute("SELECT * FROM projects ORDER BY slug")]


def _workspaces(connection: sqlite3.Connection, project_id: ProjectId) -> list[Workspace]:
    query = "SELECT * FROM workspaces WHERE project_id = ? ORDER BY slug != 'main', slug"
    return [_workspace(row) for row in connection.execute(query, (project_id,))]


# Every call has a few of these made, of the same few texts.
_path = lru_cache(maxsize=4_096)(Path)
_pure_path = lru_cache(maxsize=256)(PurePosixPath)


def _project(row: sqlite3.Row) -> Project:
    return Project(
        id=ProjectId(row["id"]),
        slug=Slug(row["slug"]),
        root=_path(row["root"]),
        common_dir=_path(row["common_dir"]) if row["common_dir"] else None,
        subdirectory=_pure_path(row["subdirectory"]),
        bare=bool(row["bare"]),
    )


def _workspace(row: sqlite3.Row) -> Workspace:
    return Workspace(
        id=WorkspaceId(row["id"]),
        project_id=ProjectId(row["project_id"]),
        slug=Slug(row["slug"]),
        name=row["name"],
        branch=row["branch"],
        worktree=_path(row["worktree"]),
        path=_path(row["path"]),
        managed=bool(row["managed"]),
    )


def encode_facts(facts: msgspec.Struct) -> bytes:
    """Pack what an operation needs to be completed or undone by somebody else; names that are not UTF-8 too."""
    return json.dumps(msgspec.to_builtins(facts)).encode()


def decode_facts(data: bytes, kind: type[Any]) -> Any:
    """Unpack them."""
    return msgspec.convert(json.loads(data), kind)
