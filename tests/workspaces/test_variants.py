"""create from a remote branch, a tag or commit, a request; with the source's changes; dry. adopt."""

import os
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError
from exeora_ws.workspaces.place import Place, Project
from exeora_ws.workspaces.upkeep import Made
from exeora_ws.workspaces.variants import ForgeRequest, parse_request

from support.repositories import commit_file, git
from support.trees import picture, repository_picture


@pytest.fixture
def main(app: App, project: Project) -> Place:
    return app.inventory.require_place(project, "main")


@pytest.fixture
def upstream(repository: Path, tmp_path: Path) -> Path:
    """A bare remote `origin` with branch x, a pull and a merge request, of which nothing but main is fetched."""
    bare = tmp_path / "forge" / "team" / "app.git"
    bare.parent.mkdir(parents=True)
    git(repository, "clone", "-q", "--bare", str(repository), str(bare))
    git(repository, "remote", "add", "origin", str(bare))
    git(repository, "fetch", "-q", "--no-write-fetch-head", "origin")
    git(repository, "branch", "-q", "--set-upstream-to=origin/main", "main")
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", str(bare), str(work))
    git(work, "switch", "-q", "-c", "x")
    commit_file(work, "x.txt", "x")
    git(work, "push", "-q", "origin", "x", "HEAD:refs/pull/7/head", "HEAD:refs/merge-requests/8/head")
    git(work, "switch", "-q", "main")
    commit_file(work, "later.txt", "later")
    git(work, "push", "-q", "origin", "main")
    return bare


def create(app: App, place: Place, what: str | None, *, with_changes: bool = False, **asked: object) -> Made:
    return app.upkeep.create(place, what, **asked, with_changes=with_changes, cancellation=Cancellation())


def refused(app: App, place: Place, what: str | None, *, with_changes: bool = False, **asked: object) -> str | None:
    root = place.project.root
    before, status = repository_picture(root), git(root, "status", "--porcelain=v2")
    with pytest.raises(ExeoraError) as caught:
        create(app, place, what, with_changes=with_changes, **asked)
    assert repository_picture(root) == before
    assert git(root, "status", "--porcelain=v2") == status
    assert app.inventory.registry.list_unfinished() == []
    return caught.value.reason


def test_a_remote_branch_becomes_a_local_one_with_itself_as_upstream(app: App, main: Place, upstream: Path):
    assert refused(app, main, "origin/x") == "unknown_ref"
    git(main.root, "fetch", "-q", "origin")
    assert refused(app, main, "origin/nothing/") == "invalid_branch"
    made = create(app, main, "origin/x")
    top = made.creation.workspace.path
    assert made.creation.workspace.branch == "x"
    assert made.creation.base.ref == "origin/x"
    assert made.behind == ("origin/x", 0)
    assert git(top, "rev-parse", "--abbrev-ref", "x@{upstream}") == "origin/x"
    assert (top / "x.txt").exists()
    assert refused(app, main, "origin/x") == "branch_exists"
    other = create(app, main, "y", base="origin/main")
    assert git(top, "config", "--get-regexp", r"branch\.y\.", check=False) == ""
    assert other.behind == ("origin/main", 0)


def test_how_far_the_base_is_behind_is_told_and_fetch_only_when_asked(app: App, main: Place, upstream: Path):
    assert create(app, main, "a").behind == ("origin/main", 0)
    assert create(app, main, "b", fetch=True).behind == ("origin/main", 1)


def test_detached_at_a_tag_needs_a_name(app: App, main: Place, repository: Path):
    git(repository, "tag", "-a", "v1", "-m", "v1", "HEAD~1")
    assert refused(app, main, "v1", detach=True) == "missing_name"
    assert refused(app, main, "v9", detach=True, slug="old") == "unknown_ref"
    assert refused(app, main, "v1", detach=True, reuse=True, slug="old") == "conflicting_fields"
    made = create(app, main, "v1", detach=True, slug="old")
    workspace = made.creation.workspace
    assert (workspace.slug, workspace.branch, workspace.name) == ("old", None, "old")
    assert git(workspace.path, "rev-parse", "HEAD") == git(repository, "rev-parse", "v1^{commit}")
    assert git(workspace.path, "symbolic-ref", "-q", "HEAD", check=False) == ""
    assert create(app, main, "v1", detach=True, name="Old one").creation.workspace.slug == "old-one"
    assert refused(app, main, "v1", detach=True, slug="old") == "slug_taken"


@pytest.mark.parametrize(("asked", "branch"), [("pr:7", "pr-7"), ("mr:8", "mr-8")])
def test_a_request_is_fetched_without_a_token(app: App, main: Place, upstream: Path, asked: str, branch: str):
    made = create(app, main, asked)
    workspace = made.creation.workspace
    assert workspace.branch == workspace.slug == branch
    assert (workspace.path / "x.txt").exists()
    assert git(workspace.path, "config", "--get-regexp", rf"branch\.{branch}\.", check=False) == ""
    assert not (main.root / ".git/FETCH_HEAD").exists()
    again = create(app, main, asked)
    assert again.creation.created is False


def test_a_request_by_address_needs_a_remote_there(app: App, main: Place, upstream: Path, repository: Path):
    address = "https://forge.example/Team/App/pull/7/files?diff=split"
    assert refused(app, main, address) == "unknown_remote"
    git(repository, "config", "url." + str(upstream.parents[1]) + "/.insteadOf", "https://forge.example/")
    git(repository, "remote", "add", "theirs", "https://forge.example/team/app.git")
    assert create(app, main, address).creation.workspace.branch == "pr-7"
    assert refused(app, main, "pr:99", remote="theirs") == "unknown_ref"
    assert refused(app, main, "pr:7", remote="nobody") == "unknown_remote"
    assert refused(app, main, "pr:7", base="main") == "conflicting_fields"


def test_an_unreachable_remote_is_said(app: App, main: Place, repository: Path):
    assert refused(app, main, "pr:7") == "unknown_remote"
    git(repository, "remote", "add", "origin", str(repository / "nowhere"))
    assert refused(app, main, "pr:7") == "remote_unreachable"
    assert refused(app, main, "z", fetch=True) == "remote_unreachable"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pr:12", ForgeRequest("pr", 12)),
        ("mr:3", ForgeRequest("mr", 3)),
        ("https://github.com/o/r/pull/5", ForgeRequest("pr", 5, "github.com", "o/r")),
        ("https://gitlab.com/a/b/c/-/merge_requests/9#note", ForgeRequest("mr", 9, "gitlab.com", "a/b/c")),
        ("https://codeberg.org/o/r/pulls/5/files", ForgeRequest("pr", 5, "codeberg.org", "o/r")),
        ("pr:0", None),
        ("pr:1x", None),
        ("feature/pr:1", None),
        ("https://github.com/o/r/issues/5", None),
    ],
)
def test_requests_are_read(text: str, found: ForgeRequest | None):
    assert parse_request(text) == found


def test_a_dry_run_does_nothing_but_says_it_all(app: App, main: Place, upstream: Path):
    before = repository_picture(main.root)
    made = create(app, main, "feature/a", dry_run=True)
    assert (made.creation.created, made.dry_run, made.creation.workspace.slug) == (False, True, "feature-a")
    assert made.creation.base.commit == git(main.root, "rev-parse", "HEAD")
    assert create(app, main, "pr:7", dry_run=True).creation.workspace.branch == "pr-7"
    assert repository_picture(main.root) == before
    assert not made.creation.workspace.path.exists()
    git(main.root, "branch", "there")
    assert refused(app, main, "there", dry_run=True) == "branch_exists"


def make_changes(top: Path) -> None:
    (top / "README.md").write_text("staged\n")
    git(top, "add", "README.md")
    (top / "README.md").write_text("staged and changed\n")
    git(top, "rm", "-q", "src/file-1.txt")
    (top / "src/file-0.txt").unlink()
    (top / "new dir").mkdir()
    (top / "new dir" / "ü.txt").write_text("untracked\n")
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    os.symlink("README.md", top / "link")
    (top / "added.bin").write_bytes(bytes(range(256)))
    git(top, "add", "added.bin")


def test_changes_move_whole_and_the_source_is_clean(app: App, main: Place):
    make_changes(main.root)
    status = git(main.root, "status", "--porcelain=v2", "--untracked-files=all")
    files = {n: f[:2] for n, f in picture(main.root).items() if not n.startswith(".git")}
    made = create(app, main, "x", with_changes=True)
    top = made.creation.workspace.path
    assert git(top, "status", "--porcelain=v2", "--untracked-files=all") == status
    assert {n: f[:2] for n, f in picture(top).items() if n != ".git"} == files
    assert made.moved is not None
    assert (made.moved.staged, made.moved.unstaged, made.moved.untracked, made.moved.source_kept) == (3, 2, 3, None)
    assert git(main.root, "status", "--porcelain") == ""
    assert not (main.root / "new dir").exists()
    assert git(main.root, "for-each-ref", "refs/exeora", "refs/stash") == ""
    assert [n for n in os.listdir(main.root / ".git") if "exeora" in n] == []


def test_changes_that_cannot_move_stay(app: App, main: Place, tmp_path: Path):
    assert refused(app, main, "x", with_changes=True) == "nothing_to_move"
    (main.root / "nested").mkdir()
    git(main.root / "nested", "init", "-q")
    commit_file(main.root / "nested", "a", "a")
    assert refused(app, main, "x", with_changes=True) == "nested_repository"
    (main.root / "nested").rename(tmp_path / "nested")
    make_changes(main.root)
    assert refused(app, main, "x", with_changes=True, base="HEAD~1") == "conflicting_fields"
    git(main.root, "branch", "x")
    assert refused(app, main, "x", with_changes=True) == "branch_exists"


def test_a_hook_that_spoils_the_arrival_takes_everything_back(app: App, main: Place):
    make_changes(main.root)
    hook = main.root / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nmkdir -p 'new dir' && echo other > 'new dir/ü.txt'\n")
    hook.chmod(0o755)
    assert refused(app, main, "x", with_changes=True) in ("git_failed", "changes_differ")
    assert git(main.root, "branch", "--list", "x") == ""
    assert git(main.root, "for-each-ref", "refs/exeora") == ""


def test_conflicts_and_half_done_operations_do_not_move(app: App, main: Place):
    git(main.root, "switch", "-q", "-c", "other")
    commit_file(main.root, "README.md", "theirs\n")
    git(main.root, "switch", "-q", "main")
    commit_file(main.root, "README.md", "ours\n")
    git(main.root, "merge", "other", check=False)
    assert refused(app, main, "x", with_changes=True) == "conflicted"
    git(main.root, "checkout", "-q", "--ours", "README.md")
    (main.root / "README.md").write_text("resolved\n")
    git(main.root, "add", "README.md")
    assert refused(app, main, "x", with_changes=True) == "operation_in_progress"


def test_adopt_connects_what_others_made_and_says_what_it_could_not(app: App, project: Project, tmp_path: Path):
    root = project.root
    git(root, "worktree", "add", "-q", "-b", "by-git", str(tmp_path / "by-git"))
    git(root, "worktree", "add", "-q", "-b", "worktree-bold-fox", str(root / ".claude/worktrees/bold-fox"))
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "bare head"))
    git(root, "worktree", "add", "-q", "-b", "gone", str(tmp_path / "gone"))
    (tmp_path / "gone").rename(tmp_path / "moved away")
    done = app.upkeep.adopt(project, cancellation=Cancellation())
    assert sorted(w.slug for w in done.connected) == ["bare-head", "by-git", "worktree-bold-fox"]
    assert [(s.path.name, s.reason) for s in done.skipped] == [("gone", "broken_worktree")]
    assert all(not w.managed for w in done.connected)
    again = app.upkeep.adopt(project, cancellation=Cancellation())
    assert (again.connected, len(again.skipped)) == ([], 1)
    around = app.inventory.find_around(root / ".claude/worktrees/bold-fox/src")
    assert around is not None
    assert around.workspace.slug == "worktree-bold-fox"
