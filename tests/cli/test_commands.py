"""Every command does its job, prints the answer on stdout and only narration on stderr, and has a JSON form."""

import json
from pathlib import Path

import pytest
from exeora_ws.settings import find_places

from support.commandline import CommandLine
from support.repositories import RepositoryMaker, commit_file, git


def test_create_prints_the_path_and_narrates_the_base(exeora: CommandLine, repository: Path):
    done = exeora("create", "feature/login")
    folder = Path(done.out.removesuffix("\n"))
    assert done.code == 0
    assert git(folder, "branch", "--show-current") == "feature/login"
    head = git(repository, "rev-parse", "--short=10", "HEAD")
    assert done.err.splitlines() == [
        "exeora: registered this repository as project 'app'",
        f"exeora: created workspace 'feature-login' on branch 'feature/login', from main ({head})",
    ]


def test_create_takes_every_option_of_the_tool(exeora: CommandLine, repository: Path):
    first = git(repository, "rev-parse", "HEAD~1")
    made = exeora.inline("create", "one", "--from", "HEAD~1", "--name", "The one", "--slug", "uno", "--json").document
    assert made["schema"] == 1
    assert made["created"] is True
    assert made["base"] == {"ref": "HEAD~1", "commit": first}
    assert (made["workspace"]["slug"], made["workspace"]["name"]) == ("uno", "The one")
    git(repository, "branch", "two")
    assert exeora.inline("create", "two", "--json").error["reason"] == "branch_exists"
    assert exeora.inline("create", "two", "--reuse", "--json").document["workspace"]["branch"] == "two"
    again = exeora.inline("create", "two", "--reuse")
    assert again.code == 0
    assert "there already" in again.err


def test_create_starts_at_the_workspace_that_is_named_or_around(exeora: CommandLine, feature: Path):
    commit = commit_file(feature, "x.txt", "x")
    assert exeora.inline("-w", "feat/x", "create", "a", "--json").document["base"] == {
        "ref": "feat/x",
        "commit": commit,
    }
    assert exeora.inline("create", "b", "--json", folder=feature / "src").document["base"]["commit"] == commit
    assert exeora.inline("create", "c", "--json").document["base"]["ref"] == "main"


def test_list_and_git_list(exeora: CommandLine, feature: Path, repository: Path):
    git(repository, "worktree", "add", "-q", "--detach", "../loose")
    listed = exeora.inline("list", slow=True)
    assert listed.out.splitlines() == [f"*  main    main    {repository}", f"   feat-x  feat/x  {feature}"]
    slugs = [w["slug"] for w in exeora.inline("list", "--json").document["workspaces"]]
    assert slugs == ["main", "feat-x"]
    shown = exeora.inline("git-list").out.splitlines()
    assert [line.split("  ")[0] for line in shown] == ["main", "(not connected)", "feat-x"] or len(shown) == 3
    connected = [w["connected"] for w in exeora.inline("git-list", "--json").document["workspaces"]]
    assert sorted(map(str, connected)) == ["None", "feat-x", "main"]


def test_git_list_says_what_is_the_matter(exeora: CommandLine, feature: Path, repository: Path):
    git(repository, "worktree", "lock", "--reason", "on a stick", str(feature))
    assert "locked: on a stick" in exeora.inline("git-list").out


def test_attach_by_path_by_branch_and_from_inside(exeora: CommandLine, repository: Path):
    for name in ("one", "two", "three"):
        git(repository, "worktree", "add", "-q", "-b", name, f"../{name}")
    beside = repository.parent
    assert exeora.inline("attach", "../one").out == f"{beside / 'one'}\n"
    assert exeora.inline("attach", "--branch", "two", "--slug", "zwei").out == f"{beside / 'two'}\n"
    done = exeora.inline("attach", ".", "--json", folder=beside / "three")
    assert done.document["workspace"]["slug"] == "three"
    both = exeora.inline("attach", "../one", "--branch", "one", "--json")
    neither = exeora.inline("attach", "--json")
    assert both.code == neither.code == 2
    assert {both.error["code"], neither.error["code"]} == {"INVALID_ARGUMENTS"}


def test_detach_leaves_the_folder(exeora: CommandLine, feature: Path):
    done = exeora.inline("detach", "feat/x")
    assert (done.code, done.out) == (0, "detached feat-x\n")
    assert (feature / "README.md").exists()
    assert exeora.inline("path", "feat-x").code == 1


def test_remove_says_what_goes_with_it(exeora: CommandLine, feature: Path):
    commit_file(feature, ".gitignore", ".env\n")
    (feature / ".env").write_text("A=1\n")
    done = exeora.inline("remove", "feat-x", "--delete-branch")
    assert (done.code, done.out) == (0, "removed feat-x\n")
    assert not feature.exists()
    assert "ignored files that went with it: .env" in done.err
    assert "the branch was kept (unmerged)" in done.err
    assert "can be brought back until" in done.err


def test_remove_refuses_changes_unless_forced(exeora: CommandLine, feature: Path):
    (feature / "new.txt").write_text("new")
    refused = exeora.inline("remove", "feat-x", "--json")
    assert refused.code == 1
    assert refused.error["reason"] == "dirty"
    assert (feature / "new.txt").exists()
    assert exeora.inline("remove", "feat-x", "--force").code == 0


def test_path_takes_every_selector(exeora: CommandLine, feature: Path, repository: Path):
    identity = exeora.inline("list", "--json").document["workspaces"][1]["id"]
    for selector in ("feat-x", "feat/x", identity):
        assert exeora.inline("path", selector).out == f"{feature}\n"
    assert exeora.inline("path", "main", folder=feature).out == f"{repository}\n"
    assert exeora.inline("path", folder=feature / "src").out == f"{feature}\n"
    assert exeora.inline("path", "@", folder=feature / "src").out == f"{feature}\n"
    assert exeora.inline("path", "feat-x", "--json").document == {
        "schema": 1,
        "workspace": "feat-x",
        "path": str(feature),
    }


def test_path_of_the_previous_workspace(exeora: CommandLine, feature: Path):
    from exeora_ws.app import open_app

    from exeora_cli.previous import load_previous, store_previous

    app = open_app()
    project = app.inventory.list_projects()[0]
    assert exeora.inline("path", "-", "--json").error["reason"] == "no_previous"
    workspace = app.inventory.require_place(project, "feat-x").workspace
    store_previous(app.places, project.id, workspace.id)
    assert load_previous(app.places, project.id) == workspace.id
    assert exeora.inline("path", "-").out == f"{feature}\n"
    assert exeora.inline("remove", "-").code == 0
    assert exeora.inline("path", "-", "--json").error["code"] == "UNKNOWN_WORKSPACE"


def test_status_says_where_one_is(exeora: CommandLine, feature: Path, repository: Path):
    facts = exeora.inline("status", "--json", folder=feature).document
    assert set(facts) == {"schema", "project", "workspace", "paths", "versions", "counts"} | {
        "projects",
        "servers",
        "upstreams",
    }
    assert facts["project"]["root"] == str(repository)
    assert (facts["workspace"]["slug"], facts["workspace"]["branch"]) == ("feat-x", "feat/x")
    assert facts["workspace"]["fault"] is None
    assert facts["counts"] == {"projects": 1, "workspaces": 2}
    assert set(facts["paths"]) == {"config", "mcp", "data", "database", "managedRoot", "log"}
    assert "feat/x" in exeora.inline("status", folder=feature).out


def test_status_outside_any_project(exeora: CommandLine, tmp_path: Path):
    done = exeora.inline("status", "--json", folder=tmp_path)
    assert done.code == 0
    assert done.document["project"] is None
    assert done.document["workspace"] is None
    assert "none here" in exeora.inline("status", folder=tmp_path).out


def test_projects_are_added_listed_and_forgotten(exeora: CommandLine, repository: Path, tmp_path: Path):
    added = exeora.inline("project", "add", "src", "--slug", "source", "--json").document
    assert added["created"] is True
    assert added["project"]["root"] == str(repository / "src")
    assert exeora.inline("project", "add", "src", "--json").document["created"] is False
    assert exeora.inline("project", "add", str(tmp_path)).code == 0
    listed = exeora.inline("project", "list", "--json").document["projects"]
    assert ("source", str(repository / "src")) in [(p["slug"], p["root"]) for p in listed]
    assert "source" in exeora.inline("project", "list").out
    assert exeora.inline("project", "remove", "source").out == "forgot source\n"
    assert exeora.inline("project", "remove", "source", "--json").error["code"] == "UNKNOWN_PROJECT"
    assert (repository / "src").is_dir()


def test_a_project_with_workspaces_is_only_forgotten_by_force(exeora: CommandLine, feature: Path):
    assert exeora.inline("project", "remove", "app", "--json").error["reason"] == "has_workspaces"
    assert exeora.inline("project", "remove", "app", "--force", "--json").document["removed"] is True
    assert feature.is_dir()


def test_settings_are_set_read_and_unset(exeora: CommandLine, tmp_path: Path):
    root = str(tmp_path / "elsewhere")
    assert exeora.inline("config", "get", "worktree-root").out == ""
    assert exeora.inline("config", "get", "worktree-root", "--json").document["value"] is None
    assert exeora.inline("config", "set", "worktree-root", root).code == 0
    assert exeora.inline("config", "get", "worktree-root").out == f"{root}\n"
    assert json.loads(find_places().config_file.read_text()) == {"worktreeRoot": root}
    assert exeora.inline("create", "x").out.startswith(root)
    assert exeora.inline("config", "unset", "worktree-root").code == 0
    assert exeora.inline("config", "get", "--json").document["settings"]["worktree-root"] is None
    assert exeora.inline("config", "set", "tools-may-edit-policy", "yes", "--json").document["value"] is True
    assert exeora.inline("config", "get", "tools-may-edit-policy").out == "true\n"
    assert exeora.inline("config", "set", "tools-may-edit-policy", "perhaps").code == 2
    assert exeora.inline("config", "get", "no-such", "--json").error["reason"] == "unknown_setting"


def test_tools_are_listed_with_their_schemas(exeora: CommandLine):
    names = [tool["name"] for tool in exeora.inline("tools", "--json").document["tools"]]
    assert {"create_workspace", "remove_workspace", "list_git_workspaces"} <= set(names)
    shown = json.loads(exeora.inline("tools", "--schema", "remove_workspace").out)
    assert shown["inputSchema"]["required"] == ["workspace"]
    assert shown["annotations"]["destructiveHint"] is True
    assert exeora.inline("tools", "--schema", "no_such").code == 2


def test_call_takes_arguments_three_ways(exeora: CommandLine, repository: Path):
    assert json.loads(exeora("call", "create_workspace", '{"branch": "a"}').out)["workspace"]["slug"] == "a"
    assert json.loads(exeora("call", "create_workspace", "-", stdin='{"branch": "b"}').out)["created"] is True
    (repository / "arguments.json").write_text('{"branch": "c"}')
    made = exeora.inline("call", "create_workspace", "@arguments.json", "--json").document
    assert (made["schema"], made["workspace"]["branch"]) == (1, "c")
    for wrong in ("[]", "{", "@no-such-file", '{"branch": "\\ud800"}'):
        done = exeora.inline("call", "create_workspace", wrong, "--json")
        assert (done.code, done.error["code"]) == (2, "INVALID_ARGUMENTS"), wrong


def test_call_without_json_prints_exactly_the_structured_result(exeora: CommandLine, feature: Path):
    plain = json.loads(exeora.inline("call", "list_git_workspaces").out)
    assert "schema" not in plain
    assert exeora.inline("call", "list_git_workspaces", "--json").document == {"schema": 1, **plain}


def test_call_acts_in_the_workspace_around_and_never_guesses_a_required_one(exeora: CommandLine, feature: Path):
    commit = commit_file(feature, "x.txt", "x")
    made = json.loads(exeora.inline("call", "create_workspace", '{"branch": "a"}', folder=feature).out)
    assert made["base"]["commit"] == commit
    refused = exeora.inline("call", "remove_workspace", "--json", folder=feature)
    assert (refused.code, refused.error["reason"]) == (2, "missing_field")
    assert feature.is_dir()
    twice = exeora.inline("-w", "main", "call", "create_workspace", '{"branch": "b", "workspace": "main"}', "--json")
    assert twice.error["reason"] == "given_twice"
    assert exeora.inline("-w", "feat/x", "call", "remove_workspace", '{"force": true}').code == 0


def test_version_and_help_need_nothing(exeora: CommandLine, tmp_path: Path):
    from exeora_ws import __version__

    assert exeora("--version", folder=tmp_path).out == f"exeora {__version__}\n"
    for words in ((), ("--help",), ("-h",)):
        assert "Workspaces:" in exeora.inline(*words, folder=tmp_path).out
    assert not find_places().database.exists()


def test_every_command_has_help_with_examples_and_takes_the_global_options():
    from exeora_cli.program import build

    def leaves(group, path):
        for name, command in group.commands.items():
            yield from leaves(command, (*path, name)) if hasattr(command, "commands") else [((*path, name), command)]

    found = dict(leaves(build(), ()))
    assert len(found) > 15
    for path, command in found.items():
        assert command.help, path
        assert f"exeora {' '.join(path)}" in command.epilog or f"{path[-1]}" in command.epilog, path
        names = [parameter.name for parameter in command.params]
        assert len(names) == len(set(names)), path
        # A command whose own option has the name of a global one has that: it means more.
        meant = {name.removeprefix("global_") for name in names}
        assert {"json", "project", "workspace"} <= meant, path


@pytest.mark.parametrize("place", ["before", "after"])
def test_global_options_stand_before_or_after_the_command(
    exeora: CommandLine, feature: Path, tmp_path: Path, place: str
):
    options = ["--project", "app", "--json"]
    words = [*options, "git-list"] if place == "before" else ["git-list", *options]
    assert len(exeora.inline(*words, folder=tmp_path).document["workspaces"]) == 2


def test_two_projects_of_one_name_are_told_apart(exeora: CommandLine, make_repository: RepositoryMaker, feature: Path):
    other = make_repository("elsewhere/app")
    made = exeora.inline("create", "feat/x", "--json", folder=other).document["workspace"]
    assert made["path"] != str(feature)
    assert exeora.inline("path", "feat-x").out == f"{feature}\n"
    assert exeora.inline("path", "feat-x", folder=other).out == f"{made['path']}\n"
