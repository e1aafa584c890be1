"""create_workspace: what it makes, what it refuses and why, and that a refusal leaves nothing."""

import os
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.workspaces.place import Project

from support.repositories import commit_file, git
from support.trees import repository_picture


def workspaces_root() -> Path:
    return Path(os.environ["XDG_DATA_HOME"]) / "exeora" / "workspaces"


def leftovers() -> list[str]:
    root = workspaces_root()
    return sorted(str(p.relative_to(root)) for p in root.rglob("*")) if root.exists() else []


def test_a_new_branch_starts_at_the_sources_head(result, repository: Path):
    made = result("create_workspace", branch="feature/login")
    top = Path(made["workspace"]["path"])
    assert made["created"] is True
    assert made["workspace"] | {"id": "x"} == {
        "id": "x",
        "slug": "feature-login",
        "name": "feature/login",
        "branch": "feature/login",
        "path": str(workspaces_root().resolve() / "app" / "feature-login"),
        "managed": True,
    }
    assert made["base"] == {"ref": "main", "commit": git(repository, "rev-parse", "main")}
    assert git(top, "symbolic-ref", "HEAD") == "refs/heads/feature/login"
    assert git(top, "status", "--porcelain") == ""
    assert (top / "README.md").read_bytes() == (repository / "README.md").read_bytes()


def test_no_upstream_is_set_to_the_base(result, repository: Path, make_repository, tmp_path: Path):
    git(repository, "remote", "add", "origin", str(make_repository("upstream")))
    git(repository, "fetch", "-q", "origin")
    git(repository, "config", "branch.autoSetupMerge", "always")
    before = (repository / ".git/config").read_bytes()
    result("create_workspace", branch="one", from_="origin/main")
    assert git(repository, "for-each-ref", "--format=%(upstream)", "refs/heads/one") == ""
    assert (repository / ".git/config").read_bytes() == before


def test_the_same_call_again_answers_with_what_is_there(result, repository: Path):
    first = result("create_workspace", branch="x")
    again = result("create_workspace", branch="x")
    assert again["created"] is False
    assert again["workspace"] == first["workspace"]
    assert again["base"] == first["base"]
    assert result("create_workspace", branch="x", slug="x")["created"] is False


def test_an_existing_branch_is_reused_when_asked_for(result, refusal, repository: Path):
    git(repository, "branch", "old", "HEAD~1")
    assert refusal("create_workspace", branch="old")["reason"] == "branch_exists"
    made = result("create_workspace", branch="old", reuseExistingBranch=True)
    assert made["base"]["commit"] == git(repository, "rev-parse", "HEAD~1")


def test_the_source_workspace_gives_the_base(result, repository: Path):
    first = result("create_workspace", branch="first")
    commit = commit_file(Path(first["workspace"]["path"]), "new.txt", "new")
    second = result("create_workspace", branch="second", workspace="first")
    assert second["base"] == {"ref": "first", "commit": commit}
    by_id = result("create_workspace", branch="third", workspace=first["workspace"]["id"])
    assert by_id["base"]["commit"] == commit


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("feature/foo", "feature-foo"),
        ("Foo", "foo"),
        ("caf\u00e9", "cafe\u0301"),
        ("文字", "漢字"),
        ("a.b", "a_b"),
        ("x" * 80, "x" * 81),
        ("Main", "MAIN"),
    ],
)
def test_branches_that_look_alike_never_share_a_slug_or_folder(result, first: str, second: str):
    """Public failure 1."""
    one = result("create_workspace", branch=first)["workspace"]
    two = result("create_workspace", branch=second)["workspace"]
    assert one["slug"] != two["slug"]
    assert one["path"].casefold() != two["path"].casefold()
    for workspace, branch in ((one, first), (two, second)):
        again = result("create_workspace", branch=branch)
        assert again["workspace"]["id"] == workspace["id"]
        assert git(Path(workspace["path"]), "symbolic-ref", "--short", "HEAD") == branch


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ({"branch": "main"}, "TOOL_FAILED", "branch_checked_out"),
        ({"branch": "taken"}, "TOOL_FAILED", "branch_exists"),
        ({"branch": "taken/below"}, "TOOL_FAILED", "branch_conflict"),
        ({"branch": "deep"}, "TOOL_FAILED", "branch_conflict"),
        ({"branch": "absent", "reuseExistingBranch": True}, "TOOL_FAILED", "branch_not_found"),
        ({"branch": "taken", "reuseExistingBranch": True, "from": "main"}, "INVALID_ARGUMENTS", "conflicting_fields"),
        ({"branch": "new", "from": "nowhere"}, "TOOL_FAILED", "unknown_ref"),
        ({"branch": "new", "from": "--upload-pack=x"}, "TOOL_FAILED", "unknown_ref"),
        ({"branch": "new", "from": "HEAD:README.md"}, "TOOL_FAILED", "unknown_ref"),
        ({"branch": "-d"}, "INVALID_ARGUMENTS", "invalid_branch"),
        ({"branch": "a..b"}, "INVALID_ARGUMENTS", "invalid_branch"),
        ({"branch": "a b"}, "INVALID_ARGUMENTS", "invalid_branch"),
        ({"branch": "@{-1}"}, "INVALID_ARGUMENTS", "invalid_branch"),
        ({"branch": "HEAD"}, "INVALID_ARGUMENTS", "invalid_branch"),
        ({"branch": ""}, "INVALID_ARGUMENTS", "wrong_value"),
        ({"branch": "new", "slug": "Bad Slug"}, "INVALID_ARGUMENTS", "invalid_slug"),
        ({"branch": "new", "slug": "../x"}, "INVALID_ARGUMENTS", "invalid_slug"),
        ({"branch": "new", "slug": "main"}, "INVALID_ARGUMENTS", "reserved_slug"),
        ({"branch": "new", "slug": "x" * 61}, "INVALID_ARGUMENTS", "invalid_slug"),
        ({"branch": "new", "workspace": "nope"}, "UNKNOWN_WORKSPACE", None),
        ({"branch": "new", "workspace": ""}, "UNKNOWN_WORKSPACE", None),
        ({"branch": "new", "colour": "red"}, "INVALID_ARGUMENTS", "unknown_field"),
        ({"branch": 7}, "INVALID_ARGUMENTS", "wrong_value"),
        ({"branch": "new", "reuseExistingBranch": "yes"}, "INVALID_ARGUMENTS", "wrong_value"),
        ({}, "INVALID_ARGUMENTS", "missing_field"),
    ],
)
def test_a_refusal_has_its_reason_and_leaves_nothing(refusal, repository: Path, arguments, code, reason):
    git(repository, "branch", "taken")
    git(repository, "branch", "deep/er")
    before = repository_picture(repository)
    error = refusal("create_workspace", **arguments)
    assert (error["code"], error.get("reason")) == (code, reason), error
    assert repository_picture(repository) == before
    assert leftovers() == []


def test_a_branch_checked_out_in_a_workspace_is_refused_with_its_slug(result, refusal, repository: Path):
    """Public failure 2."""
    result("create_workspace", branch="busy", slug="the-one")
    error = refusal("create_workspace", branch="busy", slug="other", reuseExistingBranch=True)
    assert error["reason"] == "branch_checked_out"
    assert error["data"] == {"workspace": "the-one"}


@pytest.mark.parametrize("how", ["rebase", "bisect"])
def test_a_branch_in_the_middle_of_something_elsewhere_is_refused(result, refusal, repository: Path, how: str):
    """Public failure 12."""
    top = Path(result("create_workspace", branch="busy")["workspace"]["path"])
    commit_file(top, "README.md", "theirs\n")
    commit_file(repository, "README.md", "ours\n")
    if how == "rebase":
        git(top, "rebase", "main", check=False)
    else:
        git(top, "bisect", "start", "HEAD", "HEAD~2")
    assert git(top, "symbolic-ref", "-q", "HEAD", check=False) == ""
    before = repository_picture(repository)
    error = refusal("create_workspace", branch="busy", slug="other", reuseExistingBranch=True)
    assert error["reason"] == "branch_in_use"
    assert error["data"] == {"workspace": "busy"}
    assert repository_picture(repository) == before


def test_an_unborn_head_is_refused(app: App, make_repository, refusal, tmp_path: Path):
    top = make_repository("empty", commits=0)
    project = app.inventory.register_project(top, exact=False)[0]
    from exeora_ws.tools.call import Caller, Face, RawCall, Scope

    caller = Caller(Face.CLI, "test", "s", Scope(bound=project.id))
    outcome = app.calls.make(RawCall("create_workspace", {"branch": "x"}), caller)
    assert outcome.error is not None
    assert outcome.error.reason == "unborn_head"


def test_an_empty_target_folder_is_used_and_a_full_one_refused(result, refusal, repository: Path):
    """Public failure 3."""
    target = workspaces_root() / "app" / "x"
    target.mkdir(parents=True)
    (target / "mine").write_text("mine")
    error = refusal("create_workspace", branch="x")
    assert error["reason"] == "target_not_empty"
    assert (target / "mine").read_text() == "mine"
    assert git(repository, "branch", "--list", "x") == ""
    (target / "mine").unlink()
    assert result("create_workspace", branch="x")["created"] is True


def test_a_managed_root_inside_a_repository_is_refused(refusal, repository: Path, monkeypatch):
    monkeypatch.setenv("EXEORA_WORKTREE_ROOT", str(repository / "trees"))
    error = refusal("create_workspace", branch="x")
    assert error["reason"] == "target_inside_checkout"
    assert not (repository / "trees").exists()


def test_a_failing_hook_rolls_everything_back(result, refusal, repository: Path):
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text("#!/bin/sh\necho no thanks >&2\nexit 3\n")
    hook.chmod(0o755)
    before = repository_picture(repository)
    error = refusal("create_workspace", branch="x")
    assert error["reason"] == "hook_failed"
    assert repository_picture(repository) == before
    assert leftovers() == []
    hook.unlink()
    assert result("create_workspace", branch="x")["created"] is True


def test_two_empty_admin_folders_disturb_nothing(result, repository: Path):
    """Public failure 4."""
    (repository / ".git/worktrees/a").mkdir(parents=True)
    (repository / ".git/worktrees/b").mkdir()
    assert result("create_workspace", branch="x")["created"] is True
    assert len(result("list_git_workspaces")["workspaces"]) >= 2


def test_a_project_in_a_subdirectory_acts_there(app: App, repository: Path):
    from exeora_ws.tools.call import Caller, Face, RawCall, Scope

    project = app.inventory.register_project(repository / "src", exact=True)[0]
    caller = Caller(Face.CLI, "test", "s", Scope(bound=project.id))
    made = app.calls.make(RawCall("create_workspace", {"branch": "x"}), caller).to_dict()
    assert Path(made["workspace"]["path"]).name == "src"
    git(repository, "switch", "-q", "--orphan", "bare-branch")
    commit_file(repository, "only.txt", "x")
    git(repository, "switch", "-q", "main")
    outcome = app.calls.make(RawCall("create_workspace", {"branch": "y", "from": "bare-branch"}), caller)
    assert outcome.error is not None
    assert outcome.error.reason == "missing_subdirectory"
    assert git(repository, "branch", "--list", "y") == ""


def test_inherited_git_variables_change_nothing(result, repository: Path, make_repository, monkeypatch):
    """Public failure 13."""
    other = make_repository("other")
    before = repository_picture(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    made = result("create_workspace", branch="x")
    monkeypatch.undo()
    assert git(Path(made["workspace"]["path"]), "symbolic-ref", "--short", "HEAD") == "x"
    assert repository_picture(other) == before


def test_history_is_kept(app: App, result, project: Project):
    identity = result("create_workspace", branch="x")["workspace"]["id"]
    result("remove_workspace", workspace="x")
    assert [s.state for s in app.inventory.registry.list_history(identity)] == ["created", "removed"]
