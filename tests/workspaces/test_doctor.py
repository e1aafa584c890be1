"""doctor: every kind of damage is named with what to type, and mended only where nothing can be lost."""

import os
import shutil
import time
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.workspaces.doctor import Finding
from exeora_ws.workspaces.place import Project

from support.repositories import git
from support.trees import picture


@pytest.fixture
def top(result) -> Path:
    return Path(result("create_workspace", branch="x")["workspace"]["path"])


def examine(app: App, project: Project, *, fix: bool = False) -> dict[str, Finding]:
    found = list(app.upkeep.examine(project, fix=fix, cancellation=Cancellation()))
    assert all(f.problem.hint and f.problem.message for f in found)
    assert all("/home/" not in f.problem.message and "/tmp/" not in f.problem.message for f in found)
    return {f.problem.kind: f for f in found}


def statuses(found: dict[str, Finding]) -> dict[str, str]:
    return {kind: finding.status for kind, finding in found.items()}


def mended(app: App, project: Project, kind: str, top: Path) -> None:
    """The problem is named, left alone without `fix`, and gone with it; nothing of the files changes."""
    files = {n: f for n, f in picture(top).items() if n != ".git"}
    assert statuses(examine(app, project)) == {kind: "fixable"}
    assert statuses(examine(app, project, fix=True)) == {kind: "fixed"}
    again = app.inventory.require_project(project.id)
    assert examine(app, again) == {}
    assert {n: f for n, f in picture(top).items() if n != ".git"} == files
    assert git(top, "status", "--porcelain") == ""
    assert git(again.root, "status", "--porcelain") == ""
    workspace = next(w for w in app.inventory.list_workspaces(again) if w.slug == "x")
    assert app.inventory.find_fault(again, workspace) is None


def test_nothing_is_wrong_with_a_sound_one(app: App, project: Project, top: Path):
    assert examine(app, project) == {}
    assert [f.problem.kind for f in app.upkeep.examine_machine(fix=False)] == []


def test_a_moved_workspace_is_found_by_its_link(app: App, project: Project, top: Path):
    new = top.with_name("moved here")
    top.rename(new)
    mended(app, project, "moved", new)
    assert app.inventory.require_place(project, "x").root == new


def test_a_moved_main_is_found_by_its_records(app: App, project: Project, top: Path):
    new = project.root.with_name("renamed")
    project.root.rename(new)
    mended(app, project, "main_moved", top)
    again = app.inventory.require_project(project.id)
    assert (again.root, again.common_dir) == (new, new / ".git")
    assert app.inventory.require_place(again, "main").root == new


def test_a_main_that_is_gone_is_said(app: App, project: Project, top: Path):
    shutil.rmtree(project.root)
    assert statuses(examine(app, project, fix=True)) == {"main_missing": "found"}


def test_broken_links_are_mended(app: App, project: Project, top: Path):
    (project.root / ".git/worktrees/x/gitdir").write_text("/nowhere/at/all/.git\n")
    mended(app, project, "broken_link", top)
    (top / ".git").unlink()
    mended(app, project, "not_a_worktree", top)


def test_a_record_that_is_gone_is_not_invented(app: App, project: Project, top: Path):
    shutil.rmtree(project.root / ".git/worktrees/x")
    before = picture(top)
    assert statuses(examine(app, project, fix=True)) == {"broken_link": "found"}
    assert picture(top) == before


def test_a_folder_that_is_somebody_elses_is_left_alone(app: App, project: Project, top: Path):
    shutil.rmtree(top)
    top.mkdir()
    git(top, "init", "-q")
    assert statuses(examine(app, project, fix=True)) == {"other_repository": "found"}


def test_a_missing_and_a_locked_missing_one(app: App, project: Project, top: Path):
    shutil.rmtree(top)
    found = examine(app, project, fix=True)
    assert statuses(found) == {"missing": "found"}
    assert "exeora remove x" in found["missing"].problem.hint
    (project.root / ".git/worktrees/x/locked").write_text("on a stick\n")
    found = examine(app, project, fix=True)
    assert statuses(found) == {"locked_missing": "found"}
    assert "on a stick" in found["locked_missing"].problem.message


def test_core_bare_in_the_shared_settings(app: App, project: Project, top: Path):
    git(project.root, "config", "core.bare", "true")
    mended(app, project, "core_bare", top)


def test_records_left_by_a_crash_go_when_they_are_old(app: App, project: Project, top: Path):
    for name in ("empty", "half", "new"):
        (project.root / ".git/worktrees" / name).mkdir()
    (project.root / ".git/worktrees/half/HEAD").write_text("ref: refs/heads/half\n")
    for name in ("empty", "half"):
        os.utime(project.root / ".git/worktrees" / name, (0, 0))
    mended(app, project, "left_over_record", top)
    assert sorted(os.listdir(project.root / ".git/worktrees")) == ["new", "x"]


def test_a_record_that_lost_its_way_back_keeps_what_is_staged(app: App, project: Project, top: Path):
    (top / "staged.txt").write_text("work\n")
    git(top, "add", "staged.txt")
    entry = project.root / ".git/worktrees/x"
    (entry / "gitdir").unlink()
    os.utime(entry, (0, 0))
    assert statuses(examine(app, project)) == {"broken_link": "fixable"}
    assert statuses(examine(app, project, fix=True)) == {"broken_link": "fixed"}
    assert examine(app, project) == {}
    assert git(top, "status", "--porcelain") == "A  staged.txt"


def test_a_record_with_an_index_that_nobody_knows_is_named_and_never_taken(app: App, project: Project, top: Path):
    entry = project.root / ".git/worktrees/x"
    app.inventory.detach(app.inventory.require_place(project, "x"))
    (entry / "gitdir").unlink()
    os.utime(entry, (0, 0))
    assert statuses(examine(app, project, fix=True)) == {"left_over_record": "found"}
    assert (entry / "index").exists()


def test_a_branch_that_is_not_utf8_is_nothing_wrong(app: App, project: Project, top: Path):
    name = os.fsdecode(b"lat\xe9")
    git(top, "switch", "-q", "-c", name)
    assert statuses(examine(app, project, fix=True)) == {"branch_changed": "fixed"}
    assert examine(app, project) == {}


def test_stale_locks_are_named_and_never_taken(app: App, project: Project, top: Path):
    lock = project.root / ".git/worktrees/x/index.lock"
    lock.touch()
    assert examine(app, project) == {}
    os.utime(lock, (time.time() - 3600,) * 2)
    assert statuses(examine(app, project, fix=True)) == {"stale_lock": "found"}
    assert lock.exists()


def test_a_registry_that_disagrees(app: App, project: Project, top: Path, tmp_path: Path):
    git(top, "switch", "-q", "-c", "other")
    git(project.root, "worktree", "add", "-q", "-b", "stranger", str(tmp_path / "stranger"))
    found = examine(app, project, fix=True)
    assert statuses(found) == {"branch_changed": "fixed", "not_connected": "found"}
    assert found["not_connected"].problem.hint == "exeora adopt"
    assert app.inventory.registry.list_workspaces(project.id)[1].branch == "other"


def test_what_is_wrong_with_the_machine(app: App, project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    app.inventory.places.database.chmod(0o644)
    found = {f.problem.kind: f.status for f in app.upkeep.examine_machine(fix=True)}
    assert found == {"too_open": "fixed"}
    assert app.inventory.places.database.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("EXEORA_RG", str(tmp_path / "none"))
    monkeypatch.setenv("EXEORA_WORKTREE_ROOT", str(project.root / "inside"))
    kinds = [f.problem.kind for f in app.upkeep.examine_machine(fix=True)]
    assert kinds == ["git_missing", "ripgrep_missing", "root_inside_checkout"]
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.20.1\n")
    old.chmod(0o755)
    assert "git_old" in [f.problem.kind for f in app.upkeep.examine_machine(fix=True)]


def test_a_repair_that_fails_is_said(app: App, project: Project, top: Path, monkeypatch: pytest.MonkeyPatch):
    from exeora_ws.git.engine import Engine

    def refuse(*_: object) -> None:
        raise ToolFailed("no", reason="io_failed")

    top.rename(top.with_name("elsewhere"))
    monkeypatch.setattr(Engine, "follow_move", refuse)
    assert statuses(examine(app, project, fix=True)) == {"moved": "not_fixed"}
