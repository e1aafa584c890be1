"""What went wrong when the workspaces were taken apart on purpose: each kind once, and that nothing was lost."""

import json
import logging
import os
import sqlite3
from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError, ToolFailed, WorkspaceUnavailable
from exeora_ws.git.engine import Engine
from exeora_ws.git.executable import ExecutableRepository
from exeora_ws.settings import Settings, find_key, find_places, load_settings, store_value
from exeora_ws.workspaces import inventory_file, registry
from exeora_ws.workspaces.connect import Candidate
from exeora_ws.workspaces.create import Wanted
from exeora_ws.workspaces.place import Project

from support.repositories import RepositoryMaker, git
from support.trees import picture

BAD = os.fsdecode(b"b\xff")


@pytest.fixture
def top(result) -> Path:
    return Path(result("create_workspace", branch="x")["workspace"]["path"])


# What fails after the commit has happened all the same.


def fail_to_publish(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_copy_that_cannot_be_written_undoes_nothing(app: App, result, project: Project, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(inventory_file, "publish", fail_to_publish)
        created = Path(result("create_workspace", branch="y")["workspace"]["path"])
        assert (created / "README.md").exists()
        result("remove_workspace", workspace="y")
        back = app.upkeep.restore(project, "y", detach=False, cancellation=Cancellation())
        assert (back.workspace.worktree / "README.md").exists()
        renamed = app.upkeep.rename(app.inventory.require_place(project, "y"), "z", cancellation=Cancellation())
        assert (renamed.after.worktree / "README.md").exists()
        assert app.inventory.find_fault(project, renamed.after) is None
        assert not find_places().inventory.exists()
    assert open_app().inventory.list_workspaces(project)[1].slug == "z"
    assert find_places().inventory.exists()


def test_an_interruption_after_the_commit_undoes_nothing(app: App, call, project: Project, monkeypatch):
    def interrupt(self: registry.Registry) -> None:
        if not self.list_unfinished():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(registry.Registry, "publish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            call("create_workspace", branch="y")
    found = open_app().inventory.list_workspaces(project)[1]
    assert (found.slug, app.inventory.find_fault(project, found)) == ("y", None)


def test_the_failure_is_told_though_taking_back_fails_too(app: App, refusal, project: Project, monkeypatch, caplog):
    def refuse(*_: object, **__: object) -> None:
        raise ToolFailed("the first failure", reason="git_failed")

    def stumble(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(ExecutableRepository, "add_worktree", refuse)
        patch.setattr(Engine, "discard_remains", stumble)
        assert refusal("create_workspace", branch="y")["message"] == "the first failure"
    assert "could not be taken back" in caplog.text
    assert len(app.inventory.registry.list_unfinished()) == 1
    assert open_app().inventory.registry.list_unfinished() == []
    assert git(project.root, "branch", "--list", "y") == ""


def test_what_cannot_be_settled_stops_only_its_own_repository(app: App, project: Project, make_repository):
    other = app.inventory.register_project(make_repository("other", commits=1), exact=False)[0]
    operation = registry.Unfinished("op", "create", project.id, Path(str(project.common_dir)), b"{}")
    with app.inventory.registry.change() as connection:
        connection.execute(
            "INSERT INTO operations VALUES (?, ?, ?, ?, ?, 0)",
            (operation.id, operation.kind, operation.project_id, str(operation.common_dir), BROKEN_FACTS),
        )
    head = Path(str(project.common_dir)) / "HEAD"
    head.rename(head.with_name("HEAD.away"))
    again = open_app()
    place = again.inventory.require_place(other, "main")
    creation, _ = again.inventory.create(place, Wanted("y", None, False, None, None), Cancellation())
    assert creation.created
    head.with_name("HEAD.away").rename(head)
    assert open_app().inventory.registry.list_unfinished() == []


BROKEN_FACTS = (
    b'{"workspace_id": "wsp_a", "slug": "a", "path": "/nonexistent/a", "kept_folder": false, "commit": "'
    + b"0" * 40
    + b'", "new_branch": null}'
)


def test_a_removal_of_a_project_that_is_gone_is_struck_off(app: App, project: Project, top: Path, sealed):
    facts = {
        "workspace_id": "wsp_a", "slug": "a", "name": "a", "branch": None, "worktree": "/nonexistent/a",
        "path": "/nonexistent/a", "managed": True, "head": None, "delete_branch": True, "trash": "/nonexistent/t",
        "gone": True,
    }  # fmt: skip
    with app.inventory.registry.change() as connection:
        connection.execute(
            "INSERT INTO operations VALUES ('op', 'remove', 'prj_gone', ?, ?, 0)",
            (str(project.common_dir), json.dumps(facts).encode()),
        )
    assert open_app().inventory.registry.list_unfinished() == []


def test_a_project_removed_meanwhile_gets_no_workspace(app: App, project: Project, call, monkeypatch):
    real = ExecutableRepository.add_worktree

    def remove_then_add(self, *arguments):
        app.inventory.remove_project(project, force=True)
        return real(self, *arguments)

    monkeypatch.setattr(ExecutableRepository, "add_worktree", remove_then_add)
    outcome = call("create_workspace", branch="y")
    assert outcome.error is not None
    assert outcome.error.code == "UNKNOWN_PROJECT"
    assert git(project.root, "branch", "--list", "y") == ""
    assert len(git(project.root, "worktree", "list").splitlines()) == 1


# Nothing else goes with what is removed or renamed.


@pytest.fixture
def nested(repository: Path, top: Path) -> Path:
    (repository / ".git" / "info" / "exclude").write_text("inside/\n")
    git(top, "worktree", "add", "-q", "inside/in", "-b", "in")
    (top / "inside/in/new.txt").write_text("precious\n")
    return top / "inside/in"


@pytest.mark.parametrize("connected", [False, True])
def test_a_worktree_inside_keeps_a_workspace_from_being_removed_or_renamed(
    app: App, project: Project, refusal, result, top: Path, nested: Path, connected: bool
):
    if connected:
        result("attach_workspace", path=str(nested))
    before = picture(top)
    for force in (False, True):
        assert refusal("remove_workspace", workspace="x", force=force)["reason"] == "nested_workspace"
    with pytest.raises(ToolFailed) as caught:
        app.upkeep.rename(app.inventory.require_place(project, "x"), "y", cancellation=Cancellation())
    assert caught.value.reason == "nested_workspace"
    assert picture(top) == before
    git(top, "worktree", "remove", "--force", "inside/in")
    assert result("remove_workspace", workspace="x")["removed"] is True


def test_a_project_inside_keeps_a_workspace_from_being_removed(app: App, refusal, top: Path, repository: Path):
    (repository / ".git" / "info" / "exclude").write_text("inside/\n")
    git(repository, "init", "-q", str(top / "inside"))
    app.inventory.register_project(top / "inside", exact=False)
    assert "project 'inside'" in refusal("remove_workspace", workspace="x", force=True)["message"]
    assert (top / "inside").is_dir()


def test_a_worktree_that_another_project_has_connected_stays(app: App, project: Project, refusal, result, top: Path):
    (project.root / "sub").mkdir()
    (top / "sub").mkdir()
    sub = app.inventory.register_project(project.root / "sub", exact=True)[0]
    app.inventory.attach(sub, Candidate(None, "x", None, None), Cancellation())
    assert refusal("remove_workspace", workspace="x")["reason"] == "connected_elsewhere"
    assert top.is_dir()
    app.inventory.detach(app.inventory.require_place(sub, "x"))
    assert result("remove_workspace", workspace="x")["removed"] is True


def test_a_project_with_removed_workspaces_is_not_forgotten_unasked(app: App, project: Project, result, top: Path):
    result("remove_workspace", workspace="x")
    with pytest.raises(ToolFailed) as caught:
        app.inventory.remove_project(project, force=False)
    assert caught.value.reason == "has_removed"
    app.inventory.remove_project(project, force=True)


# Never main by accident.


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_nested_workspace_without_its_git_file_is_not_the_checkout_above(
    app: App, project: Project, result, repository: Path, below: str
):
    git(repository, "worktree", "add", "-q", "nested/n", "-b", "n")
    result("attach_workspace", branch="n")
    folder = repository / "nested/n" / below
    folder.mkdir(exist_ok=True)
    (repository / "nested/n/.git").unlink()
    around = app.inventory.find_around(folder)
    assert around is not None
    assert around.workspace.slug == "n"
    with pytest.raises(WorkspaceUnavailable):
        app.inventory.require_available(around, files=True)
    above = app.inventory.find_around(repository / "nested")
    assert above is not None
    assert above.workspace.slug == "main"


# Names and folders of odd kinds.


@pytest.mark.parametrize("selector", [BAD, "\ud800", "w" * 300_000])
def test_a_selector_that_is_no_text_or_endless_is_simply_unknown(app: App, project: Project, selector: str):
    for find in (app.inventory.require_project, lambda s: app.inventory.require_place(project, s)):
        with pytest.raises(ExeoraError) as caught:
            find(selector)
        assert caught.value.code in ("UNKNOWN_PROJECT", "UNKNOWN_WORKSPACE")
        assert len(caught.value.message) < 300


def test_a_branch_that_is_not_utf8_can_be_used_shown_removed_and_restored(
    app: App, project: Project, result, repository: Path
):
    git(repository, "branch", BAD)
    made = result("create_workspace", branch=BAD, reuseExistingBranch=True)["workspace"]
    assert made["branch"] == made["name"] == "b\\xff"
    assert [w["branch"] for w in result("list_workspaces")["workspaces"]] == ["main", "b\\xff"]
    assert result("create_workspace", branch="y", from_=BAD)["base"]["ref"] == "b\\xff"
    assert result("create_workspace", branch="named", name=BAD)["workspace"]["name"] == "b\\xff"
    (Path(made["path"]) / os.fsdecode(b"n\xff")).write_text("new")
    result("remove_workspace", workspace=made["slug"], force=True)
    back = app.upkeep.restore(project, None, detach=False, cancellation=Cancellation())
    assert git(back.workspace.worktree, "symbolic-ref", "--short", "HEAD") == BAD


def test_a_dirty_file_that_is_not_utf8_is_named(refusal, top: Path):
    (top / os.fsdecode(b"n\xff")).write_text("new")
    assert refusal("remove_workspace", workspace="x")["data"] == {"untracked": ["n\\xff"]}


def test_a_worktree_in_a_folder_that_is_not_utf8_is_refused(refusal, repository: Path, tmp_path: Path):
    git(repository, "worktree", "add", "-q", str(tmp_path / BAD), "-b", "e")
    assert refusal("attach_workspace", branch="e")["reason"] == "path_not_utf8"


@pytest.mark.parametrize("path", ["/\0", "/" + "a" * 5000])
def test_an_impossible_path_is_no_worktree(refusal, path: str):
    assert refusal("attach_workspace", path=path)["reason"] in ("wrong_value", "not_a_worktree")


def test_an_attached_folder_with_a_very_long_name_is_removed_and_restored(
    app: App, project: Project, result, repository: Path, tmp_path: Path
):
    folder = tmp_path / ("é" * 120)
    git(repository, "worktree", "add", "-q", str(folder), "-b", "long")
    result("attach_workspace", branch="long")
    assert result("remove_workspace", workspace="long")["removed"] is True
    assert not folder.exists()
    app.upkeep.restore(project, "long", detach=False, cancellation=Cancellation())
    assert (folder / "README.md").exists()


def test_a_project_that_becomes_a_repository_later_is_one(
    app: App, tmp_path: Path, sealed, make_repository: RepositoryMaker
):
    folder = tmp_path / "plain"
    folder.mkdir()
    plain = app.inventory.register_project(folder, exact=True)[0]
    assert plain.common_dir is None
    git(folder, "init", "-q")
    found = app.inventory.find_project_of(folder)
    assert found is not None
    assert (found.id, found.common_dir) == (plain.id, folder / ".git")
    around = app.inventory.find_around(folder)
    assert around is not None
    assert around.workspace.main
    assert app.inventory.find_fault(found, around.workspace) is None


# Settings and places.


@pytest.mark.parametrize("value", ["5", '"rel"', '"a\\u0000b"', "[]", "{}"])
def test_a_managed_root_that_is_no_absolute_path_is_refused(refusal, repository: Path, value: str):
    places = find_places()
    places.config_file.parent.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text('{"worktreeRoot": ' + value + "}")
    if value in ("[]", "{}"):
        assert load_settings(places).managed_root(places) == places.default_managed_root
        return
    assert refusal("create_workspace", branch="y")["reason"] == "config_invalid"
    assert git(repository, "branch", "--list", "y") == ""


def test_a_setting_below_something_else_is_refused_and_the_file_stays():
    places = find_places()
    places.config_file.parent.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text('{"mcp": 5}')
    with pytest.raises(ToolFailed) as caught:
        store_value(places, find_key("mcp.name-budget"), 10)
    assert caught.value.reason == "config_invalid"
    assert places.config_file.read_text() == '{"mcp": 5}'
    assert Settings({"mcp": 5}).name_budget > 0


@pytest.mark.parametrize("mode", [None, 0o755])
def test_without_a_runtime_folder_of_our_own_the_data_folder_serves_and_nothing_is_said(
    sealed, tmp_path: Path, monkeypatch, recwarn, mode: int | None
):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    if mode is not None:
        (tmp_path / "run").mkdir(mode=mode)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    places = find_places()
    assert places.runtime == places.data / "run"
    assert list(recwarn) == []


def test_a_registry_that_cannot_be_written_says_what_to_look_at(app: App, project: Project):
    with pytest.raises(ToolFailed) as caught, app.inventory.registry.database.write():
        raise_operational("disk I/O error")
    assert caught.value.reason == "database_unusable"
    assert caught.value.hint is not None


def raise_operational(text: str) -> None:
    raise sqlite3.OperationalError(text)


# The branch is the workspace's own, or the one on record.


def test_a_foreign_clone_in_the_folder_lends_it_no_branch(
    result, refusal, top: Path, make_repository: RepositoryMaker, tmp_path: Path
):
    foreign = make_repository("foreign", commits=1)
    git(foreign, "checkout", "-q", "-b", "theirs")
    top.rename(tmp_path / "away")
    foreign.rename(top)
    listed = result("list_workspaces")["workspaces"][1]
    assert (listed["branch"], listed["available"]) == ("x", False)
    assert result("create_workspace", branch="theirs")["created"] is True
    assert refusal("remove_workspace", workspace="x", force=True)["reason"] == "foreign_folder"


def test_a_link_to_another_workspace_does_not_take_its_branch(result, top: Path, tmp_path: Path):
    other = Path(result("create_workspace", branch="y")["workspace"]["path"])
    top.rename(tmp_path / "away")
    top.symlink_to(other)
    assert [w["branch"] for w in result("list_workspaces")["workspaces"]] == ["main", "x", "y"]


def test_the_branch_of_a_worktree_that_git_moved_is_kept_with_the_true_reason(
    result, repository: Path, top: Path, tmp_path: Path
):
    git(repository, "worktree", "move", str(top), str(tmp_path / "moved"))
    removed = result("remove_workspace", workspace="x", deleteBranch=True)
    assert (removed["branchDeleted"], removed["branchKept"]["reason"]) == (False, "stale")
    assert (tmp_path / "moved/README.md").exists()


def test_a_name_that_is_too_long_for_the_file_system_is_called_that(refusal, repository: Path):
    error = refusal("create_workspace", branch="a" * 300)
    assert (error["reason"], error["hint"]) == ("name_too_long", "choose a shorter name")
    assert not (repository / ".git/worktrees").exists() or not os.listdir(repository / ".git/worktrees")
