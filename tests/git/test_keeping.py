"""What the commands of daily use ask of Git, over each engine."""

from collections.abc import Callable
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.git.engine import Engine

from support.repositories import RepositoryMaker, commit_file, git

Opener = Callable[[Path], Engine]


@pytest.fixture
def top(make_repository: RepositoryMaker) -> Path:
    return make_repository("app", commits=2)


def test_held_objects_survive_collection_until_released(opened: Opener, top: Path):
    git(top, "switch", "-q", "--detach")
    commit = commit_file(top, "lost.txt", "lost")
    (top / "README.md").write_text("staged only")
    git(top, "add", "README.md")
    blob = git(top, "rev-parse", ":README.md")
    repository = opened(top)
    repository.hold_objects("one", [commit, "0" * 40], ["README.md"])
    git(top, "reset", "-q", "--hard", "main")
    git(top, "switch", "-q", "main")

    def collect() -> None:
        git(top, "reflog", "expire", "--expire=now", "--all")
        git(top, "gc", "-q", "--prune=now")

    collect()
    assert git(top, "cat-file", "-p", blob) == "staged only"
    assert git(top, "cat-file", "-t", commit) == "commit"
    assert repository.is_reachable(commit) is False
    repository.release_objects("one")
    repository.release_objects("one")
    collect()
    assert git(top, "cat-file", "-t", blob, check=False) == ""
    with pytest.raises(ToolFailed):
        repository.hold_objects("../heads/main", [commit], [])


def test_branch_settings_are_read_and_written_back(opened: Opener, top: Path):
    name = "a.b/ü"
    git(top, "branch", name)
    git(top, "config", f"branch.{name}.description", "two words")
    git(top, "config", "--add", f"branch.{name}.merge", "refs/heads/one")
    git(top, "config", "--add", f"branch.{name}.merge", "refs/heads/two")
    git(top, "config", "branch.a.remote", "other")
    repository = opened(top)
    found = list(repository.read_branch_settings(name))
    assert found == [("description", "two words"), ("merge", "refs/heads/one"), ("merge", "refs/heads/two")]
    repository.forget_branch_settings(name)
    assert list(repository.read_branch_settings(name)) == []
    repository.write_branch_settings(name, found)
    assert list(repository.read_branch_settings(name)) == found


def test_a_renamed_branch_takes_its_worktree_along(opened: Opener, top: Path, engine: str, tmp_path: Path):
    git(top, "worktree", "add", "-q", "-b", "x", str(tmp_path / "x"))
    repository = opened(top)
    if engine == "libgit2":
        with pytest.raises(ToolFailed) as caught:
            repository.rename_branch("x", "y")
        assert caught.value.reason == "git_missing"
        return
    for name, reason in (("main", "branch_exists"), ("a..b", "invalid_branch")):
        with pytest.raises(ToolFailed) as caught:
            repository.rename_branch("x", name)
        assert caught.value.reason == reason
    repository.rename_branch("x", "y")
    assert git(tmp_path / "x", "symbolic-ref", "--short", "HEAD") == "y"


def test_references_that_are_not_ours_are_not_dropped(opened: Opener, top: Path):
    with pytest.raises(ToolFailed):
        opened(top).drop_ref("refs/heads/main")
    assert git(top, "rev-parse", "main") != ""
