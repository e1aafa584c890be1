"""attach_workspace and list_git_workspaces, broken worktrees included."""

import shutil
from pathlib import Path

import pytest

from support.repositories import git
from support.trees import repository_picture


@pytest.fixture
def theirs(repository: Path, tmp_path: Path) -> Path:
    git(repository, "worktree", "add", "-q", "-b", "their/branch", str(tmp_path / "theirs"))
    return (tmp_path / "theirs").resolve()


@pytest.mark.parametrize("by", ["path", "branch"])
def test_a_worktree_is_attached_by_path_or_branch(result, repository: Path, theirs: Path, by: str):
    before = repository_picture(repository)
    arguments = {"path": str(theirs)} if by == "path" else {"branch": "their/branch"}
    workspace = result("attach_workspace", **arguments)["workspace"]
    assert (workspace["slug"], workspace["branch"], workspace["path"], workspace["managed"]) == (
        "their-branch",
        "their/branch",
        str(theirs),
        False,
    )
    assert repository_picture(repository) == before


def test_every_refusal_of_attach(result, refusal, repository: Path, theirs: Path, make_repository, tmp_path: Path):
    other = make_repository("other")
    (tmp_path / "plain").mkdir()
    cases = [
        ({"path": str(other)}, "TOOL_FAILED", "other_repository"),
        ({"path": str(repository)}, "TOOL_FAILED", "is_main"),
        ({"branch": "main"}, "TOOL_FAILED", "is_main"),
        ({"path": str(tmp_path / "plain")}, "TOOL_FAILED", "not_a_worktree"),
        ({"path": str(tmp_path / "absent")}, "TOOL_FAILED", "not_a_worktree"),
        ({"path": "theirs"}, "INVALID_ARGUMENTS", "relative_path"),
        ({"branch": "nowhere"}, "TOOL_FAILED", "not_found"),
        ({}, "INVALID_ARGUMENTS", "wrong_value"),
        ({"path": str(theirs), "branch": "their/branch"}, "INVALID_ARGUMENTS", "wrong_value"),
        ({"path": str(theirs), "slug": "main"}, "INVALID_ARGUMENTS", "reserved_slug"),
        ({"path": str(theirs), "workspace": "main"}, "INVALID_ARGUMENTS", "unknown_field"),
    ]
    before = repository_picture(repository)
    for arguments, code, reason in cases:
        error = refusal("attach_workspace", **arguments)
        assert (error["code"], error.get("reason")) == (code, reason), (arguments, error)
    assert [w["slug"] for w in result("list_workspaces")["workspaces"]] == ["main"]
    assert repository_picture(repository) == before


def test_one_already_connected_is_refused_with_its_slug(result, refusal, theirs: Path):
    result("attach_workspace", path=str(theirs), slug="mine")
    error = refusal("attach_workspace", path=str(theirs))
    assert (error["reason"], error["data"]) == ("already_connected", {"workspace": "mine"})


def test_one_whose_folder_is_gone_is_refused(refusal, theirs: Path):
    shutil.rmtree(theirs)
    assert refusal("attach_workspace", branch="their/branch")["reason"] == "broken_worktree"


def test_one_without_the_projects_subdirectory_is_refused(app, repository: Path, theirs: Path):
    from exeora_ws.tools.call import Caller, Face, RawCall, Scope

    project = app.inventory.register_project(repository / "src", exact=True)[0]
    git(theirs, "rm", "-rq", "src")
    caller = Caller(Face.CLI, "test", "s", Scope(bound=project.id))
    outcome = app.calls.make(RawCall("attach_workspace", {"path": str(theirs)}), caller)
    assert outcome.error is not None
    assert outcome.error.reason == "missing_subdirectory"


def test_list_git_workspaces_shows_every_worktree_with_its_trouble(result, repository: Path, tmp_path: Path):
    for name in ("locked", "detached", "gone", "broken"):
        git(repository, "worktree", "add", "-q", "-b", name, str(tmp_path / name))
    git(repository, "worktree", "lock", "--reason", "away", str(tmp_path / "locked"))
    git(tmp_path / "detached", "switch", "-q", "--detach")
    shutil.rmtree(tmp_path / "gone")
    (tmp_path / "broken" / ".git").unlink()
    result("attach_workspace", branch="locked")
    listed = {Path(w["path"]).name: w for w in result("list_git_workspaces")["workspaces"]}
    assert listed["app"]["main"] is True
    assert listed["app"]["connected"] == "main"
    assert (listed["locked"]["locked"], listed["locked"]["connected"]) == ("away", "locked")
    assert (listed["detached"]["detached"], listed["detached"]["branch"]) == (True, None)
    assert listed["gone"]["prunable"]
    assert listed["broken"]["prunable"]
    assert "locked" not in listed["gone"]
    assert listed["gone"]["connected"] is None
