"""A selector that does not resolve is an error, never main; and what is registered is checked before it is used."""

import shutil
from pathlib import Path

import pytest
from exeora_ws.tools.catalog import CATALOG
from exeora_ws.tools.spec import Routing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.repositories import git
from support.trees import repository_picture

ROUTED = sorted(name for name, tool in CATALOG.items() if tool.routing is not Routing.NONE)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from(ROUTED),
    selector=st.text(max_size=40) | st.sampled_from(["Main", "MAIN", " main", "main ", "@", "-", ".", "..", "/"]),
)
def test_no_unknown_selector_ever_acts_in_main(call, repository: Path, tool: str, selector: str):
    if selector == "main":
        return
    before = repository_picture(repository)
    outcome = call(tool, workspace=selector)
    assert outcome.error is not None
    assert outcome.error.code == "UNKNOWN_WORKSPACE"
    assert repository_picture(repository) == before


@pytest.mark.parametrize("selector", [None, 1, True, ["main"], {"slug": "main"}])
def test_a_selector_of_the_wrong_type_is_refused(refusal, selector):
    for tool in ROUTED:
        error = refusal(tool, workspace=selector)
        assert (error["code"], error["reason"]) == ("INVALID_ARGUMENTS", "wrong_value")


def test_the_selector_is_resolved_before_the_arguments_are_looked_at(refusal):
    assert refusal("create_workspace", workspace="nope", nonsense=1)["code"] == "UNKNOWN_WORKSPACE"


def spoil_gone(top: Path, repository: Path) -> None:
    shutil.rmtree(top)


def spoil_unlinked(top: Path, repository: Path) -> None:
    (top / ".git").unlink()


def spoil_moved_link(top: Path, repository: Path) -> None:
    (top / ".git").write_text("gitdir: /nowhere/at/all\n")


def spoil_pruned(top: Path, repository: Path) -> None:
    shutil.rmtree(repository / ".git/worktrees" / top.name)


def spoil_foreign(top: Path, repository: Path) -> None:
    shutil.rmtree(top)
    top.mkdir()
    git(top, "init", "-q")


def spoil_swapped(top: Path, repository: Path) -> None:
    other = top.with_name("other")
    git(repository, "worktree", "add", "-q", "-b", "other", str(other))
    shutil.rmtree(top)
    top.symlink_to(other)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoil_gone, "missing"),
        (spoil_unlinked, "not_a_worktree"),
        (spoil_moved_link, "broken_link"),
        (spoil_pruned, "broken_link"),
        (spoil_foreign, "other_repository"),
        (spoil_swapped, "broken_link"),
    ],
)
def test_a_workspace_that_is_not_what_was_registered_is_unavailable(result, refusal, repository: Path, spoil, reason):
    top = Path(result("create_workspace", branch="x")["workspace"]["path"])
    spoil(top, repository)
    before = repository_picture(repository)
    error = refusal("create_workspace", branch="y", workspace="x")
    assert (error["code"], error["reason"]) == ("WORKSPACE_UNAVAILABLE", reason)
    assert repository_picture(repository) == before
    assert {w["slug"]: w["available"] for w in result("list_workspaces")["workspaces"]} == {"main": True, "x": False}


def test_main_that_lost_its_git_folder_is_unavailable(refusal, repository: Path):
    (repository / ".git").rename(repository / "moved")
    assert refusal("create_workspace", branch="y")["code"] == "WORKSPACE_UNAVAILABLE"


def test_a_nested_worktree_that_lost_its_link_is_not_its_parent(result, refusal, repository: Path, tmp_path: Path):
    nested = repository / "nested"
    git(repository, "worktree", "add", "-q", "-b", "nested", str(nested))
    result("attach_workspace", branch="nested")
    (nested / ".git").unlink()
    before = repository_picture(repository)
    error = refusal("create_workspace", branch="y", workspace="nested")
    assert error["code"] == "WORKSPACE_UNAVAILABLE"
    assert repository_picture(repository) == before


def test_the_folder_around_is_found_and_nothing_else(app, result, repository: Path, project, make_repository):
    top = Path(result("create_workspace", branch="x")["workspace"]["path"])
    stranger = repository / ".claude/worktrees/stranger"
    git(repository, "worktree", "add", "-q", "-b", "stranger", str(stranger))
    clone = repository / "vendor"
    shutil.copytree(make_repository("vendor"), clone)

    def around(folder: Path) -> str | None:
        place = app.inventory.find_around(folder)
        return place.workspace.slug if place else None

    assert around(repository) == "main"
    assert around(repository / "src") == "main"
    assert around(top / "src") == "x"
    assert around(stranger) is None
    assert around(clone) is None
    assert around(repository.parent) is None


def test_an_account_must_say_which_project(app, project, make_repository):
    from exeora_ws.tools.call import Caller, Face, RawCall, Scope

    def ask(tool: str, scope: Scope, **arguments: object) -> dict:
        return app.calls.make(RawCall(tool, arguments), Caller(Face.HTTP, "t", "s", scope)).to_dict()

    everything = Scope()
    assert ask("list_workspaces", everything)["workspaces"][0]["slug"] == "main"
    other = app.inventory.register_project(make_repository("other"), exact=False)[0]
    assert ask("list_workspaces", everything)["error"]["code"] == "INVALID_ARGUMENTS"
    assert ask("list_workspaces", everything, project=other.slug)["workspaces"][0]["path"] == str(other.root)
    granted = Scope(granted=frozenset({project.id}))
    assert [p["slug"] for p in ask("list_projects", granted)["projects"]] == ["app"]
    for selector in ("other", other.id, "absent"):
        unknown = ask("list_workspaces", granted, project=selector)["error"]
        assert unknown["code"] == "UNKNOWN_PROJECT"
        assert unknown["message"] == f"there is no project {selector!r}"
    bound = Scope(bound=project.id)
    assert ask("create_workspace", bound, project="other", branch="b")["error"]["reason"] == "unknown_field"
