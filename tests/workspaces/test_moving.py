"""create --with-changes that is cut short: the changes are never nowhere, and the next command completes the move."""

from collections.abc import Callable
from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.cancellation import Cancellation
from exeora_ws.workspaces import (
    moving,
    recover,  # noqa: F401  has the real function before it is replaced
)
from exeora_ws.workspaces.place import Project

from support.killed import Forker
from support.repositories import commit_file, git

STATUS = "M  README.md\n M a.txt\nA  staged.txt\n?? new.txt\n?? sub/"
MOVING = "refs/exeora/moving"


@pytest.fixture
def root(project: Project) -> Path:
    commit_file(project.root, "a.txt", "a\n")
    return project.root


def make_changes(root: Path) -> None:
    (root / "README.md").write_text("staged\n")
    (root / "staged.txt").write_text("new and staged\n")
    git(root, "add", "README.md", "staged.txt")
    (root / "a.txt").write_text("changed\n")
    (root / "new.txt").write_text("untracked\n")
    (root / "sub").mkdir(exist_ok=True)
    (root / "sub/deep.txt").write_text("untracked, deep\n")


def status(folder: Path) -> str:
    return git(folder, "status", "--porcelain")


def interrupt(app: App, project: Project, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a move end right before it clears its source; gives the new workspace's folder."""

    def end(*_: object) -> None:
        raise SystemExit

    make_changes(root)
    with monkeypatch.context() as patched:
        patched.setattr(moving, "complete_move", end)
        main = app.inventory.require_place(project, "main")
        with pytest.raises(SystemExit):
            app.upkeep.create(main, "x", with_changes=True, cancellation=Cancellation())
    return app.inventory.require_place(project, "x").root


def leave_half(root: Path) -> None:
    """What a `git reset --hard` that was cut short leaves, and half of the untracked files."""
    (root / "README.md").write_bytes(git(root, "show", "HEAD:README.md").encode() + b"\n")
    (root / "staged.txt").unlink()
    (root / "new.txt").unlink()


def leave_reset(root: Path) -> None:
    git(root, "reset", "-q", "--hard")


def test_it_is_whole_or_taken_back_whenever_it_is_killed(app: App, project: Project, run: Forker, root: Path):
    make_changes(root)
    assert status(root) == STATUS
    counted = run.upkeep(0, "create", place="main", what="x", with_changes=True)
    assert counted is not None
    assert counted["outcome"] == {}
    assert status(root) == ""
    seen = set()
    steps = counted["steps"]
    for fatal in (*range(1, steps - 60, 16), *range(steps - 60, steps, 4)):  # creating has a test of its own
        if "x" in {w.slug for w in app.inventory.list_workspaces(project)}:
            place = app.inventory.require_place(project, "x")
            app.inventory.remove(place, force=True, delete_branch=True, now=True, cancellation=Cancellation())
        make_changes(root)
        run.upkeep(fatal, "create", place="main", what="x", with_changes=True)
        pending = [operation.kind for operation in app.inventory.registry.list_unfinished()]
        now = open_app()
        workspaces = {w.slug: w for w in now.inventory.list_workspaces(project)}
        here, there = status(root), status(workspaces["x"].path) if "x" in workspaces else None
        assert (here, there) in ((STATUS, None), ("", STATUS)), f"step {fatal}"
        assert git(root, "for-each-ref", MOVING) == "", f"step {fatal}"
        assert now.inventory.registry.list_unfinished() == []
        seen |= {(kind, there is None) for kind in pending}
    assert seen == {("create", True), ("move", False)}


@pytest.mark.parametrize("so_far", [lambda root: None, leave_half, leave_reset], ids=["nothing", "half", "reset"])
def test_the_next_command_completes_it(
    app: App, project: Project, root: Path, monkeypatch: pytest.MonkeyPatch, so_far: Callable[[Path], None]
):
    target = interrupt(app, project, root, monkeypatch)
    so_far(root)
    open_app()
    assert (status(root), status(target)) == ("", STATUS)
    assert (target / "sub/deep.txt").read_text() == "untracked, deep\n"
    assert app.inventory.registry.list_unfinished() == []
    assert git(root, "for-each-ref", MOVING) == ""


def edit_source(root: Path, target: Path) -> None:
    (root / "a.txt").write_text("edited since\n")


def edit_source_untracked(root: Path, target: Path) -> None:
    (root / "new.txt").write_text("edited since\n")


def commit_in_source(root: Path, target: Path) -> None:
    git(root, "commit", "-q", "-m", "staged, committed since")


def edit_target(root: Path, target: Path) -> None:
    (target / "a.txt").write_text("edited there\n")


@pytest.mark.parametrize("edit", [edit_source, edit_source_untracked, commit_in_source, edit_target])
def test_what_was_edited_since_is_left_alone(
    app: App, project: Project, root: Path, monkeypatch: pytest.MonkeyPatch, edit: Callable[[Path, Path], None]
):
    target = interrupt(app, project, root, monkeypatch)
    edit(root, target)
    before = status(root), status(target), (root / "a.txt").read_bytes(), (root / "new.txt").read_bytes()
    open_app()
    assert (status(root), status(target), (root / "a.txt").read_bytes(), (root / "new.txt").read_bytes()) == before
    assert app.inventory.registry.list_unfinished() == []


def test_a_new_file_in_the_source_stays_there(app: App, project: Project, root: Path, monkeypatch: pytest.MonkeyPatch):
    interrupt(app, project, root, monkeypatch)
    (root / "later.txt").write_text("mine\n")
    open_app()
    assert status(root) == "?? later.txt"


def test_a_lock_of_gits_puts_it_off_and_blocks_nobody(
    app: App, project: Project, root: Path, monkeypatch: pytest.MonkeyPatch
):
    """As when git was killed too, in the middle of clearing."""
    target = interrupt(app, project, root, monkeypatch)
    (root / ".git/index.lock").touch()
    now = open_app()
    main = now.inventory.require_place(project, "main")
    assert now.upkeep.create(main, "y", cancellation=Cancellation()).creation.created
    assert [o.kind for o in now.inventory.registry.list_unfinished()] == ["move"]
    assert (status(root), status(target)) == (STATUS, STATUS)
    found = {f.problem.kind: f.status for f in now.upkeep.examine(project, fix=False, cancellation=Cancellation())}
    assert found["unfinished"] == "found"
    (root / ".git/index.lock").unlink()
    open_app()
    assert (status(root), status(target)) == ("", STATUS)


def test_a_workspace_that_was_renamed_or_removed_since(
    app: App, project: Project, root: Path, monkeypatch: pytest.MonkeyPatch
):
    interrupt(app, project, root, monkeypatch)
    (root / ".git/index.lock").touch()
    now = open_app()
    place = now.inventory.require_place(project, "x")
    now.upkeep.rename(place, "z", cancellation=Cancellation())
    now.inventory.remove(place, force=True, delete_branch=False, cancellation=Cancellation())
    (root / ".git/index.lock").unlink()
    open_app()
    assert status(root) == STATUS
    assert app.inventory.registry.list_unfinished() == []


def test_a_full_disk_is_told_and_tried_again(app: App, project: Project, root: Path, monkeypatch: pytest.MonkeyPatch):
    from exeora_ws.errors import ToolFailed
    from exeora_ws.git.engine import Engine

    def fail(self: Engine, *_: object) -> bool:
        raise ToolFailed("git: No space left on device", reason="disk_full")

    make_changes(root)
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "discard_changes", fail)
        main = app.inventory.require_place(project, "main")
        made = app.upkeep.create(main, "x", with_changes=True, cancellation=Cancellation())
    assert made.moved is not None
    assert made.moved.source_kept == "git: No space left on device; the next command tries again"
    open_app()
    assert (status(root), status(made.creation.workspace.path)) == ("", STATUS)


def test_an_edit_while_the_source_is_cleared_is_not_lost(app: App, project: Project, root: Path):
    """Git runs this hook after each look: two at the target, then the one at the source."""
    make_changes(root)
    hook = root / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"""#!/bin/sh
test "$1" = committed && grep -- -check | grep -qv " 0000000000" || exit 0
echo look >> {root}/.git/looks
test "$(wc -l < {root}/.git/looks)" = 3 && echo late >> {root}/a.txt
exit 0
"""
    )
    hook.chmod(0o755)
    main = app.inventory.require_place(project, "main")
    made = app.upkeep.create(main, "x", with_changes=True, cancellation=Cancellation())
    assert (root / "a.txt").read_text() == "changed\nlate\n"
    assert made.moved is not None
    assert made.moved.source_kept is not None
    assert (made.creation.workspace.path / "a.txt").read_text() == "changed\n"


def test_bytes_and_permissions_come_along_where_a_filter_would_make_others(app: App, project: Project, root: Path):
    commit_file(root, ".gitattributes", "*.nb filter=strip\n*.txt text\n")
    git(root, "config", "filter.strip.clean", "sed /OUTPUT/d")
    written = {"a.txt": b"one\r\ntwo\r\n", "n.nb": b"code\nOUTPUT 42\n"}
    for name, data in written.items():
        (root / name).write_bytes(data)
        (root / name).chmod(0o600)
    main = app.inventory.require_place(project, "main")
    made = app.upkeep.create(main, "x", with_changes=True, cancellation=Cancellation())
    top = made.creation.workspace.path
    assert {name: ((top / name).read_bytes(), (top / name).stat().st_mode & 0o777) for name in written} == {
        name: (data, 0o600) for name, data in written.items()
    }
    assert status(root) == ""
    assert not (root / "n.nb").exists()
