import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.git.port import Addition

from support.repositories import commit_file, git

TOP = Path(__file__).parents[2]


def tree_of(top: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below, but for `.git`: its mode and its bytes, or a link's target."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) and path.name != ".git":
            found[str(path.relative_to(top))] = (mode, os.fsencode(os.readlink(path)))
        elif path.relative_to(top).parts[0] != ".git":
            found[str(path.relative_to(top))] = (mode, path.read_bytes() if stat.S_ISREG(mode) else b"")
    return found


def head_of(top: Path) -> str:
    return git(top, "rev-parse", "HEAD")


@pytest.fixture
def top(make_repository) -> Path:
    top = make_repository(commits=2)
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("src")
    (top / "dangling").symlink_to("/nowhere")
    (top / "naïve ☃.txt").write_text("x\r\ny\n")
    (top / "empty").write_text("")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "kinds")
    return top


class TestWhatIsAdded:
    def test_on_a_new_branch_equals_what_git_writes(self, opened, top, tmp_path):
        new = tmp_path / "deep" / "er" / "new"
        opened(top).add_worktree(Addition(new, head_of(top), new_branch="feature/new", source=top))
        git(top, "worktree", "add", "-q", "-b", "by-git", str(tmp_path / "by-git"))
        assert tree_of(new) == tree_of(tmp_path / "by-git")
        assert git(new, "status", "--porcelain", "--branch") == "## feature/new"
        assert git(new, "rev-parse", "HEAD") == head_of(top)
        assert [w.prunable for w in opened(top).list_worktrees()] == [None] * 3

    def test_on_an_existing_branch(self, opened, top, tmp_path):
        git(top, "branch", "old", "HEAD~1")
        opened(top).add_worktree(Addition(tmp_path / "new", git(top, "rev-parse", "old"), branch="old", source=top))
        assert git(tmp_path / "new", "status", "--porcelain", "--branch") == "## old"
        assert not (tmp_path / "new" / "run.sh").exists()

    def test_detached(self, opened, top, tmp_path):
        opened(top).add_worktree(Addition(tmp_path / "new", git(top, "rev-parse", "HEAD~1"), source=top))
        found = opened(tmp_path / "new").list_worktrees()[1]
        assert (found.detached, found.branch, found.head) == (True, None, git(top, "rev-parse", "HEAD~1"))

    def test_into_an_empty_folder_that_is_there(self, opened, top, tmp_path):
        (tmp_path / "new").mkdir(mode=0o750)
        opened(top).add_worktree(Addition(tmp_path / "new", head_of(top), new_branch="new", source=top))
        assert git(tmp_path / "new", "status", "--porcelain") == ""

    def test_from_inside_a_linked_worktree(self, opened, top, tmp_path):
        git(top, "worktree", "add", "-q", "-b", "one", str(tmp_path / "one"))
        commit = commit_file(tmp_path / "one", "a", "b")
        opened(tmp_path / "one").add_worktree(
            Addition(tmp_path / "two", commit, new_branch="two", source=tmp_path / "one")
        )
        assert (tmp_path / "two" / "a").read_text() == "b"

    def test_from_a_bare_repository(self, opened, top, tmp_path):
        git(tmp_path, "clone", "-q", "--bare", str(top), "app.git")
        opened(tmp_path / "app.git").add_worktree(Addition(tmp_path / "new", head_of(top), new_branch="new"))
        assert tree_of(tmp_path / "new") == tree_of(top)
        assert git(tmp_path / "new", "status", "--porcelain") == ""
        assert opened(tmp_path / "new").status().clean

    def test_from_the_bare_folder_layout(self, opened, top, tmp_path):
        project = tmp_path / "project"
        project.mkdir()
        git(tmp_path, "clone", "-q", "--bare", str(top), "project/.bare")
        (project / ".git").write_text("gitdir: ./.bare\n")
        opened(project).add_worktree(Addition(project / "new", head_of(top), new_branch="new"))
        assert tree_of(project / "new") == tree_of(top)
        assert opened(project / "new").status().clean

    def test_of_a_submodule(self, opened, top, make_repository, tmp_path):
        outer = make_repository("outer")
        git(outer, "submodule", "--quiet", "add", str(top), "inner")
        inner = outer / "inner"
        opened(inner).add_worktree(Addition(tmp_path / "new", head_of(inner), new_branch="new", source=inner))
        assert tree_of(tmp_path / "new") == tree_of(inner)
        assert opened(tmp_path / "new").status().clean
        assert git(outer, "status", "--porcelain") == "A  .gitmodules\nA  inner"

    def test_no_upstream_is_set_and_the_configuration_untouched(self, opened, top, tmp_path):
        git(tmp_path, "clone", "-q", str(top), "clone")
        clone = tmp_path / "clone"
        git(clone, "config", "branch.autoSetupMerge", "always")
        before = (clone / ".git" / "config").read_bytes()
        commit = git(clone, "rev-parse", "origin/main")
        opened(clone).add_worktree(Addition(tmp_path / "new", commit, new_branch="new", source=clone))
        assert (clone / ".git" / "config").read_bytes() == before

    def test_with_a_tag_and_a_remote_branch_of_the_same_name(self, opened, top, tmp_path):
        git(top, "tag", "new", "HEAD~1")
        git(top, "update-ref", "refs/remotes/origin/new", "HEAD~1")
        opened(top).add_worktree(Addition(tmp_path / "new", head_of(top), new_branch="new", source=top))
        assert git(tmp_path / "new", "rev-parse", "HEAD") == head_of(top)
        assert git(tmp_path / "new", "symbolic-ref", "HEAD") == "refs/heads/new"
        assert git(tmp_path / "new", "status", "--porcelain") == ""

    @pytest.mark.parametrize(
        "name", ["a b", "-dash", "q'\"uote", "new\nline", "caf\udce9", "日本", "co:lon", "a%b", "~"]
    )
    def test_into_a_folder_of_any_name(self, opened, top, tmp_path, name):
        new = tmp_path / "x" / name
        opened(top).add_worktree(Addition(new, head_of(top), new_branch="new", source=top))
        assert opened(new).status().clean
        assert (new / "README.md").read_bytes() == (top / "README.md").read_bytes()

    def test_beside_two_empty_folders_under_worktrees(self, opened, top, tmp_path):
        for name in ("one", "two"):
            (top / ".git" / "worktrees" / name).mkdir(parents=True)
        git(top, "branch", "old")
        opened(top).add_worktree(Addition(tmp_path / "one", head_of(top), branch="old", source=top))
        assert opened(tmp_path / "one").head().branch == "old"

    def test_where_one_was_deleted_by_hand(self, opened, top, tmp_path):
        git(top, "worktree", "add", "-q", "-b", "old", str(tmp_path / "new"))
        subprocess.run(["rm", "-rf", tmp_path / "new"], check=True)
        opened(top).add_worktree(Addition(tmp_path / "new", head_of(top), branch="old", source=top))
        assert len(opened(top).list_worktrees()) == 2
        assert opened(tmp_path / "new").status().clean


class TestWhatIsRefused:
    def refuse(self, repository, addition: Addition, trace, top: Path) -> str | None:
        before, files = trace(top), sorted(addition.path.parent.rglob("*"))
        with pytest.raises(ToolFailed) as caught:
            repository.add_worktree(addition)
        assert trace(top) == before
        assert sorted(addition.path.parent.rglob("*")) == files
        assert str(top.parent) not in caught.value.message
        return caught.value.reason

    @pytest.fixture
    def target(self, tmp_path) -> Path:
        (tmp_path / "targets").mkdir()
        return tmp_path / "targets" / "new"

    def test_a_target_that_holds_something(self, opened, top, target, trace):
        target.mkdir()
        (target / "precious").write_text("x")
        addition = Addition(target, head_of(top), new_branch="new", source=top)
        assert self.refuse(opened(top), addition, trace, top) == "target_not_empty"
        (target / "precious").unlink()
        opened(top).add_worktree(addition)

    @pytest.mark.parametrize("kind", ["file", "link", "dangling"])
    def test_a_target_that_is_no_folder(self, opened, top, target, trace, kind, tmp_path):
        if kind == "file":
            target.write_text("x")
        else:
            target.symlink_to(tmp_path / ("targets" if kind == "link" else "nowhere"))
        addition = Addition(target, head_of(top), new_branch="new", source=top)
        assert self.refuse(opened(top), addition, trace, top) == "target_not_empty"

    @pytest.mark.parametrize(
        ("branch", "reason"),
        [
            ("main", "branch_exists"),
            ("main/x", "branch_conflict"),
            ("-x", "invalid_branch"),
            ("a..b", "invalid_branch"),
        ],
    )
    def test_a_new_branch_that_cannot_be(self, opened, top, target, trace, branch, reason):
        addition = Addition(target, head_of(top), new_branch=branch, source=top)
        assert self.refuse(opened(top), addition, trace, top) == reason

    def test_a_branch_that_is_checked_out_in_main_or_elsewhere(self, opened, top, target, trace, tmp_path):
        git(top, "worktree", "add", "-q", "-b", "old", str(tmp_path / "old"))
        for branch in ("main", "old"):
            addition = Addition(target, head_of(top), branch=branch, source=top)
            assert self.refuse(opened(top), addition, trace, top) == "branch_checked_out"

    @pytest.mark.parametrize("operation", ["rebase", "bisect", "update-refs"])
    def test_a_branch_that_an_operation_holds(self, opened, top, target, trace, tmp_path, operation):
        side = tmp_path / "side"
        git(top, "worktree", "add", "-q", "-b", "old", str(side))
        commit_file(side, "README.md", "one")
        commit_file(top, "README.md", "two")
        if operation == "bisect":
            git(side, "bisect", "start", "HEAD", "HEAD~2")
        elif operation == "rebase":
            git(side, "rebase", "main", check=False)
        else:
            git(side, "checkout", "-q", "-b", "above")
            commit_file(side, "b", "b")
            git(side, "rebase", "--update-refs", "main", check=False)
        addition = Addition(target, git(top, "rev-parse", "old"), branch="old", source=top)
        assert self.refuse(opened(top), addition, trace, top) == "branch_checked_out"

    def test_a_branch_that_moved_or_is_missing(self, opened, top, target, trace):
        git(top, "branch", "old", "HEAD~1")
        addition = Addition(target, head_of(top), branch="old", source=top)
        assert self.refuse(opened(top), addition, trace, top) == "branch_moved"
        addition = Addition(target, head_of(top), branch="none", source=top)
        assert self.refuse(opened(top), addition, trace, top) == "branch_missing"

    @pytest.mark.parametrize("commit", ["f" * 40, "HEAD", "-x", ""])
    def test_what_is_no_commit(self, opened, top, target, trace, commit):
        addition = Addition(target, commit, new_branch="new", source=top)
        self.refuse(opened(top), addition, trace, top)
        self.refuse(opened(top), Addition(target, commit, source=top), trace, top)

    def test_where_a_locked_one_is_missing(self, opened, top, target, trace):
        git(top, "worktree", "add", "-q", "-b", "old", str(target))
        git(top, "worktree", "lock", "--reason", "on a stick", str(target))
        subprocess.run(["rm", "-rf", target], check=True)
        addition = Addition(target, head_of(top), new_branch="new", source=top)
        assert self.refuse(opened(top), addition, trace, top) == "locked"

    def test_a_source_in_another_repository(self, opened_by_git, top, target, trace, make_repository):
        addition = Addition(target, head_of(top), new_branch="new", source=make_repository("other"))
        assert self.refuse(opened_by_git(top), addition, trace, top) == "not_a_repository"

    def test_a_parent_that_cannot_be_made(self, opened, top, target, trace):
        target.parent.joinpath("file").write_text("")
        addition = Addition(target.parent / "file" / "new", head_of(top), new_branch="new", source=top)
        before = trace(top)
        with pytest.raises(ToolFailed) as caught:
            opened(top).add_worktree(addition)
        assert caught.value.reason == "io_failed"
        assert trace(top) == before


def test_by_eight_threads_on_one_repository(opened, top, tmp_path):
    repository, commit = opened(top), head_of(top)

    def add(number: int) -> str | None:
        repository.add_worktree(Addition(tmp_path / f"w{number}", commit, new_branch=f"b{number}", source=top))
        return repository.find_branch(f"b{number}")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(add, range(16))) == [commit] * 16
    assert len(repository.list_worktrees()) == 17
    assert all(w.prunable is None and w.head == commit for w in repository.list_worktrees())


ADD = """
import sys
from pathlib import Path
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Addition
top, folder, first = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + 3):
    repository = open_repository(top)
    commit = repository.find_commit("origin/main")
    repository.add_worktree(Addition(folder / f"w{number}", commit, new_branch=f"agent/{number}", source=top))
"""


def test_twenty_four_by_eight_processes_at_once(top, tmp_path):
    git(tmp_path, "clone", "-q", str(top), "clone")
    clone = tmp_path / "clone"
    config = (clone / ".git" / "config").read_bytes()
    environment = os.environ | {"PYTHONPATH": str(TOP)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ADD, clone, tmp_path / "all", str(first)], env=environment, stderr=subprocess.PIPE
        )
        for first in range(0, 24, 3)
    ]
    assert [process.communicate()[1].decode() for process in started] == [""] * 8
    assert (clone / ".git" / "config").read_bytes() == config
    assert git(clone, "worktree", "list").count("agent/") == 24
    for number in range(24):
        assert tree_of(tmp_path / "all" / f"w{number}") == tree_of(top)
        assert git(tmp_path / "all" / f"w{number}", "status", "--porcelain") == ""
