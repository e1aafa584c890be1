"""SIGKILL at every step of create and remove: the next command completes it or takes it back, whole."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from exeora_ws.app import App, open_app
from exeora_ws.cancellation import Cancellation
from exeora_ws.settings import find_places
from exeora_ws.workspaces import inventory_file

from support.killed import Forker
from support.repositories import RepositoryMaker, git


def facts(app: App, repository: Path) -> dict[str, object]:
    """Everything that must agree: registry, admin folders, branches, folders, the plain-text copy."""
    project = app.inventory.require_project("app")
    rows = {w.slug: w for w in app.inventory.list_workspaces(project) if not w.main}
    admins = repository / ".git/worktrees"
    root = Path(os.environ["XDG_DATA_HOME"]) / "exeora/workspaces/app"
    copied = inventory_file.read(str(find_places().inventory))
    assert copied is not None, "the plain-text copy is missing"
    assert sorted(w["slug"] for w in copied.list_workspaces(project.id) if w["slug"] != "main") == sorted(rows)
    for workspace in rows.values():
        assert app.inventory.find_fault(project, workspace) is None
        assert git(workspace.worktree, "status", "--porcelain") == ""
    return {
        "rows": sorted(rows),
        "admins": sorted(os.listdir(admins)) if admins.exists() else [],
        "folders": sorted(os.listdir(root)) if root.exists() else [],
        "branches": git(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads").split(),
        "unfinished": app.inventory.registry.list_unfinished(),
    }


ABSENT = {"rows": [], "admins": [], "folders": [], "branches": ["main"], "unfinished": []}
PRESENT = {"rows": ["x"], "admins": ["x"], "folders": ["x"], "branches": ["main", "x"], "unfinished": []}
KEPT = {"rows": [], "admins": [], "folders": [], "branches": ["main", "x"], "unfinished": []}


@pytest.fixture
def repository(make_repository: RepositoryMaker) -> Path:
    top = make_repository("app")
    open_app().inventory.register_project(top, exact=False)
    return top


def count_steps(run: Forker, tool: str, **arguments: object) -> int:
    printed = run(0, tool, **arguments)
    assert printed is not None
    assert "error" not in printed["outcome"], printed
    return int(printed["steps"])


@pytest.mark.parametrize("copying", [False, True])
def test_create_is_whole_or_not_there_at_every_step(repository: Path, run: Forker, copying: bool):
    steps = count_steps(run, "create_workspace", branch="x", copying=copying)
    assert steps > 20
    run(0, "remove_workspace", workspace="x", deleteBranch=True)
    seen = set()
    for fatal in range(1, steps + 1):
        run(fatal, "create_workspace", branch="x", copying=copying)
        now = facts(open_app(), repository)
        assert now in (ABSENT, PRESENT), f"step {fatal}: {now}"
        seen.add(str(now))
        if now == PRESENT:
            again = run(0, "create_workspace", branch="x")
            assert again is not None
            assert again["outcome"]["created"] is False
            run(0, "remove_workspace", workspace="x", deleteBranch=True)
    assert len(seen) == 2


def test_remove_is_whole_or_not_begun_at_every_step(repository: Path, run: Forker):
    run(0, "create_workspace", branch="x")
    steps = count_steps(run, "remove_workspace", workspace="x")
    assert steps > 15
    seen = set()
    for fatal in range(1, steps + 1):
        reuse = git(repository, "branch", "--list", "x") != ""
        made = run(0, "create_workspace", branch="x", **({"reuseExistingBranch": True} if reuse else {}))
        assert made is not None
        assert "error" not in made["outcome"], made
        run(fatal, "remove_workspace", workspace="x")
        now = facts(open_app(), repository)
        assert now in (KEPT, PRESENT), f"step {fatal}: {now}"
        seen.add(str(now))
        if now == PRESENT:
            run(0, "remove_workspace", workspace="x")
    assert len(seen) == 2


@pytest.mark.parametrize("committed", [False, True])
def test_work_in_a_workspace_whose_creation_was_cut_short_is_restorable(repository: Path, run: Forker, committed: bool):
    steps = count_steps(run, "create_workspace", branch="x")
    run(0, "remove_workspace", workspace="x", deleteBranch=True)
    top = Path(os.environ["XDG_DATA_HOME"]) / "exeora/workspaces/app/x"
    for fatal in range(steps, 0, -2):  # the last of them come after it is registered
        run(fatal, "create_workspace", branch="x")
        if (top / "README.md").exists() and (repository / ".git/worktrees/x/index").exists() and _is_cut_short():
            break
        run(0, "remove_workspace", workspace="x", deleteBranch=True)
    (top / "mine.txt").write_text("an hour of work\n")
    if committed:
        git(top, "add", "mine.txt")
        git(top, "commit", "-q", "-m", "work")
    app = open_app()
    assert facts(app, repository) == (KEPT if committed else ABSENT)
    project = app.inventory.require_project("app")
    back = app.upkeep.restore(project, "x", detach=False, cancellation=Cancellation())
    assert back.branch_made is not committed
    assert (top / "mine.txt").read_text() == "an hour of work\n"
    assert git(top, "branch", "--show-current") == "x"


def _is_cut_short() -> bool:
    database = find_places().database
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT count(*) FROM operations WHERE kind = 'create'").fetchone()[0] == 1
