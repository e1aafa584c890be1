"""merge into the base without a trace of what fails; diff against it."""

from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError
from exeora_ws.workspaces import merge as merging
from exeora_ws.workspaces import recover  # noqa: F401  has the real functions before one of them is replaced
from exeora_ws.workspaces.merge import Merging
from exeora_ws.workspaces.place import Project

from support.killed import Forker
from support.repositories import commit_file, git
from support.trees import picture, repository_picture


@pytest.fixture
def top(result) -> Path:
    made = Path(result("create_workspace", branch="x")["workspace"]["path"])
    commit_file(made, "a.txt", "a\n", "add a")
    commit_file(made, "b.txt", "b\n", "add b")
    return made


def merge(
    app: App, project: Project, how: str = "ff", *, into: str | None = None, message: str | None = None
) -> Merging:
    place = app.inventory.require_place(project, "x")
    return app.upkeep.merge(place, into=into, how=how, message=message, cancellation=Cancellation())


def refused(app: App, project: Project, how: str = "ff", *, into: str | None = None) -> ExeoraError:
    top = app.inventory.require_place(project, "x").workspace.worktree
    before = repository_picture(project.root), picture(top), git(top, "reflog"), git(project.root, "status", "-s")
    with pytest.raises(ExeoraError) as caught:
        merge(app, project, how, into=into)
    assert (
        repository_picture(project.root),
        picture(top),
        git(top, "reflog"),
        git(project.root, "status", "-s"),
    ) == before
    return caught.value


def test_forward_moves_main_and_its_files(app: App, project: Project, top: Path):
    (project.root / "mine").write_text("untracked stays")
    done = merge(app, project)
    assert (done.into, done.commits, done.rebased) == ("main", 2, None)
    assert git(project.root, "rev-parse", "main") == git(top, "rev-parse", "x") == done.after
    assert (project.root / "b.txt").read_text() == "b\n"
    assert git(project.root, "status", "--porcelain") == "?? mine"
    assert refused(app, project).reason == "nothing_to_merge"


def test_parted_histories_need_a_word(app: App, project: Project, top: Path):
    commit_file(project.root, "main.txt", "main")
    assert refused(app, project).reason == "not_fast_forward"
    assert refused(app, project, "octopus").reason == "invalid_how"


def test_squash_makes_one_commit(app: App, project: Project, top: Path):
    before = commit_file(project.root, "main.txt", "main")
    head = git(top, "rev-parse", "HEAD")
    done = merge(app, project, "squash")
    assert git(project.root, "rev-parse", "main^") == before
    assert git(project.root, "log", "-1", "--format=%an %B") == "Ada Test Squash x\n\n* add a\n* add b\n"
    assert sorted(git(project.root, "show", "--name-only", "--format=", done.after).split()) == ["a.txt", "b.txt"]
    assert git(project.root, "status", "--porcelain") == ""
    assert git(top, "rev-parse", "x") == head


def test_rebase_keeps_authors_and_moves_both(app: App, project: Project, top: Path):
    git(
        top,
        "commit",
        "-q",
        "--amend",
        "--no-edit",
        "--author",
        "Zoë Ö <z@example.invalid>",
        "--date",
        "2020-01-02T03:04:05+0230",
    )
    commit_file(project.root, "a.txt", "a\n", "the same a")
    before = commit_file(project.root, "main.txt", "main")
    (top / "ignored").touch()
    (project.root / ".git/info/exclude").write_text("ignored\n")
    done = merge(app, project, "rebase")
    assert done.rebased == done.after == git(top, "rev-parse", "x")
    assert git(project.root, "log", "--format=%s", f"{before}..main") == "add b"
    assert git(project.root, "log", "-1", "--format=%an %aI") == "Zoë Ö 2020-01-02T03:04:05+02:30"
    assert (top / "main.txt").exists()
    assert (top / "ignored").exists()
    assert git(top, "status", "--porcelain") == git(project.root, "status", "--porcelain") == ""


@pytest.mark.parametrize("how", ["squash", "rebase"])
def test_conflicts_leave_no_trace(app: App, project: Project, top: Path, how: str):
    commit_file(project.root, "b.txt", "other\n")
    error = refused(app, project, how)
    assert (error.reason, error.data) == ("conflicts", {"files": ["b.txt"], "total": 1})


def test_what_stands_in_the_way_is_refused(app: App, project: Project, top: Path):
    (top / "new").touch()
    assert refused(app, project).reason == "dirty"
    (top / "new").unlink()
    (project.root / "b.txt").write_text("mine, untracked")
    assert refused(app, project).reason == "would_overwrite"
    assert refused(app, project, into="v9").reason == "not_a_branch"
    git(top, "switch", "-q", "--detach")
    assert refused(app, project).reason == "detached_head"


def test_a_base_that_nobody_has_checked_out(app: App, project: Project, top: Path):
    git(project.root, "branch", "release")
    done = merge(app, project, "squash", into="release", message="all of x\n")
    assert git(project.root, "log", "-1", "--format=%s", "release") == "all of x"
    assert git(project.root, "rev-parse", "release^") == done.before == git(project.root, "rev-parse", "main")


def test_merges_among_its_commits_are_not_rebased(app: App, project: Project, top: Path):
    commit_file(project.root, "main.txt", "main")
    git(top, "merge", "-q", "--no-edit", "main")
    commit_file(project.root, "main.txt", "more")
    assert refused(app, project, "rebase").reason == "has_merges"
    merge(app, project, "squash")


def test_the_difference_is_against_the_base_and_holds_everything(app: App, project: Project, top: Path):
    commit_file(project.root, "README.md", "changed on main\n")
    (top / "a.txt").write_text("changed\n")
    (top / "src/file-0.txt").unlink()
    (top / "new.txt").write_text("")
    git(project.root, "config", "diff.external", "touch /tmp/never")
    place = app.inventory.require_place(project, "x")
    ref, found = app.upkeep.load_difference(place, None, stat=False)
    text = found.text.decode()
    assert ref == "main"
    assert found.untracked == ("new.txt",)
    assert "+changed\n" in text
    assert "+b\n" in text
    assert "src/file-0.txt" in text
    assert "README.md" not in text
    assert "a.txt" in app.upkeep.load_difference(place, "HEAD", stat=True)[1].text.decode()
    assert "b.txt" not in app.upkeep.load_difference(place, "HEAD", stat=True)[1].text.decode()
    with pytest.raises(ExeoraError) as caught:
        app.upkeep.load_difference(place, "nowhere", stat=True)
    assert caught.value.reason == "unknown_ref"


def test_a_rebase_is_whole_or_not_begun_whenever_it_is_killed(app: App, project: Project, run: Forker, top: Path):
    base = commit_file(project.root, "main.txt", "main")
    head = git(top, "rev-parse", "x")
    asked = {"place": "x", "into": None, "how": "rebase", "message": None}
    counted = run.upkeep(0, "merge", **asked)
    assert counted is not None
    assert counted["outcome"] == {}
    seen = set()
    for fatal in range(1, counted["steps"] + 1, 2):
        git(project.root, "reset", "-q", "--keep", base)
        git(top, "reset", "-q", "--keep", head)
        run.upkeep(fatal, "merge", **asked)
        pending = len(app.inventory.registry.list_unfinished())
        assert open_app().inventory.registry.list_unfinished() == []
        both = git(project.root, "rev-parse", "main"), git(top, "rev-parse", "x")
        assert both == (base, head) or both[0] == both[1] != base, f"step {fatal}: {both}"
        assert git(project.root, "status", "--porcelain") == git(top, "status", "--porcelain") == ""
        seen.add((pending, both == (base, head)))
    assert seen == {(0, True), (1, True), (1, False), (0, False)}


def test_a_branch_that_moved_meanwhile_stays_and_that_is_said(
    app: App, project: Project, top: Path, monkeypatch: pytest.MonkeyPatch
):
    commit_file(project.root, "main.txt", "main")
    move_base = merging._move_base

    def move(*given: object) -> None:
        move_base(*given)
        commit_file(top, "late.txt", "late", "too late")

    monkeypatch.setattr(merging, "_move_base", move)
    done = merge(app, project, "rebase")
    assert (done.kept, done.rebased) == ("'x' has moved", None)
    assert git(project.root, "rev-parse", "main") == done.after
    assert git(top, "log", "-1", "--format=%s") == "too late"
    assert app.inventory.registry.list_unfinished() == []


def test_a_git_at_work_on_the_base_puts_the_rest_of_a_rebase_off(
    app: App, project: Project, top: Path, monkeypatch: pytest.MonkeyPatch
):
    base = commit_file(project.root, "main.txt", "main")

    def end(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(merging, "_move_base", end)
        patched.setattr(merging, "complete_merge", end)
        with pytest.raises(SystemExit):
            merge(app, project, "rebase")
    (project.root / ".git/index.lock").touch()
    assert [o.kind for o in open_app().inventory.registry.list_unfinished()] == ["merge"]
    (project.root / ".git/index.lock").unlink()
    assert open_app().inventory.registry.list_unfinished() == []
    assert git(project.root, "rev-parse", "main") == base
