"""Public failures of other tools, for what is beyond create and remove (numbers as in the list of cases)."""

import shutil
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.cancellation import Cancellation
from exeora_ws.workspaces.place import Project

from support.repositories import git
from support.trees import repository_picture


@pytest.fixture
def top(result) -> Path:
    return Path(result("create_workspace", branch="x")["workspace"]["path"])


def test_10_locked_and_its_folder_missing_is_refused_with_the_reason(app: App, project: Project, refusal, top: Path):
    git(project.root, "worktree", "lock", "--reason", "on a stick", str(top))
    shutil.rmtree(top)
    before = repository_picture(project.root)
    error = refusal("remove_workspace", workspace="x", force=True)
    assert (error["reason"], error["data"]["lockReason"]) == ("locked", "on a stick")
    verdicts = app.upkeep.prune(
        project, merged=True, missing=True, least_age=0, dry_run=False, keep_branches=False, cancellation=Cancellation()
    )
    assert [(v.kept, v.detail) for v in verdicts] == [("locked", "on a stick")]
    assert repository_picture(project.root) == before


def test_13_variables_of_a_hook_lead_nothing_astray(
    app: App, project: Project, top: Path, make_repository, monkeypatch: pytest.MonkeyPatch
):
    other = make_repository("other")
    before = repository_picture(other)
    config = (project.root / ".git/config").read_bytes()
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    upkeep, none = app.upkeep, Cancellation()
    (top / "work.txt").write_text("work\n")
    place = app.inventory.require_place(project, "x")
    made = upkeep.create(place, "moved", with_changes=True, cancellation=none)
    assert (made.creation.workspace.path / "work.txt").exists()
    assert not (top / "work.txt").exists()
    moved = app.inventory.require_place(project, "moved")
    assert upkeep.load_difference(moved, None, stat=False)[1].untracked == ("work.txt",)
    assert {o.workspace.slug for o in upkeep.look_at_all(project)} == {"main", "x", "moved"}
    app.inventory.remove(moved, force=True, delete_branch=True, cancellation=none)
    upkeep.restore(project, "moved", detach=False, cancellation=none)
    upkeep.rename(moved, "other-name", cancellation=none)
    assert [f.problem.kind for f in upkeep.examine(project, fix=True, cancellation=none)] == []
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert repository_picture(other) == before
    assert (project.root / ".git/config").read_bytes() == config
    assert git(made.creation.workspace.path.with_name("other-name"), "status", "--porcelain") == "?? work.txt"


def test_14_a_folder_deleted_by_hand_can_be_created_again(app: App, project: Project, result, top: Path):
    shutil.rmtree(top)
    listed = {o.workspace.slug: o.fault for o in app.upkeep.look_at_all(project)}
    assert listed == {"main": None, "x": "missing"}
    list(
        app.upkeep.prune(
            project,
            merged=False,
            missing=True,
            dry_run=False,
            keep_branches=False,
            cancellation=Cancellation(),
        )
    )
    assert result("create_workspace", branch="x", reuseExistingBranch=True)["created"] is True
