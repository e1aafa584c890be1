import os
import shutil
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.git.port import Head

from support.repositories import commit_file, git


def test_head_on_a_branch_detached_and_unborn(opened, make_repository, tmp_path):
    top = make_repository(commits=2)
    commit = git(top, "rev-parse", "HEAD")
    assert opened(top).head() == Head("main", commit)
    git(top, "checkout", "-q", "--detach", "HEAD~1")
    assert opened(top).head() == Head(None, git(top, "rev-parse", "HEAD"))
    (tmp_path / "fresh").mkdir()
    git(tmp_path / "fresh", "init", "-q", "-b", "trunk")
    assert opened(tmp_path / "fresh").head() == Head("trunk", None)


def test_head_of_a_linked_worktree_is_its_own(opened, make_repository, tmp_path):
    top = make_repository()
    git(top, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    commit = commit_file(tmp_path / "linked", "a", "b")
    assert opened(tmp_path / "linked").head() == Head("side", commit)
    assert opened(top).head().branch == "main"


def test_head_of_a_bare_repository(opened, make_repository, tmp_path):
    top = make_repository()
    git(tmp_path, "clone", "-q", "--bare", str(top), "app.git")
    repository = opened(tmp_path / "app.git")
    assert repository.head() == Head("main", git(top, "rev-parse", "HEAD"))
    assert repository.bare
    assert repository.checkout is None
    with pytest.raises(ToolFailed) as caught:
        repository.status()
    assert caught.value.reason == "bare"


def test_commits_by_every_kind_of_name(opened, make_repository):
    top = make_repository(commits=3)
    first, second, third = git(top, "rev-list", "--reverse", "HEAD").split()
    git(top, "tag", "-a", "v1", "-m", "one", first)
    git(top, "tag", "light", second)
    git(top, "branch", "feature/x", second)
    git(top, "update-ref", "refs/remotes/origin/main", first)
    repository = opened(top)
    names = {"HEAD": third, "main": third, "v1": first, "light": second, "feature/x": second, "HEAD~2": first,
             "origin/main": first, "refs/heads/main": third, third: third, third[:10]: third, "main^": second,
             "main@{0}": third, "refs/tags/v1": first, ":/commit 1": second, "main^{commit}": third}  # fmt: skip
    assert {name: repository.find_commit(name) for name in names} == names


@pytest.mark.parametrize(
    "spec",
    ["", "nope", "-h", "--all", "--help", "^HEAD", "HEAD..HEAD", "HEAD...HEAD", "main:README.md", "HEAD^{tree}",
     "f" * 40, "a\0b", "@{-5}", "HEAD\n", "\n", "main@{upstream}", "HEAD^@", "HEAD^!", "*", "refs/heads/*", "\udcff"],
)  # fmt: skip
def test_what_is_no_commit_is_none(opened, make_repository, spec):
    assert opened(make_repository(commits=2)).find_commit(spec) is None


def test_a_spec_is_never_an_option(opened, make_repository, tmp_path):
    top = make_repository()
    assert opened(top).find_commit(f"--output={tmp_path}/written") is None
    assert not (tmp_path / "written").exists()


def test_branches(opened, make_repository):
    top = make_repository(commits=2)
    for name in ("feature/x", "Feature", "日本語", "é"):
        git(top, "branch", name, "HEAD~1")
    git(top, "pack-refs", "--all")
    git(top, "branch", "loose")
    git(top, "update-ref", "refs/remotes/origin/other", "HEAD")
    repository = opened(top)
    assert repository.list_branches() == sorted(["Feature", "feature/x", "loose", "main", "é", "日本語"])
    assert repository.find_branch("feature/x") == git(top, "rev-parse", "HEAD~1")
    assert repository.find_branch("loose") == repository.find_branch("main") == git(top, "rev-parse", "HEAD")
    for name in ("origin/other", "heads/main", "refs/heads/main", "HEAD", "feature", "-h", "", "main^", "*"):
        assert repository.find_branch(name) is None


def test_a_branch_whose_name_is_not_utf8(opened, make_repository):
    top = make_repository()
    name = "caf\udce9"
    commit = git(top, "rev-parse", "HEAD")
    (top / ".git" / "refs" / "heads" / name).write_text(commit + "\n")
    assert opened(top).list_branches() == sorted([name, "main"])


def test_the_upstream_of_a_branch(opened, make_repository, tmp_path):
    git(tmp_path, "clone", "-q", str(make_repository(commits=2)), "clone")
    top = tmp_path / "clone"
    commit_file(top, "mine", "x")
    git(top, "branch", "--no-track", "alone")
    git(top, "branch", "local", "HEAD~1")
    git(top, "branch", "--set-upstream-to=local", "alone")
    git(top, "branch", "none")
    git(top, "branch", "gone", "--track", "origin/main")
    git(top, "config", "branch.gone.merge", "refs/heads/deleted")
    repository = opened(top)
    assert repository.find_upstream("main") == git(top, "rev-parse", "origin/main")
    assert repository.find_upstream("alone") == git(top, "rev-parse", "local")
    assert [repository.find_upstream(name) for name in ("none", "gone", "missing", "-h", "@", "")] == [None] * 6


def test_ancestry(opened, make_repository):
    top = make_repository(commits=3)
    first, second, third = git(top, "rev-list", "--reverse", "HEAD").split()
    git(top, "checkout", "-q", "-b", "side", second)
    side = commit_file(top, "side", "x")
    git(top, "checkout", "-q", "--orphan", "apart")
    apart = commit_file(top, "apart", "x")
    repository = opened(top)
    assert repository.is_ancestor(first, third)
    assert repository.is_ancestor(third, third)
    assert not repository.is_ancestor(third, first)
    assert not repository.is_ancestor(side, third)
    assert not repository.is_ancestor(apart, third)
    assert repository.count_ahead_behind(side, third) == (1, 1)
    assert repository.count_ahead_behind(first, third) == (0, 2)
    assert repository.count_ahead_behind(third, third) == (0, 0)
    assert repository.count_ahead_behind(apart, third) == (1, 3)


@pytest.mark.parametrize("wrong", ["f" * 40, "main", "-h", "", "HEAD"])
def test_ancestry_of_what_is_no_commit(opened, make_repository, wrong):
    repository = opened(make_repository())
    head = repository.head().commit
    for ask in (repository.is_ancestor, repository.count_ahead_behind):
        with pytest.raises(ToolFailed):
            ask(wrong, head)
        with pytest.raises(ToolFailed):
            ask(head, wrong)


def test_reads_run_no_program_that_the_repository_names(opened, make_repository, tmp_path):
    top = make_repository(commits=2)
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/ran\ncat\n")
    script.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
        shutil.copy2(script, hooks / name)
    for key, value in {
        "core.fsmonitor": str(script), "core.hooksPath": str(hooks), "diff.external": str(script),
        "core.pager": str(script), "diff.evil.textconv": str(script), "core.sshCommand": str(script),
        "pager.status": "true", "alias.status": f"!{script}", "core.editor": str(script),
    }.items():  # fmt: skip
        git(top, "config", key, value)
    (tmp_path / "ran").unlink(missing_ok=True)
    (top / ".git" / "info" / "attributes").write_text("*.md diff=evil\n")
    (top / "README.md").write_text("changed")
    repository = opened(top)
    repository.list_worktrees()
    repository.find_commit("HEAD~1")
    repository.list_branches()
    repository.count_ahead_behind(repository.head().commit, repository.find_commit("HEAD~1"))
    if "libgit2" not in type(repository).__module__ or repository._git is not None:
        repository.status(ignored=True)
    assert not (tmp_path / "ran").exists()


def test_reads_write_nothing(opened, make_repository):
    top = make_repository()
    os.utime(top / "README.md", (1, 1))
    before = {p: p.stat().st_mtime_ns for p in (top / ".git").rglob("*")}
    repository = opened(top)
    repository.status(ignored=True)
    repository.list_worktrees()
    repository.find_upstream("main")
    assert {p: p.stat().st_mtime_ns for p in (top / ".git").rglob("*")} == before
    assert Path(top / ".git" / "index.lock").exists() is False
