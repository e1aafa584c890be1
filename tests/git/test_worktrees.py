import os
import shutil
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.git.port import Operation, Worktree

from support.repositories import commit_file, git


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository(commits=2)


@pytest.fixture
def linked(top, tmp_path) -> Path:
    return add(top, tmp_path / "linked", "side")


def add(top: Path, path: Path, branch: str) -> Path:
    git(top, "worktree", "add", "-q", "-b", branch, str(path))
    return path


def only(opened, top: Path) -> Worktree:
    _, linked = opened(top).list_worktrees()
    return linked


class TestListing:
    def test_main_first_then_by_path(self, opened, top, tmp_path):
        for name in ("b", "a", "c"):
            add(top, tmp_path / name, f"branch-{name}")
        commit = git(top, "rev-parse", "HEAD")
        found = opened(tmp_path / "b").list_worktrees()
        assert [(w.path, w.main, w.branch, w.head, w.admin) for w in found] == [
            (top, True, "main", commit, None),
            *[(tmp_path / n, False, f"branch-{n}", commit, n) for n in ("a", "b", "c")],
        ]
        assert all(w.prunable is None and w.locked is None and not w.detached and not w.bare for w in found)

    def test_it_agrees_with_git(self, opened, top, linked, tmp_path):
        git(top, "worktree", "add", "-q", "--detach", str(tmp_path / "loose"), "HEAD~1")
        git(top, "worktree", "lock", "--reason", "on a stick", str(linked))
        shutil.rmtree(add(top, tmp_path / "gone", "gone"))
        told = {}
        for record in git(top, "worktree", "list", "--porcelain", "-z").split("\0\0"):
            if record:
                facts = dict(line.partition(" ")[::2] for line in record.split("\0"))
                told[facts["worktree"]] = (
                    facts.get("HEAD"), facts.get("branch", "").removeprefix("refs/heads/") or None,
                    "detached" in facts, facts.get("locked"), "prunable" in facts,
                )  # fmt: skip
        ours = {
            str(w.path): (w.head, w.branch, w.detached, w.locked, w.prunable is not None)
            for w in opened(top).list_worktrees()
        }
        assert ours == told

    def test_a_bare_repository(self, opened, top, tmp_path):
        bare = tmp_path / "app.git"
        git(tmp_path, "clone", "-q", "--bare", str(top), str(bare))
        add(bare, tmp_path / "one", "one")
        main, one = opened(tmp_path / "one").list_worktrees()
        assert (main.path, main.bare, main.branch, main.head) == (bare, True, None, None)
        assert one.branch == "one"

    def test_main_of_a_submodule_is_its_checkout(self, opened, top, make_repository, tmp_path):
        outer = make_repository("outer")
        git(outer, "submodule", "--quiet", "add", str(top), "inner")
        add(outer / "inner", tmp_path / "linked", "side")
        assert opened(tmp_path / "linked").list_worktrees()[0].path == outer / "inner"

    def test_main_of_the_bare_folder_layout_is_the_folder_around_it(self, opened, top, tmp_path):
        (tmp_path / "project").mkdir()
        git(tmp_path, "clone", "-q", "--bare", str(top), "project/.bare")
        (tmp_path / "project" / ".git").write_text("gitdir: ./.bare\n")
        add(tmp_path / "project", tmp_path / "project" / "side", "side")
        main, side = opened(tmp_path / "project").list_worktrees()
        assert (main.path, main.bare, side.path) == (tmp_path / "project", True, tmp_path / "project" / "side")

    def test_an_unborn_main(self, opened, tmp_path):
        (tmp_path / "fresh").mkdir()
        git(tmp_path / "fresh", "init", "-q", "-b", "trunk")
        (main,) = opened(tmp_path / "fresh").list_worktrees()
        assert (main.branch, main.head, main.detached) == ("trunk", None, False)

    def test_a_lock_with_and_without_a_reason(self, opened, top, linked):
        git(top, "worktree", "lock", str(linked))
        assert only(opened, top).locked == ""
        git(top, "worktree", "unlock", str(linked))
        git(top, "worktree", "lock", "--reason", "two\nlines", str(linked))
        assert only(opened, top).locked == "two\nlines"

    @pytest.mark.parametrize("break_it", ["folder", "git file", "clone", "record"])
    def test_every_kind_of_broken_one_is_listed_with_a_reason(self, opened, top, linked, break_it):
        if break_it == "git file":
            (linked / ".git").unlink()
        elif break_it == "record":
            (linked / ".git").write_text("gitdir: /nowhere\n")
        else:
            shutil.rmtree(linked)
            if break_it == "clone":
                git(top, "clone", "-q", str(top), str(linked))
        found = only(opened, top)
        assert found.path == linked
        assert found.branch == "side"
        assert found.prunable is not None
        assert str(linked.parent) not in found.prunable

    def test_empty_folders_under_worktrees_are_nobodys(self, opened, top, linked):
        for name in ("one", "two"):
            (top / ".git" / "worktrees" / name).mkdir()
        assert only(opened, top).path == linked

    def test_a_record_that_is_garbage(self, opened, top, linked):
        (top / ".git/worktrees/linked/HEAD").write_bytes(b"\xff\xfe nonsense")
        found = only(opened, top)
        assert (found.branch, found.head, found.detached) == (None, None, False)

    def test_a_path_of_any_bytes(self, opened, top, tmp_path):
        odd = tmp_path / "a b\n\udcff'\"é"
        add(top, odd, "odd")
        assert only(opened, top).path == odd
        assert opened(odd).head().branch == "odd"


class TestOperations:
    def state(self, opened, top) -> tuple[Operation | None, str | None, bool]:
        found = only(opened, top)
        return found.operation, found.held_branch, found.detached

    @pytest.fixture
    def conflicting(self, top, linked):
        commit_file(linked, "README.md", "one\n")
        commit_file(top, "README.md", "two\n")
        return linked

    def test_none(self, opened, top, linked):
        assert self.state(opened, top) == (None, None, False)

    @pytest.mark.parametrize("backend", ["--merge", "--apply"])
    def test_rebase(self, opened, top, conflicting, backend):
        git(conflicting, "rebase", backend, "main", check=False)
        assert self.state(opened, top) == (Operation.REBASE, "side", True)
        assert "side" in only(opened, top).holds

    def test_rebase_that_moves_other_branches(self, opened, top, conflicting):
        git(conflicting, "branch", "below")
        commit_file(conflicting, "more", "x")
        git(conflicting, "rebase", "--update-refs", "main", check=False)
        assert only(opened, top).also_held == ("below",)

    def test_bisect(self, opened, top, linked):
        for number in range(3):
            commit_file(linked, "n", str(number))
        git(linked, "bisect", "start", "HEAD", "HEAD~3")
        assert self.state(opened, top) == (Operation.BISECT, "side", True)

    def test_bisect_from_a_detached_head(self, opened, top, linked):
        for number in range(3):
            commit_file(linked, "n", str(number))
        git(linked, "checkout", "-q", "--detach")
        git(linked, "bisect", "start", "HEAD", "HEAD~3")
        assert self.state(opened, top) == (Operation.BISECT, None, True)

    def test_merge(self, opened, top, conflicting):
        git(conflicting, "merge", "main", check=False)
        assert self.state(opened, top) == (Operation.MERGE, None, False)

    def test_cherry_pick_and_revert(self, opened, top, conflicting):
        git(conflicting, "cherry-pick", "main", check=False)
        assert self.state(opened, top)[0] == Operation.CHERRY_PICK
        git(conflicting, "cherry-pick", "--abort")
        commit_file(conflicting, "README.md", "three\n")
        git(conflicting, "revert", "HEAD~1", check=False)
        assert self.state(opened, top)[0] == Operation.REVERT

    def test_am(self, opened, top, conflicting, tmp_path):
        git(top, "format-patch", "-1", "-o", str(tmp_path / "patches"))
        (patch,) = (tmp_path / "patches").iterdir()
        git(conflicting, "am", str(patch), check=False)
        assert self.state(opened, top) == (Operation.AM, None, False)

    def test_in_main(self, opened, top, conflicting):
        git(top, "rebase", "side", check=False)
        main = opened(top).list_worktrees()[0]
        assert (main.operation, main.held_branch, main.branch) == (Operation.REBASE, "main", None)


class TestRemovingRecords:
    def test_only_the_one(self, opened, top, linked, tmp_path):
        other = add(top, tmp_path / "other", "other")
        shutil.rmtree(linked)
        repository = opened(top)
        found = next(w for w in repository.list_worktrees() if w.path == linked)
        repository.remove_admin(found)
        assert [w.path for w in repository.list_worktrees()] == [top, other]
        assert git(top, "worktree", "list").count("\n") == 1
        assert git(top, "rev-parse", "side")
        repository.remove_admin(found)

    def test_the_last_one_takes_the_folder_with_it(self, opened, top, linked):
        shutil.rmtree(linked)
        repository = opened(top)
        repository.remove_admin(only(opened, top))
        assert not (top / ".git" / "worktrees").exists()

    def test_not_while_the_folder_is_there(self, opened, top, linked, trace):
        before = trace(top)
        with pytest.raises(ToolFailed) as caught:
            opened(top).remove_admin(only(opened, top))
        assert caught.value.reason == "worktree_present"
        assert trace(top) == before

    def test_not_a_locked_one(self, opened, top, linked, trace):
        git(top, "worktree", "lock", "--reason", "on a stick", str(linked))
        shutil.rmtree(linked)
        before = trace(top)
        with pytest.raises(ToolFailed, match="on a stick") as caught:
            opened(top).remove_admin(only(opened, top))
        assert caught.value.reason == "locked"
        assert trace(top) == before

    def test_not_main(self, opened, top, trace):
        repository = opened(top)
        before = trace(top)
        with pytest.raises(ToolFailed) as caught:
            repository.remove_admin(repository.list_worktrees()[0])
        assert caught.value.reason == "main_worktree"
        assert trace(top) == before

    def test_not_one_that_became_another_worktrees(self, opened, top, linked, tmp_path):
        repository = opened(top)
        old = only(opened, top)
        shutil.rmtree(linked)
        git(top, "worktree", "prune")
        (tmp_path / "elsewhere").mkdir()
        git(top, "worktree", "add", "-q", str(tmp_path / "elsewhere" / "linked"), "side")
        with pytest.raises(ToolFailed) as caught:
            repository.remove_admin(old)
        assert caught.value.reason == "stale"
        assert only(opened, top).prunable is None


class TestLocking:
    def test_git_sees_it(self, opened, top, linked):
        repository = opened(top)
        repository.lock_worktree(only(opened, top), "in use by é")
        assert "locked in use by é" in git(top, "worktree", "list", "--porcelain", "-z")
        assert only(opened, top).locked == "in use by é"
        repository.unlock_worktree(only(opened, top))
        repository.unlock_worktree(only(opened, top))
        assert "locked" not in git(top, "worktree", "list", "--porcelain")

    def test_twice_is_refused_and_quotes_the_first(self, opened, top, linked):
        repository = opened(top)
        repository.lock_worktree(only(opened, top), "first")
        with pytest.raises(ToolFailed, match="first") as caught:
            repository.lock_worktree(only(opened, top), "second")
        assert caught.value.reason == "locked"
        assert only(opened, top).locked == "first"

    def test_main_and_a_gone_one(self, opened, top, linked):
        repository = opened(top)
        main, gone = repository.list_worktrees()
        shutil.rmtree(linked)
        git(top, "worktree", "prune")
        with pytest.raises(ToolFailed) as caught:
            repository.lock_worktree(main, "x")
        assert caught.value.reason == "main_worktree"
        with pytest.raises(ToolFailed) as caught:
            repository.lock_worktree(gone, "x")
        assert caught.value.reason == "stale"


class TestSavingAndReviving:
    def remove(self, repository, worktree: Worktree, tmp_path: Path) -> Path:
        """As a removal does: save the record, move the files aside, forget the record."""
        repository.save_admin(worktree, tmp_path / "saved")
        worktree.path.rename(tmp_path / "files")
        repository.remove_admin(worktree)
        return tmp_path / "saved"

    def test_all_comes_back(self, opened, top, linked, tmp_path):
        (linked / "README.md").write_text("staged\n")
        git(linked, "add", "README.md")
        (linked / "README.md").write_text("unstaged\n")
        (linked / "new").write_text("untracked")
        commands = [("status", "--porcelain"), ("diff", "--cached"), ("diff",), ("reflog",), ("rev-parse", "HEAD")]
        before = [git(linked, *command) for command in commands]
        index = (top / ".git/worktrees/linked/index").read_bytes()
        repository = opened(top)
        saved = self.remove(repository, only(opened, top), tmp_path)
        assert len(repository.list_worktrees()) == 1
        (tmp_path / "files").rename(linked)
        revived = repository.revive_admin(saved, linked)
        assert revived == only(opened, top)
        assert (revived.admin, revived.branch, revived.prunable, revived.locked) == ("linked", "side", None, None)
        assert (top / ".git/worktrees/linked/index").read_bytes() == index
        assert [git(linked, *command) for command in commands] == before

    def test_in_another_folder_and_under_another_name(self, opened, top, linked, tmp_path):
        (linked / "README.md").write_text("changed\n")
        repository = opened(top)
        saved = self.remove(repository, only(opened, top), tmp_path)
        add(top, tmp_path / "x" / "linked", "taken")
        revived = repository.revive_admin(saved, tmp_path / "files")
        assert revived.path == tmp_path / "files"
        assert revived.admin != "linked"
        assert git(tmp_path / "files", "status", "--porcelain") == " M README.md"

    def test_without_its_git_file(self, opened, top, linked, tmp_path):
        repository = opened(top)
        saved = self.remove(repository, only(opened, top), tmp_path)
        (tmp_path / "files" / ".git").unlink()
        repository.revive_admin(saved, tmp_path / "files")
        assert git(tmp_path / "files", "status", "--porcelain") == ""

    def test_in_the_middle_of_a_rebase(self, opened, top, linked, tmp_path):
        commit_file(linked, "README.md", "one\n")
        commit_file(top, "README.md", "two\n")
        git(linked, "rebase", "main", check=False)
        repository = opened(top)
        saved = self.remove(repository, only(opened, top), tmp_path)
        (tmp_path / "files").rename(linked)
        assert repository.revive_admin(saved, linked).held_branch == "side"
        git(linked, "rebase", "--abort")
        assert git(linked, "status", "--porcelain", "--branch") == "## side"

    def test_not_when_its_branch_is_gone_or_taken(self, opened, top, linked, tmp_path, trace):
        repository = opened(top)
        saved = self.remove(repository, only(opened, top), tmp_path)
        git(top, "worktree", "add", "-q", str(linked), "side")
        before = trace(top)
        with pytest.raises(ToolFailed) as caught:
            repository.revive_admin(saved, tmp_path / "files")
        assert caught.value.reason == "branch_checked_out"
        assert trace(top) == before
        git(top, "worktree", "remove", str(linked))
        git(top, "branch", "-D", "side")
        before = trace(top)
        with pytest.raises(ToolFailed) as caught:
            repository.revive_admin(saved, tmp_path / "files")
        assert caught.value.reason == "branch_missing"
        assert trace(top) == before

    def test_not_over_a_worktree(self, opened, top, linked, tmp_path):
        repository = opened(top)
        repository.save_admin(only(opened, top), tmp_path / "saved")
        for folder in (linked, top):
            with pytest.raises(ToolFailed) as caught:
                repository.revive_admin(tmp_path / "saved", folder)
            assert caught.value.reason == "worktree_present"

    def test_not_over_another_repositorys_checkout(self, opened, top, linked, make_repository, tmp_path):
        foreign = add(make_repository("other"), tmp_path / "foreign", "x")
        link = (foreign / ".git").read_text()
        repository = opened(top)
        saved = self.remove(repository, only(opened, top), tmp_path)
        with pytest.raises(ToolFailed) as caught:
            repository.revive_admin(saved, foreign)
        assert caught.value.reason == "worktree_present"
        assert (foreign / ".git").read_text() == link

    def test_initialised_submodules_come_back(self, opened, top, linked, make_repository, tmp_path):
        inner = make_repository("inner")
        git(linked, "submodule", "--quiet", "add", str(inner), "inner")
        git(linked, "commit", "-qm", "submodule")
        lost = commit_file(linked / "inner", "precious", "x")
        repository = opened(top)
        saved = self.remove(repository, only(opened, top), tmp_path)
        (tmp_path / "files").rename(linked)
        repository.revive_admin(saved, linked)
        assert git(linked / "inner", "rev-parse", "HEAD") == lost
        assert git(linked / "inner", "fsck") == ""

    def test_a_saved_record_that_is_gone(self, opened, top, tmp_path, trace):
        before = trace(top)
        (tmp_path / "files").mkdir()
        with pytest.raises(ToolFailed) as caught:
            opened(top).revive_admin(tmp_path / "nothing", tmp_path / "files")
        assert caught.value.reason == "io_failed"
        assert trace(top) == before
        assert os.listdir(tmp_path / "files") == []

    def test_a_split_index_comes_back(self, opened_by_git, top, linked, tmp_path):
        git(linked, "update-index", "--split-index")
        commit_file(linked, "a", "b")
        repository = opened_by_git(top)
        saved = self.remove(repository, only(opened_by_git, top), tmp_path)
        (tmp_path / "files").rename(linked)
        repository.revive_admin(saved, linked)
        assert git(linked, "status", "--porcelain") == ""
        assert list((top / ".git/worktrees/linked").glob("sharedindex.*"))
