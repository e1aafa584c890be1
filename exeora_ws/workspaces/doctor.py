"""What is wrong with a project and its workspaces, each with what to type, and a repair where that can lose nothing.

Nothing is deleted here but records that Git itself does not see any more, and nothing is guessed: a moved folder is
recognised by the links between it and the repository.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from exeora_ws.errors import ExeoraError
from exeora_ws.git import links
from exeora_ws.git.admin import read_folder
from exeora_ws.git.gitfiles import read_git_link
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Repository, Worktree
from exeora_ws.names import show_bytes
from exeora_ws.workspaces import resolve, trash
from exeora_ws.workspaces.place import Project, Workspace
from exeora_ws.workspaces.registry import Registry, relocate_project, update_workspace


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong. `subject` is a workspace's slug, a project's, or `this machine`."""

    kind: str
    subject: str
    message: str
    hint: str
    repair: Callable[[], None] | None = None
    """Puts it right; only where nothing can be lost."""


def examine_project(registry: Registry, managed_root: Path, project: Project) -> Iterator[Problem]:
    """Look at a project, its repository and every workspace. The caller holds the repository's lock."""
    common_dir = project.common_dir
    if not project.root.is_dir() or (common_dir is not None and not common_dir.is_dir()):
        yield _explain_gone(registry, project)
        return
    if common_dir is None:
        return
    fault = links.find_main_fault(str(common_dir if project.bare else _top_of(project)), str(common_dir))
    if fault is not None and not project.bare:
        yield Problem("main_broken", project.slug, f"main is not the repository it was: {fault}", "look at its .git")
        return
    repository = open_repository(common_dir)
    yield from _examine_repository(registry, repository, project)
    for workspace in registry.list_workspaces(project.id):
        if not workspace.main:
            yield from _Examiner(registry, managed_root, project, repository).examine(workspace)
    yield from _examine_records(registry, project, repository)


def _top_of(project: Project) -> Path:
    depth = len(project.subdirectory.parts)
    return project.root.parents[depth - 1] if depth else project.root


def _explain_gone(registry: Registry, project: Project) -> Problem:
    moved = _find_moved_main(registry, project)
    if moved is None:
        hint = f"exeora project remove {project.slug} --force; then exeora project add PATH, if it was moved"
        return Problem("main_missing", project.slug, "its folder is gone", hint)

    def repair() -> None:
        root = moved / project.subdirectory
        with registry.change() as connection:
            relocate_project(connection, project, root, moved)
        repository = open_repository(moved)
        for worktree in repository.list_worktrees():
            if not worktree.main and worktree.path.is_dir():
                repository.follow_move(worktree, worktree.path)

    name = moved.name
    said = f"main was moved to {name!r}, beside where it was"
    return Problem("main_moved", project.slug, said, "exeora doctor --fix", repair)


def _find_moved_main(registry: Registry, project: Project) -> Path | None:
    """Find the one folder beside the old one whose repository has our workspaces on record."""
    ours = {str(w.worktree) for w in registry.list_workspaces(project.id) if not w.main}
    above = _top_of(project).parent
    if not ours or project.bare or not above.is_dir():
        return None
    found = [
        folder
        for folder in above.iterdir()
        if any(read_folder(folder / ".git", name) in ours for name in _list_names(folder / ".git" / "worktrees"))
    ]
    return found[0] if len(found) == 1 else None


def _list_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _examine_repository(registry: Registry, repository: Repository, project: Project) -> Iterator[Problem]:
    if repository.is_wrongly_bare() and not project.bare:
        said = "the shared settings say core.bare, so git takes main for a repository without files"
        yield Problem("core_bare", project.slug, said, "git config core.bare false", repository.clear_bare)
    needed = {repository.find_forsaken(w.worktree) for w in registry.list_workspaces(project.id) if not w.main}
    for name, empty in repository.list_remains():
        if name not in needed:
            yield _explain_remains(repository, project, name, empty=empty)
    for name in repository.list_stale_locks():
        hint = f"see that no git is at work, then delete {name} in the Git folder"
        yield Problem("stale_lock", project.slug, f"{name} has been there for more than ten minutes", hint)


def _explain_remains(repository: Repository, project: Project, name: str, *, empty: bool) -> Problem:
    def discard() -> None:
        repository.discard_entry(name)

    said = f"a crash left the record {name!r}, which names no worktree"
    if empty:
        return Problem("left_over_record", project.slug, said, "git worktree prune", discard)
    hint = "git worktree repair PATH, with a folder whose .git leads there; git worktree prune, if there is none"
    return Problem("left_over_record", project.slug, f"{said} and has an index, perhaps with staged work", hint)


def _examine_records(registry: Registry, project: Project, repository: Repository) -> Iterator[Problem]:
    workspaces = registry.list_workspaces(project.id)
    known = {w.worktree for w in workspaces}
    # A record that a workspace's folder leads to is that workspace's, wherever it points: pruning it would lose it.
    claimed = {os.path.basename(read_git_link(f"{w.worktree}/.git") or "") for w in workspaces}
    for worktree in repository.list_worktrees():
        if worktree.main or worktree.path in known or worktree.admin in claimed:
            continue
        name = worktree.path.name
        if worktree.locked is not None and worktree.prunable is not None:
            said = f"worktree {name!r} is locked and its folder is missing{_because(worktree.locked)}"
            yield Problem("locked_missing", project.slug, said, "git worktree unlock, if it will not come back")
        elif worktree.prunable is not None:
            said = f"worktree {name!r}: {worktree.prunable}"
            yield Problem("prunable", project.slug, said, "git worktree prune, or git worktree repair PATH")
        else:
            yield Problem("not_connected", project.slug, f"worktree {name!r} is not connected", "exeora adopt")
    for removed in trash.list_removed(registry, project.id):
        if not removed.restorable and removed.until > 0 and not removed.facts.tree.exists():
            said = "its files were deleted from the trash by something else"
            yield Problem("trash_gone", removed.workspace.slug, said, "nothing: its record goes with the next sweep")


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""


@dataclass(frozen=True, slots=True)
class _Examiner:
    registry: Registry
    managed_root: Path
    project: Project
    repository: Repository

    def examine(self, workspace: Workspace) -> Iterator[Problem]:
        fault = resolve.find_fault(self.project, workspace)
        worktree = next(
            (w for w in self.repository.list_worktrees() if w.path == workspace.worktree and not w.main), None
        )
        if fault is None:
            yield from self._examine_branch(workspace)
        elif fault == "missing":
            yield self._explain_missing(workspace, worktree)
        elif fault in ("broken_link", "not_a_worktree"):
            yield self._explain_broken(workspace, worktree, fault)
        else:
            hint = f"exeora detach {workspace.slug}, which touches nothing on disk"
            yield Problem(fault, workspace.slug, f"its folder is not this workspace any more: {fault}", hint)

    def _examine_branch(self, workspace: Workspace) -> Iterator[Problem]:
        current = resolve.refresh_branch(self.project, workspace)
        if (None if current.branch is None else show_bytes(current.branch)) != workspace.branch:

            def repair() -> None:
                with self.registry.change() as connection:
                    update_workspace(connection, current, "branch_seen", current.branch)

            said = f"it is on {current.branch or 'no branch'}, and on record with {workspace.branch or 'none'}"
            yield Problem("branch_changed", workspace.slug, said, "exeora doctor --fix", repair)

    def _explain_missing(self, workspace: Workspace, worktree: Worktree | None) -> Problem:
        if worktree is not None and worktree.locked is not None:
            said = f"it is locked and its folder is missing{_because(worktree.locked)}"
            return Problem("locked_missing", workspace.slug, said, f"exeora unlock {workspace.slug}, if it is lost")
        moved = None if worktree is None else self._find_moved(workspace, worktree)
        if moved is None or worktree is None:
            hint = f"exeora remove {workspace.slug}, or exeora prune --missing; its branch stays"
            return Problem("missing", workspace.slug, "its folder is gone", hint)
        said = f"its folder was moved and is {moved.parent.name}/{moved.name} now"
        return Problem("moved", workspace.slug, said, "exeora doctor --fix", self._relink(workspace, worktree, moved))

    def _find_moved(self, workspace: Workspace, worktree: Worktree) -> Path | None:
        """Find the one folder near the old one, or under the managed root, whose link leads to this entry."""
        entry = f"{self.repository.common_dir}/worktrees/{worktree.admin}"
        near = {workspace.worktree.parent, self.managed_root / self.project.slug, _top_of(self.project).parent}
        found = {
            (folder / name).resolve()
            for folder in near
            for name in _list_names(folder)
            if (link := read_git_link(f"{folder / name}/.git")) is not None and os.path.realpath(link) == entry
        }
        return found.pop() if len(found) == 1 else None

    def _explain_broken(self, workspace: Workspace, worktree: Worktree | None, fault: str) -> Problem:
        """Links are mended only where one side still leads to the other, and nothing else stands at its end."""
        if worktree is None and self.repository.find_forsaken(workspace.worktree) is not None:
            said = "Git's record of it has lost the way back to its folder"
            return Problem(fault, workspace.slug, said, "exeora doctor --fix", self._reconnect(workspace))
        entry = worktree or self._find_entry(workspace)
        if entry is None or (entry.path != workspace.worktree and entry.path.exists()):
            hint = f"exeora detach {workspace.slug}, which touches nothing on disk; its files are all there"
            return Problem(fault, workspace.slug, "Git has no record of it any more", hint)
        said = "its folder and Git's record do not lead to each other"
        repair = self._relink(workspace, entry, workspace.worktree)
        return Problem(fault, workspace.slug, said, "exeora doctor --fix", repair)

    def _find_entry(self, workspace: Workspace) -> Worktree | None:
        link = read_git_link(f"{workspace.worktree}/.git")
        if link is None:
            return None
        name = os.path.basename(os.path.realpath(link))
        ours = links.leads_to(str(workspace.worktree), str(self.repository.common_dir))
        return next((w for w in self.repository.list_worktrees() if ours and w.admin == name), None)

    def _reconnect(self, workspace: Workspace) -> Callable[[], None]:
        def repair() -> None:
            self.repository.reconnect(workspace.worktree)

        return repair

    def _relink(self, workspace: Workspace, worktree: Worktree, folder: Path) -> Callable[[], None]:
        def repair() -> None:
            self.repository.follow_move(worktree, folder)
            if folder != workspace.worktree:
                after = replace(workspace, worktree=folder, path=folder / self.project.subdirectory)
                with self.registry.change() as connection:
                    update_workspace(connection, after, "moved", folder.name)

        return repair


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem and what became of it: `found`, `fixable`, `fixed` or `not_fixed` (with `why`)."""

    problem: Problem
    status: str
    why: str | None = None


def settle(problem: Problem, *, fix: bool) -> Finding:
    """Repair a problem where that is asked for and can lose nothing."""
    if problem.repair is None:
        return Finding(problem, "found")
    if not fix:
        return Finding(problem, "fixable")
    try:
        problem.repair()
    except ExeoraError as error:
        return Finding(problem, "not_fixed", error.message)
    return Finding(problem, "fixed")
