"""What people do beside the tools is judged by the same policy as the tools, and has a row in the same record."""

import json
from pathlib import Path

import pytest

from support.commandline import COMMAND, CommandLine, child_environment
from support.repositories import commit_file, git
from support.screen import Screen
from support.trees import repository_picture

CHANGES = {
    "create_workspace": ("create", "HEAD", "--detach", "--slug", "old"),
    "lock_workspace": ("lock", "feat-x"),
    "unlock_workspace": ("unlock", "feat-x"),
    "rename_workspace": ("rename", "feat-x", "other"),
    "adopt_worktrees": ("adopt",),
    "prune_workspaces": ("prune", "--merged", "--min-age", "0"),
    "merge_workspace": ("merge", "feat-x"),
    "set_up_workspace": ("setup", "feat-x"),
    "restore_workspace": ("restore", "gone"),
    "examine_project": ("doctor", "--fix"),
    "remove_workspace": ("remove", "feat-x"),
}
"""Each under the name that the record has it by."""
LOOKS = {
    "create_workspace": ("create", "idea", "--dry-run"),
    "prune_workspaces": ("prune", "--merged", "--dry-run"),
    "show_difference": ("diff", "feat-x"),
    "examine_project": ("doctor",),
}


@pytest.fixture
def ready(exeora: CommandLine, feature: Path) -> Path:
    """A workspace with work in it, one that was removed, and a worktree of somebody else."""
    commit_file(feature, "work.txt", "work\n")
    assert exeora.inline("create", "gone").code == 0
    assert exeora.inline("remove", "gone").code == 0
    git(exeora.folder, "worktree", "add", "-q", "-b", "theirs", "../theirs")
    return feature


def set_policy(exeora: CommandLine, **policy: object) -> None:
    path = Path(exeora.environment["XDG_CONFIG_HOME"]) / "exeora/config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"policies": {"app": policy}}))


def rows(exeora: CommandLine) -> list[tuple[str, str, str]]:
    entries = exeora.inline("logs", "--json").document["entries"]
    return [(entry["tool"], entry["outcome"], entry["face"]) for entry in entries]


@pytest.mark.parametrize("name", CHANGES)
def test_a_read_only_project_refuses_it_and_nothing_changes(exeora: CommandLine, ready: Path, name: str):
    set_policy(exeora, mode="read_only")
    before = repository_picture(exeora.folder), exeora.inline("list", "--json").document
    done = exeora.inline(*CHANGES[name], "--json")
    assert done.code == 4, done
    assert (done.error["code"], done.error["reason"]) == ("FORBIDDEN", "read_only")
    assert name in done.error["message"]
    assert (repository_picture(exeora.folder), exeora.inline("list", "--json").document) == before
    assert (name, "FORBIDDEN", "cli") in rows(exeora)


@pytest.mark.parametrize("name", CHANGES)
def test_it_has_a_row_like_every_call(exeora: CommandLine, ready: Path, name: str):
    done = exeora.inline(*CHANGES[name])
    assert done.code in (0, 1), done
    assert (name, "OK" if done.code == 0 or name == "examine_project" else "TOOL_FAILED", "cli") in rows(exeora)


@pytest.mark.parametrize("name", LOOKS)
def test_what_only_looks_is_no_change(exeora: CommandLine, ready: Path, name: str):
    set_policy(exeora, mode="read_only")
    done = exeora.inline(*LOOKS[name])
    assert done.code in (0, 1), done
    assert (name, "OK", "cli") in rows(exeora)


def test_the_list_of_tools_is_about_what_does_the_same_as_a_tool(exeora: CommandLine, ready: Path):
    set_policy(exeora, tools=["read_file"])
    for words in (CHANGES["create_workspace"], CHANGES["prune_workspaces"], CHANGES["adopt_worktrees"]):
        assert exeora.inline(*words, "--json").error["reason"] == "tool_not_permitted", words
    assert exeora.inline(*CHANGES["lock_workspace"]).code == 0
    merged = exeora.inline("merge", "feat-x", "--remove")
    assert (merged.code, ready.exists()) == (4, True)


def test_a_person_confirms_where_the_project_asks(exeora: CommandLine, ready: Path):
    set_policy(exeora, approve=True)
    refused = exeora("merge", "feat-x", "--json")
    assert (refused.code, refused.error["reason"]) == (4, "nobody_to_ask")
    before = git(exeora.folder, "rev-parse", "main")
    environment = child_environment(exeora.environment) | {"TERM": "xterm"}
    for answer, code in (("n\r", 4), ("y\r", 0)):
        assert git(exeora.folder, "rev-parse", "main") == before
        screen = Screen([*COMMAND, "merge", "feat-x", "--keep"], environment, exeora.folder)
        screen.wait_for("merge_workspace", '"how": "ff"', "Allow it? [y/N]")
        screen.type(answer)
        assert screen.end() == code
    assert git(exeora.folder, "rev-parse", "main") == git(ready, "rev-parse", "HEAD")


def test_policy_does_not_judge_who_writes_it_but_the_record_has_it(exeora: CommandLine, ready: Path):
    set_policy(exeora, mode="read_only")
    assert exeora.inline("init", "--yes", "--deny", "sudo").code == 0
    assert ("write_policy", "OK", "cli") in rows(exeora)
    assert exeora.inline("trust", "--revoke").code == 0
    assert ("revoke_trust", "OK", "cli") in rows(exeora)


def test_a_project_that_is_read_only_keeps_its_trash(exeora: CommandLine, ready: Path, make_repository):
    other = CommandLine(make_repository("other", commits=1), exeora.environment)
    assert other.inline("create", "y").code == 0
    assert other.inline("remove", "y").code == 0
    set_policy(exeora, mode="read_only")
    done = other.inline("restore", "--empty", "--json")
    assert (done.code, done.document["deleted"], done.error["code"]) == (4, 1, "FORBIDDEN")
    assert exeora.inline("--project", "app", "restore", "--empty").code == 4
    assert [r["slug"] for r in exeora.inline("restore", "--list", "--json").document["removed"]] == ["gone"]


def test_a_named_project_is_the_only_one_whose_trash_is_emptied(exeora: CommandLine, ready: Path, make_repository):
    other = CommandLine(make_repository("other", commits=1), exeora.environment)
    assert other.inline("create", "y").code == 0
    assert exeora.inline("--project", "other", "restore", "--empty", "--json").document["deleted"] == 0
    assert exeora.inline("restore", "--list", "--json").document["removed"] != []


def test_a_fetch_is_a_change_though_the_rest_is_a_dry_run(exeora: CommandLine, ready: Path):
    set_policy(exeora, mode="read_only")
    assert exeora.inline("create", "idea", "--dry-run", "--fetch").code == 4


def test_emptying_the_trash_is_on_record(exeora: CommandLine, ready: Path):
    assert exeora.inline("restore", "--empty", "--json").document["deleted"] == 1
    assert ("empty_trash", "OK", "cli") in rows(exeora)
