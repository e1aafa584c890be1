"""What state workspaces are in, and which are done with."""

import shutil
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.cancellation import Cancellation
from exeora_ws.git.port import Repository
from exeora_ws.workspaces.overview import Distance
from exeora_ws.workspaces.place import Project
from exeora_ws.workspaces.prune import Verdict

from support.repositories import commit_file, git
from support.trees import repository_picture


@pytest.fixture
def make(result):
    def create(branch: str, **more: object) -> Path:
        return Path(result("create_workspace", branch=branch, **more)["workspace"]["path"])

    return create


def prune(
    app: App, project: Project, *, merged: bool = True, missing: bool = False, age: float = 0, dry_run: bool = False
) -> dict[str, Verdict]:
    found = app.upkeep.prune(
        project,
        merged=merged,
        missing=missing,
        least_age=age,
        dry_run=dry_run,
        keep_branches=False,
        cancellation=Cancellation(),
    )
    return {v.workspace.slug: v for v in found}


def test_the_state_of_every_workspace(app: App, project: Project, make, result, tmp_path: Path):
    top = make("x")
    (top / "README.md").write_text("staged")
    git(top, "add", "README.md")
    (top / "src/file-0.txt").write_text("modified")
    (top / "new").write_text("")
    git(top, "commit", "-q", "-m", "one", "README.md")
    commit_file(project.root, "later.txt", "later")
    gone = make("gone")
    git(project.root, "worktree", "lock", "--reason", "stick", str(gone))
    shutil.rmtree(gone)
    git(project.root, "branch", "-q", "--set-upstream-to=main", "x")
    seen = {o.workspace.slug: o for o in app.upkeep.look_at_all(project)}
    x = seen["x"]
    assert x.changes is not None
    assert (x.changes.staged, x.changes.unstaged, x.changes.untracked) == ((), ("src/file-0.txt",), ("new",))
    assert x.base == Distance("main", 1, 1)
    assert x.upstream is None
    assert x.committed_at == int(git(top, "log", "-1", "--format=%ct"))
    assert (seen["gone"].fault, seen["gone"].locked, seen["gone"].changes) == ("missing", "stick", None)
    assert (seen["main"].base, seen["main"].fault) == (None, None)
    started = result("start_command", workspace="x", command="sleep 60")
    assert {o.workspace.slug: o.processes for o in app.upkeep.look_at_all(project)}["x"] == 1
    result("kill_command", workspace="x", processId=started["processId"])


def test_an_unreadable_one_does_not_spoil_the_others(app: App, project: Project, make):
    top = make("x")
    make("y")
    index = project.root / ".git/worktrees/x/index"
    index.write_bytes(b"rubbish")
    seen = {o.workspace.slug: o for o in app.upkeep.look_at_all(project)}
    assert seen["x"].problem is not None
    assert str(top) not in seen["x"].problem
    assert seen["y"].changes is not None


def test_a_new_branch_is_not_merged_and_neither_is_one_that_main_left_behind(app: App, project: Project, make):
    make("fresh")
    make("behind")
    commit_file(project.root, "more.txt", "more")
    before = repository_picture(project.root)
    assert {s: v.kept for s, v in prune(app, project).items()} == {"fresh": "no_commits", "behind": "no_commits"}
    assert repository_picture(project.root) == before


def merge_each_way(project: Project, make) -> None:
    root = project.root
    for name in ("ff", "merged", "squashed", "edited", "picked", "reverted", "open"):
        top = make(name)
        commit_file(top, f"{name}.txt", "one\n")
        commit_file(top, f"{name}.txt", "one\ntwo\n")
    git(root, "merge", "-q", "--ff-only", "ff")
    git(root, "merge", "-q", "--no-ff", "-m", "m", "merged")
    for name in ("squashed", "edited"):
        git(root, "merge", "-q", "--squash", name)
        git(root, "commit", "-q", "-m", f"{name} (#1)")
    commit_file(root, "edited.txt", "edited again, all of it\n")
    git(root, "cherry-pick", "picked~1", "picked")
    top = Path(git(root, "worktree", "list", "--porcelain").split("worktree ")[-1].splitlines()[0]).parent / "reverted"
    git(top, "revert", "--no-edit", "HEAD", "HEAD~1")


def test_every_way_of_merging_is_seen(app: App, project: Project, make):
    merge_each_way(project, make)
    verdicts = prune(app, project, dry_run=True)
    assert {s: (v.kept, v.evidence) for s, v in verdicts.items()} == {
        "ff": (None, "ancestor"),
        "merged": (None, "ancestor"),
        "squashed": (None, "adds_nothing"),
        "edited": (None, "squashed"),
        "picked": (None, "adds_nothing"),
        "reverted": (None, "no_difference"),
        "open": ("not_merged", None),
    }
    assert {v.into for s, v in verdicts.items() if s != "open"} == {"main"}


def test_pruned_ones_go_with_their_branches_and_can_come_back(app: App, project: Project, make):
    merge_each_way(project, make)
    head = git(project.root, "rev-parse", "edited")
    verdicts = prune(app, project)
    assert [s for s, v in verdicts.items() if v.kept is None] == [
        "edited",
        "ff",
        "merged",
        "picked",
        "reverted",
        "squashed",
    ]
    assert all(v.branch is not None and v.branch.deleted for v in verdicts.values() if v.kept is None)
    assert git(project.root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split() == ["main", "open"]
    assert app.upkeep.restore(project, "edited", detach=False, cancellation=Cancellation()).branch_made
    assert git(project.root, "rev-parse", "edited") == head


def test_a_merge_on_the_forge_is_seen_in_the_remote_branch(app: App, project: Project, make, tmp_path: Path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(project.root), str(bare))
    git(project.root, "remote", "add", "origin", str(bare))
    git(project.root, "fetch", "-q", "origin")
    git(project.root, "branch", "-q", "--set-upstream-to=origin/main", "main")
    top = make("x")
    commit_file(top, "x.txt", "x")
    git(top, "push", "-q", "origin", "x:main")
    git(top, "fetch", "-q", "origin")
    verdict = prune(app, project, dry_run=True)["x"]
    assert (verdict.kept, verdict.evidence, verdict.into) == (None, "same_commit", "origin/main")


def test_what_would_lose_something_is_kept_with_the_reason(app: App, project: Project, make, result, tmp_path: Path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(project.root), str(bare))
    git(project.root, "remote", "add", "origin", str(bare))
    for name in ("dirty", "locked", "running", "unpushed", "rebasing", "detached", "young"):
        top = make(name)
        commit_file(top, f"{name}.txt", name)
        if name == "unpushed":
            git(top, "push", "-q", "-u", "origin", name)
            commit_file(top, f"{name}.txt", "more")
        git(project.root, "merge", "-q", "--no-ff", "-m", "m", name)
    tops = {w.slug: w.path for w in app.inventory.list_workspaces(project)}
    (tops["dirty"] / "new").write_text("")
    git(project.root, "worktree", "lock", "--reason", "mine", str(tops["locked"]))
    git(tops["rebasing"], "-c", "sequence.editor=echo break >", "rebase", "-q", "-i", "HEAD~1", check=False)
    git(tops["detached"], "switch", "-q", "--detach")
    started = result("start_command", workspace="running", command="sleep 60")
    with app.inventory.registry.database.write() as connection:
        connection.execute("UPDATE workspaces SET created_at = created_at - 100 WHERE slug != 'young'")
    verdicts = prune(app, project, age=50)
    assert {s: v.kept for s, v in verdicts.items()} == {
        "dirty": "dirty",
        "locked": "locked",
        "running": "running",
        "unpushed": "unpushed",
        "rebasing": "operation_in_progress",
        "detached": "detached_head",
        "young": "too_young",
    }
    assert verdicts["locked"].detail == "mine"
    assert all(path.exists() for path in tops.values())
    result("kill_command", workspace="running", processId=started["processId"])


def test_missing_ones_go_only_when_asked(app: App, project: Project, make):
    shutil.rmtree(make("gone"))
    assert prune(app, project)["gone"].kept == "missing"
    assert prune(app, project, merged=False, missing=True)["gone"].kept is None
    assert [w.slug for w in app.inventory.list_workspaces(project)] == ["main"]
    assert git(project.root, "branch", "--list", "gone") != ""
    assert git(project.root, "worktree", "list").count("\n") == 0


def test_a_branch_that_moved_after_the_verdict_is_not_forced(
    app: App, project: Project, make, monkeypatch: pytest.MonkeyPatch
):
    top = make("x")
    commit_file(top, "x.txt", "x")
    git(project.root, "merge", "-q", "--squash", "x")
    git(project.root, "commit", "-q", "-m", "x")
    found = app.inventory.remove

    def late(*arguments: object, **named: object):
        commit_file(top, "late.txt", "late")
        return found(*arguments, **named)

    monkeypatch.setattr(app.inventory, "remove", late)
    verdict = prune(app, project)["x"]
    assert verdict.branch is not None
    assert (verdict.branch.deleted, verdict.branch.reason) == (False, "unmerged")


def test_evidence_agrees_between_engines(app: App, project: Project, make):
    from exeora_ws.git.executable import ExecutableRepository
    from exeora_ws.git.libgit2 import Libgit2Repository
    from exeora_ws.git.opening import require_checkout

    merge_each_way(project, make)
    place = require_checkout(project.root)
    plain = ExecutableRepository(place)
    both: list[Repository] = [plain, Libgit2Repository(place, plain)]
    heads = [plain.find_branch(b) for b in plain.list_branches()]
    main = plain.find_branch("main")
    assert main is not None
    for head in heads:
        assert head is not None
        assert both[0].find_merge_evidence(head, main) == both[1].find_merge_evidence(head, main)
        assert both[0].read_commit_time(head) == both[1].read_commit_time(head)
