"""What state every workspace is in: asked of all at once, given as the answers come."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from exeora_ws.errors import ExeoraError
from exeora_ws.git.opening import load_libgit2, load_shown_status, open_repository
from exeora_ws.git.port import LoggedCommit, Repository, Status, Worktree
from exeora_ws.workspaces import resolve
from exeora_ws.workspaces.place import Project, Workspace
from exeora_ws.workspaces.registry import Registry

CountProcesses = Callable[[], Mapping[str, int]]
"""Counts the live processes of each workspace, by its id."""
_MOST_THREADS = 8
_FEW = 4
"""As many workspaces at most are asked about by processes alone: for more, loading libgit2 takes less than these."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Commits only here, and only in what it is measured against."""

    against: str
    ahead: int
    behind: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A workspace and its state. What cannot be told is None, and `problem` says why."""

    workspace: Workspace
    fault: str | None
    """Why its folder cannot be used (`missing`, `broken_link`, …)."""
    locked: str | None
    processes: int
    changes: Status | None = None
    operation: str | None = None
    head: str | None = None
    committed_at: int | None = None
    base: Distance | None = None
    upstream: Distance | None = None
    problem: str | None = None


def look_at_all(registry: Registry, project: Project, count_processes: CountProcesses) -> Iterator[Overview]:
    """Look at every workspace of a project in several threads; gives each as soon as it is known.

    Changes are what `git status` shows. It is asked first, in every workspace: the rest is found out beside it.

    Raises:
        ToolFailed: the repository itself cannot be read.
    """
    workspaces = [resolve.refresh_branch(project, w) for w in registry.list_workspaces(project.id)]
    trunk = next((w.branch for w in workspaces if w.main), None)
    with ThreadPoolExecutor(min(_MOST_THREADS, (os.cpu_count() or 1) * 2), "look") as threads:
        known = threads.submit(_load_common, project, count_processes, loading=len(workspaces) > _FEW)
        waiting = [threads.submit(_look_beside, registry, project, w, trunk, known) for w in workspaces]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            for future in waiting:
                future.cancel()


@dataclass(frozen=True, slots=True)
class _Common:
    """What is asked once for all workspaces."""

    worktrees: Mapping[str, Worktree]
    counts: Mapping[str, int]


def _load_common(project: Project, count_processes: CountProcesses, *, loading: bool) -> _Common:
    if loading:
        load_libgit2()
    worktrees: Sequence[Worktree] = ()
    if project.common_dir is not None:
        worktrees = open_repository(project.common_dir).list_worktrees()
    return _Common({str(w.path): w for w in worktrees}, count_processes())


def _look_beside(
    registry: Registry, project: Project, workspace: Workspace, trunk: str | None, known: "Future[_Common]"
) -> Overview:
    changes = _load_changes(project, workspace)
    common = known.result()
    worktree = common.worktrees.get(str(workspace.worktree))
    return _look(registry, project, workspace, worktree, (trunk, common.counts.get(workspace.id, 0)), changes=changes)


def _load_changes(project: Project, workspace: Workspace) -> Status | ExeoraError | None:
    if project.common_dir is None or resolve.find_fault(project, workspace) is not None:
        return None
    try:
        return load_shown_status(workspace.worktree)
    except ExeoraError as error:
        return error


@dataclass(frozen=True, slots=True)
class Preview:
    """A workspace as someone sees it who has to choose: its state and its last commits, newest first."""

    overview: Overview
    commits: Sequence[LoggedCommit]


def look_at_one(
    registry: Registry, project: Project, workspace: Workspace, count_processes: CountProcesses, *, commits: int
) -> Preview:
    """Look at one workspace, and its last commits.

    Raises:
        ToolFailed: the repository cannot be read.
    """
    current = resolve.refresh_branch(project, workspace)
    worktrees: Sequence[Worktree] = ()
    if project.common_dir is not None:
        worktrees = open_repository(project.common_dir).list_worktrees()
    own = next((w for w in worktrees if w.path == current.worktree), None)
    trunk = next((w.branch for w in worktrees if w.main), None)
    seen = _look(registry, project, current, own, (trunk, count_processes().get(current.id, 0)))
    log = open_repository(current.worktree).list_recent(seen.head, commits) if seen.head is not None else ()
    return Preview(seen, log)


def _look(
    registry: Registry,
    project: Project,
    workspace: Workspace,
    worktree: Worktree | None,
    more: tuple[str | None, int],
    *,
    changes: Status | ExeoraError | None = None,
) -> Overview:
    trunk, processes = more
    changes = changes or _load_changes(project, workspace)
    fault = resolve.find_fault(project, workspace)
    locked = worktree.locked if worktree is not None else None
    seen = Overview(workspace, fault, locked, processes)
    if fault is not None or changes is None:
        return seen
    try:
        if isinstance(changes, ExeoraError):
            raise changes
        repository = open_repository(workspace.worktree)
        head = repository.head().commit
        return Overview(
            workspace,
            fault,
            locked,
            processes,
            changes=changes,
            operation=worktree.operation if worktree is not None else None,
            head=head,
            committed_at=repository.read_commit_time(head) if head is not None else None,
            base=_measure_base(registry, repository, workspace, head, trunk),
            upstream=_measure_upstream(repository, workspace, head),
        )
    except ExeoraError as error:
        return Overview(workspace, fault, locked, processes, problem=error.message)


def find_base_ref(registry: Registry, workspace: Workspace, trunk: str | None) -> str | None:
    """Give what a workspace is measured against: what it was made from, else the branch that main is on."""
    base = registry.find_base(workspace.id)
    if base is not None and base.ref not in ("HEAD", workspace.branch):
        return base.ref
    return trunk if trunk != workspace.branch else None


def _measure_base(
    registry: Registry, repository: Repository, workspace: Workspace, head: str | None, trunk: str | None
) -> Distance | None:
    if workspace.main or head is None:
        return None
    ref = find_base_ref(registry, workspace, trunk)
    commit = repository.find_commit(ref) if ref is not None else None
    if ref is None or commit is None:
        base = registry.find_base(workspace.id)
        ref, commit = (base.ref, base.commit) if base is not None else (None, None)
    return _measure(repository, ref, head, commit)


def _measure_upstream(repository: Repository, workspace: Workspace, head: str | None) -> Distance | None:
    if workspace.branch is None or head is None:
        return None
    tracked = repository.find_tracked(workspace.branch)
    return None if tracked is None else _measure(repository, tracked.short, head, tracked.commit)


def _measure(repository: Repository, against: str | None, head: str, commit: str | None) -> Distance | None:
    if against is None or commit is None:
        return None
    return Distance(against, *repository.count_ahead_behind(head, commit))
