"""remove_workspace and detach_workspace: what is refused, what is kept, and that main is never touched."""

import shutil
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import UnknownWorkspace
from exeora_ws.processes.command import Owner, make_shell_command
from exeora_ws.processes.output import Tail
from exeora_ws.processes.run import run
from exeora_ws.processes.table import find_program

from support.processes import all_gone, find_tagged
from support.repositories import commit_file, git
from support.trees import picture, repository_picture


@pytest.fixture
def top(result) -> Path:
    return Path(result("create_workspace", branch="x")["workspace"]["path"])


def test_a_clean_workspace_is_removed_and_its_branch_kept(result, repository: Path, top: Path):
    removed = result("remove_workspace", workspace="x")
    assert removed["removed"] is True
    assert removed["branchDeleted"] is False
    assert "branchKept" not in removed
    assert not top.exists()
    assert git(repository, "branch", "--list", "x") != ""
    assert [w["main"] for w in result("list_git_workspaces")["workspaces"]] == [True]
    assert [w["slug"] for w in result("list_workspaces")["workspaces"]] == ["main"]


@pytest.mark.parametrize("tool", ["remove_workspace", "detach_workspace"])
def test_what_is_started_while_a_workspace_goes_is_ended_too(app, project, result, top: Path, tool):
    stop, pids = app.inventory.stop_processes, []
    workspace = app.inventory.require_place(project, "x").workspace.id

    def stop_and_start_another(identity):
        ended = stop(identity)
        if not pids:
            command = make_shell_command("sleep 60", cwd=str(top), environ={"PATH": "/usr/bin:/bin"})
            pids.append(app.services.supervisor.start(command, Owner(project.id, workspace, "session")).pid)
        return ended

    app.inventory.stop_processes = stop_and_start_another
    result(tool, workspace="x")
    assert pids
    assert all_gone(pids)


def test_a_command_whose_workspace_went_while_it_was_started_does_not_run_on(app, project, result, top: Path):
    owner = Owner(project.id, app.inventory.require_place(project, "x").workspace.id, "session")
    result("remove_workspace", workspace="x")
    command = make_shell_command("sleep 60", cwd="/", environ={"PATH": "/usr/bin:/bin"})
    with pytest.raises(UnknownWorkspace):
        app.services.supervisor.start(command, owner)
    with pytest.raises(UnknownWorkspace):
        run(app.services.supervisor, command, owner, capture=Tail(10), timeout=None, cancellation=Cancellation())
    assert "sleep" not in map(find_program, find_tagged())  # what gives the disk back may still run


def dirty_untracked(top: Path) -> None:
    (top / "new.txt").write_text("new")


def dirty_unstaged(top: Path) -> None:
    (top / "README.md").write_text("changed")


def dirty_staged(top: Path) -> None:
    (top / "new.txt").write_text("new")
    git(top, "add", "new.txt")


def dirty_deleted(top: Path) -> None:
    (top / "README.md").unlink()


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (dirty_untracked, "untracked"),
        (dirty_unstaged, "unstaged"),
        (dirty_staged, "staged"),
        (dirty_deleted, "unstaged"),
    ],
)
def test_uncommitted_changes_are_refused_unless_forced(result, refusal, repository: Path, top: Path, spoil, kind: str):
    spoil(top)
    before, tree = repository_picture(repository), picture(top)
    error = refusal("remove_workspace", workspace="x")
    assert error["reason"] == "dirty"
    assert list(error["data"]) == [kind]
    assert repository_picture(repository) == before
    assert picture(top) == tree
    assert result("remove_workspace", workspace="x", force=True)["removed"] is True
    assert not top.exists()


def test_ignored_files_are_reported_and_can_be_brought_back(result, repository: Path):
    """Public failure 9."""
    commit_file(repository, ".gitignore", ".env\nbuild/\n")
    top = Path(result("create_workspace", branch="x")["workspace"]["path"])
    (top / ".env").write_text("SECRET=1")
    removed = result("remove_workspace", workspace="x")
    assert removed["ignoredFiles"] == [".env"]
    assert removed["ignoredFilesTotal"] == 1
    assert removed["restorableUntil"] > "2026"
    kept = list(top.parents[1].glob(".trash/*/tree/.env"))
    assert [p.read_text() for p in kept] == ["SECRET=1"]


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("force", [True, False])
def test_a_locked_workspace_is_refused_with_its_reason(refusal, repository: Path, top: Path, present, force):
    """Public failure 10."""
    git(repository, "worktree", "lock", "--reason", "on a stick", str(top))
    if not present:
        shutil.rmtree(top)
    before = repository_picture(repository)
    error = refusal("remove_workspace", workspace="x", force=force)
    assert error["reason"] == "locked"
    assert "on a stick" in error["message"]
    assert repository_picture(repository) == before
    assert top.exists() is present


@pytest.mark.parametrize("force", [True, False])
def test_a_foreign_clone_in_its_place_is_left_alone(refusal, make_repository, top: Path, force: bool):
    shutil.rmtree(top)
    shutil.copytree(make_repository("foreign"), top)
    before = picture(top)
    error = refusal("remove_workspace", workspace="x", force=force)
    assert error["reason"] == "foreign_folder"
    assert picture(top) == before


def test_main_is_never_removed(refusal, call, repository: Path, app, project):
    """Public failure 11."""
    git(repository, "switch", "-q", "-c", "elsewhere")
    before = repository_picture(repository)
    identity = app.inventory.require_place(project, "main").workspace.id
    for selector in ("main", identity):
        for tool in ("remove_workspace", "detach_workspace"):
            assert refusal(tool, workspace=selector)["reason"] == "is_main"
    for tool in ("remove_workspace", "detach_workspace"):
        assert refusal(tool)["code"] == "INVALID_ARGUMENTS"
    assert repository_picture(repository) == before


def test_a_folder_deleted_by_hand_can_be_removed_and_made_again(result, refusal, repository: Path, top: Path):
    """Public failure 14."""
    shutil.rmtree(top)
    listed = {w["slug"]: w["available"] for w in result("list_workspaces")["workspaces"]}
    assert listed == {"main": True, "x": False}
    broken = [w for w in result("list_git_workspaces")["workspaces"] if not w["main"]]
    assert broken[0]["prunable"]
    assert broken[0]["connected"] == "x"
    assert refusal("create_workspace", branch="x")["reason"] == "workspace_missing"
    removed = result("remove_workspace", workspace="x")
    assert "restorableUntil" not in removed
    made = result("create_workspace", branch="x", reuseExistingBranch=True)
    assert made["created"] is True


def test_delete_branch_goes_as_git_branch_d(result, repository: Path, top: Path):
    removed = result("remove_workspace", workspace="x", deleteBranch=True)
    assert removed["branchDeleted"] is True
    assert git(repository, "branch", "--list", "x") == ""


def test_an_unmerged_branch_is_kept_and_the_answer_says_why(result, repository: Path, top: Path):
    commit_file(top, "work.txt", "work")
    removed = result("remove_workspace", workspace="x", deleteBranch=True)
    assert removed["removed"] is True
    assert removed["branchDeleted"] is False
    assert removed["branchKept"]["reason"] == "unmerged"
    assert git(repository, "branch", "--list", "x") != ""


def test_a_detached_head_with_its_own_commits_is_refused(result, refusal, top: Path):
    git(top, "switch", "-q", "--detach")
    commit_file(top, "work.txt", "work")
    assert refusal("remove_workspace", workspace="x")["reason"] == "unreachable_commits"
    git(top, "tag", "keep")
    assert result("remove_workspace", workspace="x")["removed"] is True


def test_an_unfinished_rebase_is_refused(result, refusal, repository: Path, top: Path):
    commit_file(top, "README.md", "theirs\n")
    commit_file(repository, "README.md", "ours\n")
    git(top, "rebase", "main", check=False)
    git(top, "checkout", "--ours", "README.md")
    git(top, "add", "README.md")
    git(top, "reset", "-q", "--hard")
    assert refusal("remove_workspace", workspace="x")["reason"] == "operation_in_progress"


def test_submodules_clean_are_no_obstacle_and_dirty_ones_are(result, refusal, repository: Path, make_repository):
    module = make_repository("module")
    git(repository, "submodule", "add", "-q", str(module), "lib")
    git(repository, "commit", "-q", "-m", "module")
    top = Path(result("create_workspace", branch="y")["workspace"]["path"])
    git(top, "submodule", "update", "-q", "--init")
    (top / "lib" / "README.md").write_text("changed")
    error = refusal("remove_workspace", workspace="y")
    assert error["reason"] == "dirty"
    git(top / "lib", "checkout", "-q", "--", ".")
    assert result("remove_workspace", workspace="y")["removed"] is True
    assert (repository / "lib" / "README.md").exists()


def test_detach_touches_nothing_on_disk(result, repository: Path, top: Path):
    before, tree = repository_picture(repository), picture(top)
    detached = result("detach_workspace", workspace="x")
    assert detached["detached"] is True
    assert repository_picture(repository) == before
    assert picture(top) == tree
    assert [w["slug"] for w in result("list_workspaces")["workspaces"]] == ["main"]


def test_an_attached_one_is_removed_when_named_and_said_not_to_be_ours(result, repository: Path, tmp_path: Path):
    git(repository, "worktree", "add", "-q", "-b", "theirs", str(tmp_path / "theirs"))
    result("attach_workspace", branch="theirs")
    removed = result("remove_workspace", workspace="theirs")
    assert removed["workspace"]["managed"] is False
    assert "attached" in removed["note"]
    assert not (tmp_path / "theirs").exists()


def test_removing_what_is_gone_is_unknown(result, refusal, top: Path):
    result("remove_workspace", workspace="x")
    assert refusal("remove_workspace", workspace="x")["code"] == "UNKNOWN_WORKSPACE"
