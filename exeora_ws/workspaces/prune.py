"""Which workspaces are done with: merged, or their folder gone. Offline; whatever would lose something is kept.

A branch without commits of its own is not merged: nothing was done in it yet.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exeora_ws.errors import ExeoraError
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import BranchDeletion, Repository, Worktree
from exeora_ws.workspaces import resolve
from exeora_ws.workspaces.overview import find_base_ref
from exeora_ws.workspaces.place import Project, Workspace
from exeora_ws.workspaces.registry import Registry


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a workspace goes, and why.

    `evidence` says how it is merged (see `Repository.find_merge_evidence`; `missing` for a folder that is gone), `into`
    what; `kept` why it stays all the same: `no_commits`, `not_merged`, `too_young`, `dirty`, `locked`, `running`,
    `unpushed`, `operation_in_progress`, `detached_head`, `missing`, `unavailable`.
    """

    workspace: Workspace
    kept: str | None
    evidence: str | None = None
    into: str | None = None
    detail: str | None = None
    head: str | None = None
    branch: BranchDeletion | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What to look for. Ages are seconds."""

    merged: bool
    missing: bool
    least_age: float


def judge_all(registry: Registry, project: Project, wish: Wish, running: Mapping[str, int]) -> Iterator[Verdict]:
    """Judge every workspace but main."""
    common_dir = resolve.require_repository_dir(project)
    repository = open_repository(common_dir)
    worktrees = {w.path: w for w in repository.list_worktrees()}
    trunk = next((w.branch for w in worktrees.values() if w.main), None)
    for workspace in registry.list_workspaces(project.id):
        if not workspace.main:
            current = resolve.refresh_branch(project, workspace)
            judge = _Judge(registry, repository, project, wish, trunk)
            yield judge.judge(current, worktrees.get(workspace.worktree), running.get(workspace.id, 0))


@dataclass(frozen=True, slots=True)
class _Judge:
    registry: Registry
    repository: Repository
    project: Project
    wish: Wish
    trunk: str | None

    def judge(self, workspace: Workspace, worktree: Worktree | None, running: int) -> Verdict:
        try:
            return self._judge(workspace, worktree, running)
        except ExeoraError as error:
            return Verdict(workspace, "unavailable", detail=error.message)

    def _judge(self, workspace: Workspace, worktree: Worktree | None, running: int) -> Verdict:
        if worktree is not None and worktree.locked is not None:
            return Verdict(workspace, "locked", detail=worktree.locked or None)
        fault = resolve.find_fault(self.project, workspace)
        if fault is not None:
            return self._judge_fault(workspace, fault)
        if worktree is not None and worktree.operation is not None:
            return Verdict(workspace, "operation_in_progress", detail=worktree.operation)
        if worktree is None or worktree.head is None or workspace.branch is None:
            return Verdict(workspace, "detached_head")
        return self._judge_merge(workspace, worktree.head, running)

    def _judge_fault(self, workspace: Workspace, fault: str) -> Verdict:
        if fault == "missing":
            return Verdict(workspace, None if self.wish.missing else "missing", "missing")
        return Verdict(workspace, "unavailable", detail=fault)

    def _judge_merge(self, workspace: Workspace, head: str, running: int) -> Verdict:
        if not self.wish.merged:
            return Verdict(workspace, "not_merged", detail="not looked at")
        base = self.registry.find_base(workspace.id)
        if base is not None and base.commit == head:
            return Verdict(workspace, "no_commits")
        found = self._find_evidence(workspace, head)
        if found is None:
            return Verdict(workspace, "not_merged")
        evidence, into = found
        if base is None and evidence == "same_commit":
            return Verdict(workspace, "no_commits")
        kept, detail = self._find_objection(workspace, head, running)
        return Verdict(workspace, kept, evidence, into, detail, head)

    def _find_evidence(self, workspace: Workspace, head: str) -> tuple[str, str] | None:
        """Look in the base and in its remote branch as last fetched: a merge on the forge is seen there first."""
        ref = find_base_ref(self.registry, workspace, self.trunk)
        if ref is None:
            return None
        targets = {ref: self.repository.find_commit(ref)}
        tracked = self.repository.find_tracked(ref)
        if tracked is not None:
            targets[tracked.short] = tracked.commit
        for into, commit in targets.items():
            evidence = self.repository.find_merge_evidence(head, commit) if commit is not None else None
            if evidence is not None:
                return evidence, into
        return None

    def _find_objection(self, workspace: Workspace, head: str, running: int) -> tuple[str | None, str | None]:
        age = time.time() - self.registry.find_birth(workspace.id)
        if age < self.wish.least_age:
            return "too_young", f"{int(age)} s old"
        if running:
            return "running", f"{running} processes"
        status = open_repository(workspace.worktree).status()
        if not status.clean:
            return "dirty", None
        tracked = self.repository.find_tracked(workspace.branch or "")
        if tracked is not None and not self.repository.is_ancestor(head, tracked.commit):
            ahead, _ = self.repository.count_ahead_behind(head, tracked.commit)
            return "unpushed", f"{ahead} commits that {tracked.short} lacks"
        return None, None
