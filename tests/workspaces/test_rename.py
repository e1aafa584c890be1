"""rename: branch, slug and folder together or nothing; lock and unlock."""

import os
from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError
from exeora_ws.workspaces.place import Place, Project
from exeora_ws.workspaces.rename import Renaming

from support.repositories import commit_file, git
from support.trees import picture, repository_picture


@pytest.fixture
def top(result) -> Path:
    return Path(result("create_workspace", branch="x")["workspace"]["path"])


@pytest.fixture
def place(app: App, project: Project, top: Path) -> Place:
    return app.inventory.require_place(project, "x")


def rename(app: App, place: Place, branch: str, **more: object) -> Renaming:
    return app.upkeep.rename(place, branch, **more, cancellation=Cancellation())


def refused(app: App, place: Place, branch: str, **more: object) -> str | None:
    repository = place.project.root
    before, files = repository_picture(repository), picture(place.workspace.worktree)
    with pytest.raises(ExeoraError) as caught:
        rename(app, place, branch, **more)
    assert repository_picture(repository) == before
    assert picture(place.workspace.worktree) == files
    assert app.inventory.registry.list_unfinished() == []
    return caught.value.reason


def test_everything_is_renamed_and_what_was_changed_stays(app: App, project: Project, place: Place, top: Path):
    git(top, "config", "branch.x.description", "mine")
    commit_file(top, "work.txt", "work")
    (top / "README.md").write_text("staged\n")
    git(top, "add", "README.md")
    (top / "new.txt").write_text("untracked\n")
    status, head = git(top, "status", "--porcelain"), git(top, "rev-parse", "HEAD")
    done = rename(app, place, "feature/better")
    after = app.inventory.require_place(project, "feature-better").workspace
    assert after == done.after
    assert (after.id, after.branch, after.name) == (place.workspace.id, "feature/better", "feature/better")
    assert after.path == top.parent / "feature-better"
    assert not top.exists()
    assert git(after.path, "status", "--porcelain") == status
    assert git(after.path, "rev-parse", "refs/heads/feature/better") == head
    assert git(after.path, "config", "branch.feature/better.description") == "mine"
    assert git(project.root, "worktree", "list", "--porcelain").count("prunable") == 0
    assert git(project.root, "branch", "--list", "x") == ""
    assert app.inventory.find_fault(project, after) is None


def test_a_branch_below_its_own_old_name(app: App, place: Place):
    assert rename(app, place, "x/y").after.slug == "x-y"


def test_workspaces_made_from_it_follow(app: App, project: Project, place: Place, result):
    made = result("create_workspace", branch="child", workspace="x")
    assert made["base"]["ref"] == "x"
    rename(app, place, "y")
    base = app.inventory.registry.find_base(made["workspace"]["id"])
    assert base is not None
    assert base.ref == "y"


def test_an_attached_folder_stays_where_it_is(app: App, project: Project, result, tmp_path: Path):
    theirs = tmp_path / "theirs"
    git(project.root, "worktree", "add", "-q", "-b", "theirs", str(theirs))
    result("attach_workspace", branch="theirs")
    done = rename(app, app.inventory.require_place(project, "theirs"), "ours")
    assert (done.after.slug, done.after.path, done.after.branch) == ("ours", theirs, "ours")
    assert git(theirs, "symbolic-ref", "--short", "HEAD") == "ours"


def test_slug_alone_and_folder_kept(app: App, place: Place, top: Path):
    done = rename(app, place, "short", keep_branch=True, keep_folder=True)
    assert (done.after.slug, done.after.branch, done.after.path) == ("short", "x", top)


def test_refusals_change_nothing(app: App, project: Project, place: Place, result):
    result("create_workspace", branch="other")
    git(project.root, "branch", "taken")
    git(project.root, "branch", "dir/leaf")
    assert refused(app, place, "taken") == "branch_exists"
    assert refused(app, place, "dir") == "branch_conflict"
    assert refused(app, place, "a..b") == "invalid_branch"
    assert refused(app, place, "fine", slug="other") == "slug_taken"
    assert refused(app, place, "fine", slug="main") == "reserved_slug"
    assert refused(app, app.inventory.require_place(project, "main"), "fine") == "is_main"
    blocked = place.workspace.worktree.parent / "fine"
    blocked.mkdir()
    (blocked / "file").touch()
    assert refused(app, place, "fine") == "target_not_empty"


def test_a_detached_locked_or_rebasing_one_is_refused(app: App, project: Project, place: Place, top: Path):
    app.upkeep.lock(place, "release", cancellation=Cancellation())
    assert refused(app, place, "fine") == "locked"
    assert app.upkeep.unlock(place, cancellation=Cancellation()) == "release"
    commit_file(top, "README.md", "theirs\n")
    commit_file(project.root, "README.md", "ours\n")
    git(top, "rebase", "main", check=False)
    assert refused(app, place, "fine") == "operation_in_progress"
    git(top, "rebase", "--abort")
    git(top, "switch", "-q", "--detach")
    assert refused(app, place, "fine") == "detached_head"


def test_submodules_keep_the_folder(app: App, project: Project, result, make_repository):
    git(project.root, "submodule", "add", "-q", str(make_repository("module")), "lib")
    git(project.root, "commit", "-q", "-m", "module")
    top = Path(result("create_workspace", branch="y")["workspace"]["path"])
    git(top, "submodule", "update", "-q", "--init")
    place = app.inventory.require_place(project, "y")
    assert refused(app, place, "z") == "has_submodules"
    assert rename(app, place, "z", keep_folder=True).after.branch == "z"
    assert git(top / "lib", "status", "--porcelain") == ""


def test_lock_is_gits_own_and_refuses_removal(app: App, project: Project, place: Place, top: Path, refusal):
    app.upkeep.lock(place, "on a stick", cancellation=Cancellation())
    assert "locked on a stick" in git(project.root, "worktree", "list", "--porcelain")
    error = refusal("remove_workspace", workspace="x", force=True)
    assert (error["reason"], error["data"]["lockReason"]) == ("locked", "on a stick")
    with pytest.raises(ExeoraError) as caught:
        app.upkeep.lock(place, "again", cancellation=Cancellation())
    assert caught.value.reason == "locked"
    assert "on a stick" in caught.value.message
    assert app.upkeep.unlock(place, cancellation=Cancellation()) == "on a stick"
    assert app.upkeep.unlock(place, cancellation=Cancellation()) is None
    with pytest.raises(ExeoraError) as caught:
        app.upkeep.lock(app.inventory.require_place(project, "main"), "", cancellation=Cancellation())
    assert caught.value.reason == "is_main"


def test_rename_is_whole_or_not_begun_at_every_step(app: App, project: Project, place: Place, top: Path, run):
    (top / "new.txt").write_text("untracked\n")
    counted = run.upkeep(0, "rename", place="x", branch="y")
    assert counted is not None
    assert counted["outcome"] == {}
    rename(app, app.inventory.require_place(project, "y"), "x")
    seen = set()
    for fatal in range(1, counted["steps"] + 1):
        run.upkeep(fatal, "rename", place="x", branch="y")
        now = open_app()
        assert now.inventory.registry.list_unfinished() == []
        found = now.inventory.list_workspaces(project)[1]
        assert now.inventory.find_fault(project, found) is None, f"step {fatal}"
        assert found.slug == found.branch == found.path.name, f"step {fatal}"
        assert git(found.path, "status", "--porcelain") == "?? new.txt", f"step {fatal}"
        assert git(project.root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [
            "main",
            found.slug,
        ]
        assert sorted(os.listdir(top.parent)) == [found.slug]
        seen.add(found.slug)
        if found.slug == "y":
            rename(now, now.inventory.require_place(project, "y"), "x")
    assert seen == {"x", "y"}


def test_relative_links_stay_relative(app: App, project: Project, place: Place, top: Path):
    entry = project.root / ".git/worktrees/x"
    (entry / "gitdir").write_text(os.path.relpath(top / ".git", entry) + "\n")
    (top / ".git").write_text("gitdir: " + os.path.relpath(entry, top) + "\n")
    after = rename(app, place, "y").after
    assert (after.path / ".git").read_text().startswith("gitdir: ../")
    assert git(after.path, "status", "--porcelain") == ""
    assert app.inventory.find_fault(project, after) is None
