"""Which project and workspace a command means (contract, section 2): never main by accident."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.commandline import CommandLine
from support.repositories import RepositoryMaker, git
from support.trees import repository_picture

SLOW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def test_an_acting_command_makes_a_project_and_says_so(exeora: CommandLine, repository: Path):
    done = exeora.inline("call", "list_git_workspaces")
    assert done.code == 0
    assert done.err == "exeora: registered this repository as project 'app'\n"
    assert exeora.inline("call", "list_git_workspaces").err == ""
    assert exeora.inline("project", "remove", "app").code == 0
    noted, told = exeora.inline("create", "x", "-w", "no-such", "--json").err.splitlines()
    assert json.loads(noted) == {"schema": 1, "note": "registered this repository as project 'app'"}
    assert json.loads(told)["error"]["code"] == "UNKNOWN_WORKSPACE"


@pytest.mark.parametrize(
    "words", [("list",), ("git-list",), ("status",), ("project", "list"), ("tools",)], ids=" ".join
)
def test_a_listing_command_makes_none(exeora: CommandLine, words: tuple[str, ...]):
    done = exeora.inline(*words, "--json")
    assert done.code == 0
    assert exeora.inline("project", "list", "--json").document["projects"] == []


def test_a_list_without_a_project_is_empty_with_a_hint(exeora: CommandLine, tmp_path: Path):
    for folder in (exeora.folder, tmp_path):
        done = exeora.inline("list", folder=folder)
        assert (done.code, done.out) == (0, "")
        assert done.err.splitlines()[1].startswith("hint: exeora create")
        assert exeora.inline("list", "--json", folder=folder).document == {"schema": 1, "workspaces": []}


def test_outside_any_project_a_command_asks_for_one(exeora: CommandLine, feature: Path, tmp_path: Path):
    for words in (("create", "y"), ("path",), ("remove", "feat-x"), ("call", "create_workspace", '{"branch":"y"}')):
        done = exeora.inline(*words, "--json", folder=tmp_path)
        assert (done.code, done.error["reason"]) == (2, "no_project"), words
        assert "--project" in done.error["hint"]
    made = exeora.inline("--project", "app", "create", "y", "--json", folder=tmp_path)
    assert made.document["base"]["ref"] == "main"
    assert exeora.inline("--project", "app", "path", folder=tmp_path).out == f"{exeora.folder}\n"


def places_that_are_not_main(exeora: CommandLine, make_repository: RepositoryMaker) -> dict[str, Path]:
    """Folders inside main, or of its repository, that are not main."""
    main = exeora.folder
    git(main, "worktree", "add", "-q", "-b", "loose", "../loose")
    git(main, "worktree", "add", "-q", "-b", "nested", "nested")
    library = make_repository("library")
    git(main, "submodule", "--quiet", "add", str(library), "sub")
    clone = main / "clone"
    git(main, "clone", "-q", str(library), str(clone))
    return {
        "not connected": main.parent / "loose",
        "nested": main / "nested",
        "submodule": main / "sub" / "src",
        "clone": clone,
    }


def test_what_lies_inside_main_is_not_main(exeora: CommandLine, feature: Path, make_repository: RepositoryMaker):
    before = None
    for kind, folder in places_that_are_not_main(exeora, make_repository).items():
        before = before or repository_picture(exeora.folder)
        done = exeora.inline("path", "--json", folder=folder)
        assert done.code == 2, kind
        assert done.error["reason"] in ("no_workspace", "no_project"), kind
        here = exeora.inline("path", "@", "--json", folder=folder)
        assert here.code in (1, 2), kind
        status = exeora.inline("status", "--json", folder=folder).document
        assert status["workspace"] is None, kind
        assert repository_picture(exeora.folder) == before, kind


@pytest.mark.parametrize("place", ["loose", "nested"])
def test_a_worktree_that_is_not_connected_is_no_way_to_main(exeora: CommandLine, feature: Path, place: str):
    folder = exeora.folder / "nested" if place == "nested" else exeora.folder.parent / "loose"
    git(exeora.folder, "worktree", "add", "-q", "-b", place, str(folder))
    for options in ((), ("--project", "app")):
        done = exeora.inline(*options, "create", "y", "--json", folder=folder)
        assert (done.code, done.error["reason"]) == (2, "no_workspace")
    assert git(exeora.folder, "branch", "--list", "y") == ""
    # Its project is known all the same: named workspaces and lists work from there.
    assert exeora.inline("path", "feat-x", folder=folder).out == f"{feature}\n"
    assert len(exeora.inline("list", "--json", folder=folder).document["workspaces"]) == 2
    assert exeora.inline("attach", ".", folder=folder).code == 0
    assert exeora.inline("path", folder=folder).out == f"{folder}\n"


def test_a_nested_worktree_that_lost_its_link_is_no_way_to_main(exeora: CommandLine, feature: Path):
    folder = exeora.folder / "nested"
    git(exeora.folder, "worktree", "add", "-q", "-b", "nested", str(folder))
    assert exeora.inline("attach", "nested").code == 0
    (folder / ".git").write_text("gitdir: /nowhere\n")
    done = exeora.inline("create", "y", "--json", folder=folder)
    assert done.code == 1
    assert done.error["reason"] == "broken_link"
    assert git(exeora.folder, "branch", "--list", "y") == ""


def test_remove_and_detach_never_mean_the_current_directory(exeora: CommandLine, feature: Path):
    for command in ("remove", "detach"):
        for folder in (feature, exeora.folder):
            done = exeora.inline(command, "--json", folder=folder)
            assert (done.code, done.error["reason"]) == (2, "missing_workspace")
            done = exeora.inline(command, "main", "--json", folder=folder)
            assert (done.code, done.error["reason"]) == (1, "is_main")
        assert exeora.inline(command, "@", "--json").error["reason"] == "is_main"
    git(exeora.folder, "checkout", "-q", "-b", "other")
    assert exeora.inline("remove", "other", "--json").error["reason"] == "is_main"
    assert exeora.inline("remove", "@", folder=feature).code == 0
    assert exeora.folder.is_dir()
    assert not feature.exists()


def test_a_slug_counts_before_a_branch(exeora: CommandLine, feature: Path):
    git(exeora.folder, "checkout", "-q", "-b", "other")
    taken = exeora.inline("create", "main", "--reuse", "--slug", "was-main", "--json").document["workspace"]
    assert exeora.inline("path", "main").out == f"{exeora.folder}\n"
    assert exeora.inline("path", "was-main").out == f"{taken['path']}\n"
    assert exeora.inline("path", "other").out == f"{exeora.folder}\n"


def test_git_variables_of_a_hook_change_nothing(exeora: CommandLine, feature: Path, make_repository: RepositoryMaker):
    other = make_repository("other")
    before = repository_picture(other)
    variables = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
    }
    done = exeora("create", "hooked", "--json", **variables)
    assert done.code == 0, done.err
    assert git(exeora.folder, "branch", "--list", "hooked") != ""
    assert repository_picture(other) == before
    assert exeora("path", **variables).out == f"{exeora.folder}\n"
    assert exeora("remove", "hooked", **variables).code == 0
    assert repository_picture(other) == before


SELECTORS = (
    st.text(max_size=80).filter(lambda text: "\0" not in text)
    | st.sampled_from(
        [
            "",
            " ",
            "main ",
            " main",
            "Main",
            "MAIN",
            "./main",
            "main/",
            "..",
            ".",
            "/",
            "HEAD",
            "refs/heads/main",
            "@{-1}",
        ]
    )
    | st.sampled_from(["feat-y", "feat", "feat/", "feat-x ", "FEAT-X", "feat\\x", "wsp_", "prj_", "*", "%", "_"])
)
# A lone surrogate cannot be typed, and JSON cannot carry it.
SELECTORS = SELECTORS.filter(lambda text: text.isascii() or text.encode("utf-8", "ignore").decode() == text)
RESOLVING = ("main", "feat-x", "feat/x", "@", "-")


def tools_that_take_a_workspace(exeora: CommandLine) -> list[str]:
    listed = exeora.inline("tools", "--json").document["tools"]
    return [tool["name"] for tool in listed if "workspace" in tool["inputSchema"]["properties"]]


@SLOW
@given(selector=SELECTORS.filter(lambda text: text not in RESOLVING), data=st.data())
def test_a_selector_that_does_not_resolve_never_acts(exeora: CommandLine, feature: Path, selector: str, data):
    tool = data.draw(st.sampled_from(tools_that_take_a_workspace(exeora)))
    before = repository_picture(exeora.folder)
    arguments = {"branch": "made", "path": "made.txt", "content": "x", "command": "touch made.txt"}
    by_option = (f"--workspace={selector}", "call", tool, json.dumps(arguments), "--json")
    by_argument = ("call", tool, json.dumps({**arguments, "workspace": selector}), "--json")
    for words in (by_option, by_argument):
        for folder in (exeora.folder, feature):
            done = exeora.inline(*words, folder=folder)
            assert (done.code, done.out) == (1, ""), done
            assert done.error["code"] == "UNKNOWN_WORKSPACE"
    for command in ("path", "remove", "detach"):
        # `--` so that a selector that looks like an option stays one.
        done = exeora.inline(command, "--json", "--", selector)
        assert (done.code, done.error["code"]) == (1, "UNKNOWN_WORKSPACE"), (command, done)
    assert repository_picture(exeora.folder) == before


def test_the_same_as_a_process(exeora: CommandLine, feature: Path):
    before = repository_picture(exeora.folder)
    for words in (
        ("-w", "", "create", "made"),
        ("--workspace=no-such", "create", "made"),
        ("create", "made", "-w", "@x"),
    ):
        done = exeora(*words, "--json")
        assert (done.code, done.error["code"]) == (1, "UNKNOWN_WORKSPACE")
    assert repository_picture(exeora.folder) == before


@pytest.mark.parametrize("fault", ["missing", "not_a_worktree"])
def test_a_workspace_that_is_not_there_is_unavailable_and_never_main(exeora: CommandLine, feature: Path, fault: str):
    if fault == "missing":
        feature.rename(feature.with_name("away"))
    else:
        (feature / ".git").unlink()
    before = repository_picture(exeora.folder)
    for words in (("path", "feat-x"), ("-w", "feat/x", "create", "made")):
        done = exeora.inline(*words, "--json")
        assert (done.code, done.error["code"], done.error["reason"]) == (1, "WORKSPACE_UNAVAILABLE", fault)
    assert repository_picture(exeora.folder) == before
    assert exeora.inline("list", "--json").document["workspaces"][1]["available"] is False
