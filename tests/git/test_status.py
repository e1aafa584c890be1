import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from exeora_ws.git import status
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Status
from exeora_ws.git.status import parse_status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.repositories import commit_file, git


@pytest.fixture(autouse=True, params=["one git", "two at once"])
def halves(request, monkeypatch) -> None:
    """Each as for a small checkout, and as for a large one."""
    monkeypatch.setattr(status, "HALVED_INDEX_BYTES", 0 if request.param == "two at once" else 1 << 40)


CLEAN = Status((), (), (), (), (), ())


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository(commits=2)


class TestPlainFiles:
    def test_clean(self, opened, top):
        assert opened(top).status() == CLEAN
        assert opened(top).status().clean

    def test_every_kind_of_change(self, opened, top):
        (top / ".gitignore").write_text("*.log\nbuild/\n.env\n")
        git(top, "add", ".gitignore")
        (top / "README.md").write_text("changed")
        (top / "src/file-0.txt").unlink()
        git(top, "mv", "src/file-1.txt", "moved.txt")
        (top / "folder" / "deep").mkdir(parents=True)
        (top / "folder" / "deep" / "new").write_text("")
        (top / "new file").write_text("")
        for ignored in (".env", "a.log", "build/x"):
            (top / ignored).parent.mkdir(exist_ok=True)
            (top / ignored).write_text("")
        expected = Status(
            staged=(".gitignore", "moved.txt", "src/file-1.txt"),
            unstaged=("README.md", "src/file-0.txt"),
            untracked=("folder/", "new file"),
            ignored=(),
            conflicted=(),
            submodules=(),
        )
        assert opened(top).status() == expected
        found = opened(top).status(ignored=True)
        assert found.ignored == (".env", "a.log", "build/")
        assert not found.clean

    def test_only_ignored_files_is_clean(self, opened, top):
        (top / ".git" / "info" / "exclude").write_text(".env\n")
        (top / ".env").write_text("SECRET=1")
        found = opened(top).status(ignored=True)
        assert found.ignored == (".env",)
        assert found.clean

    def test_staged_and_changed_again(self, opened, top):
        (top / "README.md").write_text("one")
        git(top, "add", "README.md")
        (top / "README.md").write_text("two")
        found = opened(top).status()
        assert (found.staged, found.unstaged) == (("README.md",), ("README.md",))

    def test_a_conflict(self, opened, top):
        git(top, "checkout", "-q", "-b", "side")
        commit_file(top, "README.md", "one")
        git(top, "checkout", "-q", "main")
        commit_file(top, "README.md", "two")
        git(top, "merge", "side", check=False)
        found = opened(top).status()
        assert found.conflicted == ("README.md",)
        assert not found.clean

    def test_settings_that_hide_things_hide_nothing(self, opened, top):
        for key, value in {
            "status.showUntrackedFiles": "no", "status.relativePaths": "true", "status.branch": "true",
            "status.short": "true", "status.renames": "copies", "core.quotePath": "true", "status.showStash": "true",
        }.items():  # fmt: skip
            git(top, "config", key, value)
        (top / "né\tw").write_text("")
        assert opened(top).status().untracked == ("né\tw",)

    def test_a_name_that_differs_in_case_alone_counts(self, opened_by_git, top):
        (top / "readme.md").write_text("mine")
        if (top / "README.md").read_text() == "mine":
            pytest.skip("here names in another case are the same")
        git(top, "config", "core.ignoreCase", "true")
        assert opened_by_git(top).status().untracked == ("readme.md",)

    def test_an_intent_to_add_counts(self, opened, top):
        (top / "new").write_text("x")
        git(top, "add", "-N", "new")
        assert not opened(top).status().clean

    def test_a_changed_mode_counts(self, opened, top):
        (top / "README.md").chmod(0o755)
        assert opened(top).status().unstaged == ("README.md",)

    def test_a_file_replaced_by_a_link_or_a_folder(self, opened, top):
        (top / "README.md").unlink()
        (top / "README.md").symlink_to("src")
        assert opened(top).status().unstaged == ("README.md",)

    def test_an_unborn_head(self, opened, tmp_path):
        (tmp_path / "fresh").mkdir()
        git(tmp_path / "fresh", "init", "-q")
        (tmp_path / "fresh" / "a").write_text("")
        (tmp_path / "fresh" / "b").write_text("")
        git(tmp_path / "fresh", "add", "a")
        found = opened(tmp_path / "fresh").status()
        assert (found.staged, found.untracked) == (("a",), ("b",))


class TestFilesMarkedUnchanged:
    """Git's own status passes them over; a removal would lose them all the same."""

    @pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
    def test_a_changed_one_counts(self, opened_by_git, top, mark):
        git(top, "update-index", mark, "README.md", "src/file-0.txt")
        assert opened_by_git(top).status() == CLEAN
        (top / "README.md").write_text("my own settings")
        assert git(top, "status", "--porcelain") == ""
        assert opened_by_git(top).status().unstaged == ("README.md",)

    @pytest.mark.parametrize("name", ["a\nb", '"q', '"q"', "cr\r", "back\\slash"])
    def test_one_with_a_name_that_lines_do_not_hold(self, opened_by_git, top, name):
        commit_file(top, name, "before\n")
        git(top, "update-index", "--assume-unchanged", name)
        assert opened_by_git(top).status() == CLEAN
        (top / name).write_text("after!\n")
        assert opened_by_git(top).status().unstaged == (name,)

    def test_what_is_something_else_by_now_counts(self, opened_by_git, top):
        (top / "link").symlink_to("one")
        git(top, "add", "-A")
        git(top, "commit", "-qm", "link")
        marked = ("README.md", "src/file-0.txt", "src/file-1.txt", "link")
        git(top, "update-index", "--skip-worktree", *marked)
        assert opened_by_git(top).status() == CLEAN
        for name in marked:
            (top / name).unlink()
        assert opened_by_git(top).status() == CLEAN
        (top / "README.md").symlink_to("mine")
        (top / "src/file-0.txt").mkdir()
        (top / "src/file-0.txt" / "mine").write_text("mine")
        (top / "link").symlink_to("two")
        assert git(top, "status", "--porcelain") == ""
        assert opened_by_git(top).status().unstaged == ("README.md", "link", "src/file-0.txt")

    def test_its_line_endings_are_converted_before_it_is_compared(self, opened_by_git, top):
        git(top, "config", "core.autocrlf", "true")
        git(top, "update-index", "--assume-unchanged", "README.md")
        (top / "README.md").write_bytes((top / "README.md").read_bytes().replace(b"\n", b"\r\n"))
        assert opened_by_git(top).status() == CLEAN

    def test_a_sparse_cone_is_no_change(self, opened_by_git, top):
        commit_file(top, "left/a", "b")
        git(top, "sparse-checkout", "set", "src")
        assert opened_by_git(top).status() == CLEAN


class TestNestedRepositories:
    @pytest.mark.parametrize("commits", [0, 1])
    def test_an_untracked_one_is_reported(self, opened, top, make_repository, commits):
        make_repository("spare", commits=commits).rename(top / "nested")
        assert opened(top).status().untracked == ("nested/",)

    def test_a_worktree_in_a_worktree_is_reported(self, opened, top):
        git(top, "worktree", "add", "-q", "-b", "side", str(top / "trees" / "side"))
        assert opened(top).status().untracked == ("trees/",)

    def test_an_ignored_one_is_among_the_ignored(self, opened, top, make_repository):
        make_repository("spare").rename(top / "nested")
        (top / ".git" / "info" / "exclude").write_text("nested/\n")
        assert opened(top).status(ignored=True).ignored == ("nested/",)


class TestSubmodules:
    """Git's own verdict: libgit2 alone refuses a tree with a submodule (see test_without_git)."""

    @pytest.fixture
    def outer(self, make_repository, top) -> Path:
        innermost = make_repository("innermost")
        git(top, "submodule", "--quiet", "add", str(innermost), "deep")
        git(top, "commit", "-qm", "deep")
        outer = make_repository("outer")
        git(outer, "submodule", "--quiet", "add", str(top), "libs/inner")
        git(outer, "submodule", "--quiet", "update", "--init", "--recursive")
        git(outer, "commit", "-qm", "submodule")
        git(outer, "config", "diff.ignoreSubmodules", "all")
        git(outer, "config", "submodule.libs/inner.ignore", "all")
        return outer

    @pytest.fixture
    def submodules(self, opened_by_git, outer):
        return lambda: opened_by_git(outer).status().submodules

    def test_initialised_and_clean(self, opened_by_git, outer):
        assert opened_by_git(outer).status() == CLEAN

    def test_not_initialised(self, opened_by_git, outer):
        git(outer, "submodule", "--quiet", "deinit", "--all")
        assert opened_by_git(outer).status() == CLEAN

    def test_changed_file(self, outer, submodules):
        (outer / "libs/inner/README.md").write_text("changed")
        assert submodules() == ("libs/inner",)

    def test_untracked_file(self, outer, submodules):
        (outer / "libs/inner/new").write_text("")
        assert submodules() == ("libs/inner",)

    def test_changed_file_of_a_nested_one(self, outer, submodules):
        (outer / "libs/inner/deep/README.md").write_text("changed")
        assert submodules() == ("libs/inner",)

    def test_another_commit(self, outer, submodules):
        commit_file(outer / "libs/inner", "a", "b")
        assert submodules() == ("libs/inner",)

    def test_a_commit_on_a_branch_beside_the_recorded_one(self, outer, submodules):
        inner = outer / "libs/inner"
        git(inner, "checkout", "-q", "-b", "precious")
        commit_file(inner, "a", "b")
        git(inner, "checkout", "-q", "main")
        assert git(outer, "status", "--porcelain", "--ignore-submodules=none") == ""
        assert submodules() == ("libs/inner",)

    def test_a_commit_on_a_branch_of_a_nested_one(self, outer, submodules):
        inner = outer / "libs/inner/deep"
        git(inner, "checkout", "-q", "-b", "precious")
        commit_file(inner, "a", "b")
        git(inner, "checkout", "-q", "--detach", "HEAD~1")
        assert submodules() == ("libs/inner/deep",)

    def test_a_stash(self, outer, submodules):
        (outer / "libs/inner/README.md").write_text("changed")
        git(outer / "libs/inner", "stash")
        assert submodules() == ("libs/inner",)

    def test_a_commit_of_one_that_is_checked_out_no_more(self, opened_by_git, outer, tmp_path):
        work = tmp_path / "work"
        git(outer, "worktree", "add", "-q", str(work))
        git(work, "submodule", "--quiet", "update", "--init", "--recursive")
        git(work / "libs/inner", "checkout", "-q", "-b", "precious")
        commit_file(work / "libs/inner", "a", "b")
        git(work, "submodule", "--quiet", "deinit", "-f", "--all")
        assert git(work, "status", "--porcelain", "--ignore-submodules=none") == ""
        assert opened_by_git(work).status().submodules == ("libs/inner",)
        git(work, "rm", "-q", "libs/inner")
        git(work, "commit", "-qm", "gone")
        assert opened_by_git(work).status().submodules == ("libs/inner",)
        assert opened_by_git(outer).status() == CLEAN

    def test_staged_is_staged(self, opened_by_git, outer):
        commit_file(outer / "libs/inner", "a", "b")
        git(outer / "libs/inner", "push", "-q", "origin", "HEAD:refs/heads/pushed")
        git(outer, "add", "libs/inner")
        assert opened_by_git(outer).status().staged == ("libs/inner",)

    def test_a_repository_added_without_gitmodules(self, opened_by_git, top, make_repository):
        make_repository("spare").rename(top / "nested")
        git(top, "-c", "advice.addEmbeddedRepo=false", "add", "nested")
        git(top, "commit", "-qm", "embedded")
        commit_file(top / "nested", "a", "b")
        assert opened_by_git(top).status().submodules == ("nested",)

    def test_a_hostile_monitor_in_a_submodule_does_not_run(self, outer, submodules, tmp_path):
        git(outer / "libs/inner", "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
        submodules()
        assert not (tmp_path / "ran").exists()


PATHS = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=30)


@given(PATHS, PATHS)
def test_any_path_is_parsed_whole(one, two):
    ids = f"100644 100644 100644 {'a' * 40} {'b' * 40}"
    text = (
        f"1 M. N... {ids} {one}\0"
        f"1 .M N... {ids} {two}\0"
        f"2 R. N... {ids} R100 {one}\0{two}\0"
        f"u UU N... 100644 {ids} {'c' * 40} {one}\0"
        f"1 .M SC.. {ids} {two}\0"
        f"? {one}\0! {two}\0"
    )
    assert parse_status(text) == Status(
        staged=(one, one), unstaged=(two,), untracked=(one,), ignored=(two,), conflicted=(one,), submodules=(two,)
    )


NAMES = st.sampled_from(("a", "b", "c.log", "build", "deep", "x y", "*", "\u00e4"))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tracked=st.sets(PATHS, max_size=4),
    others=st.sets(PATHS, max_size=8),
    folders=st.sets(PATHS, max_size=2),
    ignore=st.sampled_from(("", "*.log\n", "build/\n*.log\n", "/deep/*\n!/deep/a\n", "*\n!*/\n", "deep/\n")),
    ignored=st.booleans(),
)
def test_two_at_once_see_what_one_sees(make_repository, monkeypatch, tracked, others, folders, ignore, ignored):
    shutil.rmtree(make_repository.folder, ignore_errors=True)
    top = make_repository()
    plant(top, tracked)
    git(top, "add", "-A", "--force")
    (top / ".gitignore").write_text(ignore)
    plant(top, others)
    for folder in folders:
        with suppress(OSError):
            (top / folder).mkdir(parents=True)
    seen = []
    for most in (0, 1 << 40):
        monkeypatch.setattr(status, "HALVED_INDEX_BYTES", most)
        seen.append(open_repository(top).status(ignored=ignored))
    assert seen[0] == seen[1]


def plant(top: Path, paths: set[str]) -> None:
    for path in sorted(paths):
        with suppress(OSError):
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(path)
