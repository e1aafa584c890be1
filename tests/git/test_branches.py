import shutil

import pytest
from exeora_ws.errors import ToolFailed

from support.repositories import commit_file, git


@pytest.fixture
def top(make_repository):
    return make_repository(commits=2)


def tip(top, branch):
    return git(top, "rev-parse", f"refs/heads/{branch}")


class TestCreating:
    def test_at_a_commit_without_upstream(self, opened, top):
        git(top, "config", "branch.autoSetupMerge", "always")
        commit = git(top, "rev-parse", "HEAD~1")
        opened(top).create_branch("feature/日本", commit)
        assert tip(top, "feature/日本") == commit
        assert git(top, "config", "--get-regexp", r"^branch\.feature", check=False) == ""
        assert "Created from" in git(top, "reflog", "feature/日本")

    @pytest.mark.parametrize(
        ("name", "reason"),
        [("main", "branch_exists"), ("main/x", "branch_conflict"), ("a", "branch_conflict"), ("-d", "invalid_branch"),
         ("a..b", "invalid_branch"), ("", "invalid_branch"), ("HEAD", "invalid_branch"), ("x\0y", "invalid_branch")],
    )  # fmt: skip
    def test_refused(self, opened, top, trace, name, reason):
        git(top, "branch", "a/b/c")
        before = trace(top)
        with pytest.raises(ToolFailed) as caught:
            opened(top).create_branch(name, git(top, "rev-parse", "HEAD"))
        assert caught.value.reason == reason
        assert trace(top) == before

    @pytest.mark.parametrize("commit", ["main", "HEAD", "", "-x", "f" * 40])
    def test_only_at_a_commit_that_is_there(self, opened, top, trace, commit):
        before = trace(top)
        with pytest.raises(ToolFailed):
            opened(top).create_branch("new", commit)
        assert trace(top) == before

    def test_only_at_a_commit(self, opened, top, trace):
        before = trace(top)
        with pytest.raises(ToolFailed):
            opened(top).create_branch("new", git(top, "rev-parse", "HEAD^{tree}"))
        assert trace(top) == before


class TestDeleting:
    def test_a_merged_one(self, opened, top):
        git(top, "branch", "feature/x", "HEAD~1")
        git(top, "config", "branch.feature/x.description", "words")
        git(top, "config", "branch.feature/xy.description", "others")
        done = opened(top).delete_branch("feature/x", tip(top, "feature/x"))
        assert (done.deleted, done.reason) == (True, None)
        assert git(top, "branch", "--list", "feature/*") == ""
        assert git(top, "config", "--get-regexp", r"^branch\.") == "branch.feature/xy.description others"
        assert not (top / ".git/logs/refs/heads/feature/x").exists()

    def test_a_packed_one(self, opened, top):
        git(top, "branch", "x")
        git(top, "pack-refs", "--all")
        assert opened(top).delete_branch("x", tip(top, "x")).deleted
        assert "x" not in git(top, "branch", "--list", "x")

    def test_an_unmerged_one_is_kept_unless_forced(self, opened, top, trace):
        git(top, "checkout", "-q", "-b", "x")
        commit = commit_file(top, "a", "b")
        git(top, "checkout", "-q", "main")
        before = trace(top)
        kept = opened(top).delete_branch("x", commit)
        assert (kept.deleted, kept.reason) == (False, "unmerged")
        assert trace(top) == before
        assert opened(top).delete_branch("x", commit, force=True).deleted

    def test_one_that_moved_is_kept_also_by_force(self, opened, top, trace):
        git(top, "branch", "x", "HEAD~1")
        seen = tip(top, "x")
        git(top, "branch", "-f", "x", "HEAD")
        before = trace(top)
        for force in (False, True):
            assert opened(top).delete_branch("x", seen, force=force).reason == "moved"
        assert trace(top) == before

    def test_one_that_is_missing(self, opened, top):
        for name in ("x", "-D", "", "refs/heads/main"):
            assert opened(top).delete_branch(name, git(top, "rev-parse", "HEAD")).reason == "missing"

    def test_one_that_is_checked_out(self, opened, top, tmp_path, trace):
        git(top, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
        before = trace(top)
        for name in ("main", "side"):
            for force in (False, True):
                kept = opened(top).delete_branch(name, tip(top, name), force=force)
                assert (kept.deleted, kept.reason) == (False, "checked_out")
                assert str(tmp_path) not in kept.message
        assert trace(top) == before

    def test_one_that_is_being_rebased_or_bisected(self, opened, top, tmp_path):
        git(top, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
        commit_file(tmp_path / "linked", "README.md", "one")
        commit_file(top, "README.md", "two")
        git(tmp_path / "linked", "rebase", "main", check=False)
        kept = opened(top).delete_branch("side", tip(top, "side"), force=True)
        assert kept.reason == "checked_out"
        assert "rebase" in kept.message
        git(tmp_path / "linked", "rebase", "--abort")
        git(tmp_path / "linked", "bisect", "start", "HEAD", "HEAD~2")
        assert "bisect" in opened(top).delete_branch("side", tip(top, "side"), force=True).message

    def test_one_of_a_worktree_whose_folder_is_gone_is_kept_as_git_keeps_it(self, opened, top, tmp_path):
        git(top, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
        shutil.rmtree(tmp_path / "linked")
        assert opened(top).delete_branch("side", tip(top, "side")).reason == "checked_out"


@pytest.fixture(
    params=["ahead of upstream", "pushed, not in HEAD", "in HEAD, not pushed", "upstream gone", "no upstream"]
)
def branch_to_judge(request, top, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(top), "origin.git")
    git(top, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(top, "checkout", "-q", "-b", "x")
    commit_file(top, "a", "b")
    if request.param != "no upstream":
        git(top, "push", "-q", "-u", "origin", "x")
    if request.param in ("ahead of upstream", "in HEAD, not pushed"):
        commit_file(top, "a", "c")
    git(top, "checkout", "-q", "main")
    if request.param == "in HEAD, not pushed":
        git(top, "merge", "-q", "x")
    if request.param == "upstream gone":
        git(top, "update-ref", "-d", "refs/remotes/origin/x")
    return "x"


def test_merged_means_what_it_means_to_git(opened, top, branch_to_judge, tmp_path):
    twin = tmp_path / "twin"
    shutil.copytree(top, twin, symlinks=True)
    git(twin, "branch", "-d", branch_to_judge, check=False)
    gone = git(twin, "branch", "--list", branch_to_judge) == ""
    done = opened(top).delete_branch(branch_to_judge, tip(top, branch_to_judge))
    assert done.deleted == gone
    assert (git(top, "branch", "--list", branch_to_judge) == "") == gone
    assert git(top, "config", "--list", "--local") == git(twin, "config", "--list", "--local")


def test_merged_is_judged_from_the_checkout_it_was_opened_at(opened, top, tmp_path):
    git(top, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    commit = commit_file(tmp_path / "linked", "a", "b")
    git(top, "branch", "x", commit)
    assert opened(top).delete_branch("x", commit).reason == "unmerged"
    assert opened(tmp_path / "linked").delete_branch("x", commit).deleted


def test_a_bare_repository_with_an_unborn_head(opened, top, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(top), "app.git")
    git(tmp_path / "app.git", "symbolic-ref", "HEAD", "refs/heads/nothing")
    repository = opened(tmp_path / "app.git")
    assert repository.delete_branch("main", tip(top, "main")).reason == "unmerged"
    assert repository.delete_branch("main", tip(top, "main"), force=True).deleted
