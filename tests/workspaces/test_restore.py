"""restore: what a removal took comes back byte for byte, or nothing changes; the trash is swept."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.workspaces import sweeper, trash
from exeora_ws.workspaces.place import Project
from exeora_ws.workspaces.restore import Restoration

from support.repositories import commit_file, git
from support.trees import picture, repository_picture


@pytest.fixture
def top(result) -> Path:
    return Path(result("create_workspace", branch="x")["workspace"]["path"])


def restore(app: App, project: Project, selector: str | None = None, *, detach: bool = False) -> Restoration:
    return app.upkeep.restore(project, selector, detach=detach, cancellation=Cancellation())


def refused(app: App, project: Project, selector: str | None = None) -> str | None:
    with pytest.raises(ToolFailed) as caught:
        restore(app, project, selector)
    return caught.value.reason


def make_dirty(top: Path) -> None:
    (top / ".gitignore").write_text("*.env\n")
    git(top, "add", ".gitignore")
    git(top, "commit", "-q", "-m", "ignore")
    (top / "local.env").write_text("SECRET=1\n")
    (top / "README.md").write_text("staged\n")
    git(top, "add", "README.md")
    (top / "README.md").write_text("and changed again\n")
    (top / "new.txt").write_text("untracked\n")
    (top / "script.sh").write_text("#!/bin/sh\n")
    (top / "script.sh").chmod(0o755)
    os.symlink("README.md", top / "link")


def test_everything_comes_back_and_a_removed_ignored_file_with_it(app: App, project: Project, result, top: Path):
    make_dirty(top)
    before = (picture(top), git(top, "status", "--porcelain=v2", "--branch"), git(top, "diff", "--cached"))
    identity = result("list_workspaces")["workspaces"][1]
    removed = result("remove_workspace", workspace="x", force=True)
    assert removed["ignoredFiles"] == ["local.env"]
    assert not top.exists()
    assert [r.workspace.slug for r in app.upkeep.list_removed(project)] == ["x"]
    back = restore(app, project, "x")
    assert back.branch_made is False
    assert result("list_workspaces")["workspaces"][1] == identity
    files = {name: facts for name, facts in picture(top).items() if name != ".git"}
    assert files == {name: facts for name, facts in before[0].items() if name != ".git"}
    assert git(top, "status", "--porcelain=v2", "--branch") == before[1]
    assert git(top, "diff", "--cached") == before[2]
    assert app.upkeep.list_removed(project) == []
    assert app.inventory.registry.find_base(back.workspace.id) is not None


def test_it_survives_a_thorough_garbage_collection(app: App, project: Project, result, repository: Path, top: Path):
    commit = commit_file(top, "work.txt", "work")
    make_dirty(top)
    git(top, "switch", "-q", "--detach")
    commit = commit_file(top, "more.txt", "on no branch")
    (top / "README.md").write_text("staged only\n")
    git(top, "add", "README.md")
    (top / "README.md").write_text("other\n")
    result("remove_workspace", workspace="x", force=True)
    git(repository, "branch", "-D", "x")
    git(repository, "reflog", "expire", "--expire=now", "--all")
    git(repository, "gc", "-q", "--prune=now")
    restore(app, project)
    assert git(top, "rev-parse", "HEAD") == commit
    assert git(top, "show", ":README.md") == "staged only"
    assert git(top, "fsck", "--no-dangling") == ""
    assert git(repository, "for-each-ref", "refs/exeora") == ""


def test_a_deleted_branch_comes_back_with_its_settings(app: App, project: Project, result, repository: Path, top: Path):
    git(repository, "config", "branch.x.description", "two words")
    git(repository, "config", "branch.x.remote", ".")
    git(repository, "config", "branch.x.merge", "refs/heads/main")
    head = git(top, "rev-parse", "HEAD")
    assert result("remove_workspace", workspace="x", deleteBranch=True)["branchDeleted"] is True
    back = restore(app, project, "x")
    assert (back.branch_made, back.commit) == (True, head)
    assert git(repository, "rev-parse", "refs/heads/x") == head
    assert git(repository, "config", "branch.x.description") == "two words"
    assert git(repository, "rev-parse", "--abbrev-ref", "x@{upstream}") == "main"


def test_a_half_done_rebase_comes_back(app: App, project: Project, result, repository: Path, top: Path):
    commit_file(top, "README.md", "theirs\n")
    commit_file(repository, "README.md", "ours\n")
    git(top, "rebase", "main", check=False)
    before = git(top, "status", "--porcelain=v2", "--branch")
    result("remove_workspace", workspace="x", force=True)
    git(repository, "gc", "-q", "--prune=now")
    restore(app, project, "x")
    assert git(top, "status", "--porcelain=v2", "--branch") == before
    git(top, "rebase", "--abort")
    assert git(top, "symbolic-ref", "--short", "HEAD") == "x"


def test_submodules_come_back(app: App, project: Project, result, repository: Path, make_repository):
    git(repository, "submodule", "add", "-q", str(make_repository("module")), "lib")
    git(repository, "commit", "-q", "-m", "module")
    top = Path(result("create_workspace", branch="y")["workspace"]["path"])
    git(top, "submodule", "update", "-q", "--init")
    (top / "lib" / "README.md").write_text("changed")
    result("remove_workspace", workspace="y", force=True)
    restore(app, project, "y")
    assert git(top, "status", "--porcelain") == " M lib"
    assert git(top / "lib", "status", "--porcelain") == " M README.md"


def test_an_attached_one_goes_back_to_its_own_place(app: App, project: Project, result, repository, tmp_path: Path):
    theirs = tmp_path / "theirs"
    git(repository, "worktree", "add", "-q", "-b", "theirs", str(theirs))
    result("attach_workspace", branch="theirs")
    result("remove_workspace", workspace="theirs")
    assert restore(app, project).workspace.managed is False
    assert git(theirs, "status", "--porcelain") == ""
    assert [p.name for p in tmp_path.iterdir() if "removed" in p.name] == []


def test_the_latest_of_two_with_one_slug_is_meant(app: App, project: Project, result, repository: Path, top: Path):
    result("remove_workspace", workspace="x", deleteBranch=True)
    second = result("create_workspace", branch="x")["workspace"]["id"]
    result("remove_workspace", workspace="x")
    assert restore(app, project, "x").workspace.id == second
    assert refused(app, project, "x") == "slug_taken"
    assert refused(app, project) == "slug_taken"


def refusal_changes_nothing(app: App, project: Project, repository: Path, reason: str) -> None:
    kept = app.upkeep.list_removed(project)
    before, trashed = repository_picture(repository), picture(Path(kept[0].facts.trash))
    assert refused(app, project, "x") == reason
    assert repository_picture(repository) == before
    assert picture(Path(kept[0].facts.trash)) == trashed
    assert app.upkeep.list_removed(project) == kept
    assert app.inventory.registry.list_unfinished() == []


def test_a_taken_path_is_refused(app: App, project: Project, result, repository: Path, top: Path):
    result("remove_workspace", workspace="x")
    top.mkdir(parents=True)
    (top / "mine").write_text("")
    refusal_changes_nothing(app, project, repository, "path_taken")
    (top / "mine").unlink()
    restore(app, project, "x")
    assert git(top, "status", "--porcelain") == ""


def test_a_branch_in_use_or_moved_is_refused_and_detach_comes_back(
    app: App, project: Project, result, repository: Path, top: Path
):
    old = git(top, "rev-parse", "HEAD")
    result("remove_workspace", workspace="x")
    git(repository, "switch", "-q", "x")
    refusal_changes_nothing(app, project, repository, "branch_checked_out")
    commit_file(repository, "more.txt", "more")
    git(repository, "switch", "-q", "main")
    refusal_changes_nothing(app, project, repository, "branch_moved")
    back = restore(app, project, "x", detach=True)
    assert back.workspace.branch is None
    assert git(top, "rev-parse", "HEAD") == old
    assert git(top, "status", "--porcelain") == ""
    assert git(repository, "rev-parse", "x") != old


def test_a_name_in_the_way_of_the_deleted_branch_is_refused(
    app: App, project: Project, result, repository: Path, top: Path
):
    result("remove_workspace", workspace="x", deleteBranch=True)
    git(repository, "branch", "x/y")
    refusal_changes_nothing(app, project, repository, "branch_conflict")


def test_what_was_swept_or_never_removed_is_told_apart(app: App, project: Project, result, top: Path):
    assert refused(app, project, "x") == "not_removed"
    result("remove_workspace", workspace="x")
    shutil.rmtree(app.upkeep.list_removed(project)[0].facts.tree)
    assert refused(app, project, "x") == "trash_swept"
    assert app.upkeep.list_removed(project) == []


def age(app: App, seconds: float) -> None:
    with app.inventory.registry.database.write() as connection:
        connection.execute("UPDATE removals SET until = until - ?1, removed_at = removed_at - ?1", (seconds,))


def test_the_old_is_swept_with_what_it_held(app: App, project: Project, result, repository: Path, top: Path):
    result("remove_workspace", workspace="x")
    folder = Path(app.upkeep.list_removed(project)[0].facts.trash)
    (folder / "tree" / "src").chmod(0o500)
    assert app.upkeep.sweep_trash() == 0
    assert folder.exists()
    assert git(repository, "for-each-ref", "refs/exeora") != ""
    age(app, 8 * 86_400)
    assert app.upkeep.sweep_trash() == 1
    assert not folder.exists()
    assert git(repository, "for-each-ref", "refs/exeora") == ""
    assert git(repository, "branch", "--list", "x") != ""


def test_what_is_too_much_is_swept_oldest_first(app: App, project: Project, result, sealed: dict[str, str]):
    for name in ("a", "b", "c"):
        top = Path(result("create_workspace", branch=name)["workspace"]["path"])
        (top / "big").write_bytes(os.urandom(400_000))
        result("remove_workspace", workspace=name, force=True)
    config = Path(sealed["XDG_CONFIG_HOME"]) / "exeora/config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('{"trash": {"megabytes": 1}}')
    assert app.upkeep.sweep_trash() == 1
    assert [r.workspace.slug for r in app.upkeep.list_removed(project)] == ["c", "b"]


def test_nothing_is_swept_under_somebody_at_work(app: App, project: Project, result, top: Path):
    result("remove_workspace", workspace="x")
    with app.inventory.working_on(project, Cancellation()):
        assert app.upkeep.empty_trash(project) == (0, 1)
    assert app.upkeep.empty_trash(project) == (1, 0)


def test_now_is_not_restorable_and_the_disk_is_freed_by_somebody_else(
    app: App, project: Project, result, repository: Path, top: Path
):
    place = app.inventory.require_place(project, "x")
    removal = app.inventory.remove(place, force=False, delete_branch=False, cancellation=Cancellation(), now=True)
    assert removal.restorable_until is None
    assert refused(app, project, "x") == "trash_swept" or refused(app, project, "x") == "not_removed"
    deadline = time.monotonic() + 20
    while trash.list_removed(app.inventory.registry, project.id):
        assert time.monotonic() < deadline, "the sweeper did not free the disk"
        time.sleep(0.05)
    assert list((top.parents[1] / ".trash").iterdir()) == []
    assert git(repository, "for-each-ref", "refs/exeora") == ""


def test_the_sweeper_is_a_program_of_its_own(app: App, project: Project, result, top: Path, sealed: dict[str, str]):
    result("remove_workspace", workspace="x")
    age(app, 8 * 86_400)
    root = Path(trash.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", sweeper.MODULE], env=sealed | {"PYTHONPATH": str(root)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert trash.list_removed(app.inventory.registry, project.id) == []


def test_restore_is_whole_or_not_begun_at_every_step(
    app: App, project: Project, result, repository: Path, run: dict[str, str], top: Path
):
    (top / "new.txt").write_text("untracked\n")
    status = git(top, "status", "--porcelain=v2", "--branch")

    def remove() -> None:
        result("remove_workspace", workspace="x", force=True, deleteBranch=True)

    remove()
    counted = run.upkeep(0, "restore", selector="x", detach=False)
    assert counted is not None
    assert counted["outcome"] == {}
    seen = set()
    for fatal in range(1, counted["steps"] + 1):
        if top.exists():
            remove()
        run.upkeep(fatal, "restore", selector="x", detach=False)
        now = open_app()
        rows = [w.slug for w in now.inventory.list_workspaces(project)]
        assert now.inventory.registry.list_unfinished() == []
        admins = repository / ".git/worktrees"
        if rows == ["main"]:
            assert not top.exists()
            assert [r.workspace.slug for r in now.upkeep.list_removed(project)] == ["x"]
            assert not admins.exists() or os.listdir(admins) == [], f"step {fatal}"
            assert git(repository, "branch", "--list", "x") == "", f"step {fatal}"
            restore(now, project, "x")
        assert git(top, "status", "--porcelain=v2", "--branch") == status, f"step {fatal}"
        assert os.listdir(admins) == ["x"]
        seen.add(len(rows))
    assert seen == {1, 2}


def test_a_branch_without_a_commit_comes_back_without_one(
    app: App, project: Project, result, repository: Path, top: Path
):
    git(top, "switch", "-q", "--orphan", "fresh")
    (top / "staged.txt").write_text("work\n")
    git(top, "add", "staged.txt")
    result("remove_workspace", workspace="x", force=True)
    back = app.upkeep.restore(project, "x", detach=False, cancellation=Cancellation())
    assert back.branch_made is False
    assert git(top, "status", "--porcelain", "--branch") == "## No commits yet on fresh\nA  staged.txt"
    result("remove_workspace", workspace="x", force=True)
    git(repository, "branch", "fresh")
    for detach, reason in ((False, "branch_moved"), (True, "commit_missing")):
        with pytest.raises(ToolFailed) as refused:
            app.upkeep.restore(project, "x", detach=detach, cancellation=Cancellation())
        assert refused.value.reason == reason
    assert len(app.upkeep.list_removed(project)) == 1
