import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.git import links
from exeora_ws.git.links import find_checkout, find_link_fault, find_main_fault

from support.repositories import commit_file, git

TOP = Path(__file__).parents[2]


def add(top: Path, path: Path, branch: str) -> Path:
    git(top, "worktree", "add", "-q", "-b", branch, str(path))
    return path


def seen(folder: Path) -> tuple[Path | None, Path, Path, bool]:
    found = find_checkout(folder)
    assert found is not None
    return found.top, found.common_dir, found.main, found.bare


def test_a_plain_clone_from_its_top_and_from_below(make_repository):
    top = make_repository()
    (top / "deep" / "er").mkdir(parents=True)
    assert seen(top) == seen(top / "deep" / "er") == (top, top / ".git", top, False)


def test_from_inside_a_linked_worktree(make_repository, tmp_path):
    top = make_repository()
    linked = add(top, tmp_path / "linked", "side")
    (linked / "src" / "x").mkdir()
    assert seen(linked / "src" / "x") == (linked, top / ".git", top, False)
    assert find_checkout(linked).git_dir == top / ".git" / "worktrees" / "linked"


def test_a_worktree_nested_in_main_is_itself(make_repository):
    top = make_repository()
    nested = add(top, top / ".trees" / "one", "side")
    assert seen(nested / "src")[0] == nested


def test_from_inside_the_git_folder(make_repository):
    top = make_repository()
    assert seen(top / ".git" / "hooks") == (None, top / ".git", top, False)


def test_a_bare_repository_and_its_worktree(make_repository, tmp_path):
    bare = tmp_path / "app.git"
    git(tmp_path, "clone", "-q", "--bare", str(make_repository()), str(bare))
    linked = add(bare, tmp_path / "linked", "side")
    assert seen(bare) == seen(bare / "refs") == (None, bare, bare, True)
    assert seen(linked) == (linked, bare, bare, True)


@pytest.mark.parametrize("core_bare", ["true", None])
def test_the_bare_folder_with_a_git_file_beside_it(make_repository, tmp_path, core_bare):
    project = tmp_path / "project"
    project.mkdir()
    git(tmp_path, "clone", "-q", "--bare", str(make_repository()), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")
    linked = add(project, project / "side", "side")
    if core_bare is None:
        git(project / ".bare", "config", "--unset", "core.bare")
    common = project / ".bare"
    assert seen(linked) == (linked, common, project, True)
    if core_bare:
        assert seen(project) == (None, common, project, True)


def test_a_bare_repository_in_a_folder_named_dot_git(make_repository, tmp_path):
    project = tmp_path / "project"
    git(tmp_path, "clone", "-q", "--bare", str(make_repository()), str(project / ".git"))
    linked = add(project, project / "side", "side")
    assert seen(project) == (None, project / ".git", project, True)
    assert seen(linked) == (linked, project / ".git", project, True)


def test_a_submodule_and_a_worktree_of_it(make_repository, tmp_path):
    outer, inner = make_repository("outer"), make_repository("inner")
    git(outer, "submodule", "--quiet", "add", str(inner), "libs/inner")
    sub = outer / "libs" / "inner"
    linked = add(sub, tmp_path / "linked", "side")
    common = outer / ".git" / "modules" / "libs" / "inner"
    assert seen(sub / "src") == (sub, common, sub, False)
    assert seen(linked) == (linked, common, sub, False)
    assert seen(outer / "libs") == (outer, outer / ".git", outer, False)


def test_a_submodule_of_a_linked_worktree(make_repository, tmp_path):
    outer, inner = make_repository("outer"), make_repository("inner")
    git(outer, "submodule", "--quiet", "add", str(inner), "inner")
    git(outer, "commit", "-qm", "submodule")
    linked = add(outer, tmp_path / "linked", "side")
    git(linked, "submodule", "--quiet", "update", "--init")
    assert seen(linked / "inner")[0] == linked / "inner"
    assert seen(linked / "inner")[2] == linked / "inner"


def test_a_git_folder_kept_apart(make_repository, tmp_path):
    top, apart = tmp_path / "top", tmp_path / "apart"
    git(tmp_path, "clone", "-q", f"--separate-git-dir={apart}", str(make_repository()), str(top))
    linked = add(top, tmp_path / "linked", "side")
    assert seen(top) == (top, apart, top, False)
    assert seen(linked) == (linked, apart, apart, True)


def test_a_repository_behind_a_symbolic_link_has_real_paths(make_repository, tmp_path):
    top = make_repository()
    (tmp_path / "short").symlink_to(top)
    assert seen(tmp_path / "short" / "src") == (top, top / ".git", top, False)


def test_no_repository_at_all(tmp_path):
    assert find_checkout(tmp_path) is None


def test_exported_git_variables_are_not_looked_at(make_repository, monkeypatch, tmp_path):
    top, other = make_repository(), make_repository("other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(top))
    assert seen(top / "src")[0] == top
    assert find_checkout(tmp_path) is None


@pytest.mark.parametrize("content", ["gitdir: /nowhere/at/all\n", "nonsense\n", "", "gitdir: \n"])
def test_a_git_file_that_leads_nowhere_ends_the_walk(make_repository, content):
    nested = make_repository() / "trees" / "one"
    nested.mkdir(parents=True)
    (nested / ".git").write_text(content)
    (nested / "below").mkdir()
    with pytest.raises(ToolFailed) as caught:
        find_checkout(nested / "below")
    assert caught.value.reason == "broken_link"
    assert str(nested) not in caught.value.message


def test_an_empty_git_folder_and_a_dangling_link_end_the_walk(make_repository):
    top = make_repository()
    for name in ("folder", "link"):
        (top / name).mkdir()
    (top / "folder" / ".git").mkdir()
    (top / "link" / ".git").symlink_to("/nowhere")
    for name in ("folder", "link"):
        with pytest.raises(ToolFailed):
            find_checkout(top / name)


def test_a_git_folder_that_claims_another_worktree_is_refused(make_repository, tmp_path):
    top = make_repository()
    git(top, "config", "core.worktree", str(tmp_path))
    with pytest.raises(ToolFailed) as caught:
        find_checkout(top)
    assert caught.value.reason == "broken_link"


class TestFaultOfALinkedWorktree:
    @pytest.fixture
    def top(self, make_repository):
        return make_repository()

    @pytest.fixture
    def linked(self, top, tmp_path):
        return add(top, tmp_path / "linked", "side")

    def fault(self, linked: Path, top: Path, admin: str | None = None) -> str | None:
        return find_link_fault(str(linked), str(top / ".git"), admin)

    def test_a_sound_one_has_none(self, top, linked):
        assert self.fault(linked, top) is None
        assert self.fault(linked, top, "linked") is None

    def test_relative_links_are_sound(self, top, linked):
        (linked / ".git").write_text(f"gitdir: {os.path.relpath(top / '.git/worktrees/linked', linked)}\n")
        (top / ".git/worktrees/linked/gitdir").write_text(
            os.path.relpath(linked / ".git", top / ".git/worktrees/linked") + "\n"
        )
        assert self.fault(linked, top) is None

    def test_behind_a_moved_parent_that_left_a_link(self, top, tmp_path):
        (tmp_path / "house").mkdir()
        linked = add(top, tmp_path / "house" / "linked", "side")
        (tmp_path / "house").rename(tmp_path / "elsewhere")
        (tmp_path / "house").symlink_to(tmp_path / "elsewhere")
        git(tmp_path / "elsewhere" / "linked", "worktree", "repair")
        assert self.fault(linked, top) is None

    def test_folder_gone(self, top, linked):
        shutil.rmtree(linked)
        assert self.fault(linked, top) == "missing"

    def test_a_file_where_the_folder_was(self, top, linked):
        shutil.rmtree(linked)
        linked.write_text("")
        assert self.fault(linked, top) == "missing"

    def test_no_git_file(self, top, linked):
        (linked / ".git").unlink()
        assert self.fault(linked, top) == "not_a_worktree"

    def test_a_clone_in_its_place(self, top, linked):
        shutil.rmtree(linked)
        git(top, "clone", "-q", str(top), str(linked))
        assert self.fault(linked, top) == "other_repository"

    def test_another_repositorys_worktree_in_its_place(self, top, linked, make_repository):
        shutil.rmtree(linked)
        add(make_repository("other"), linked, "side")
        assert self.fault(linked, top) == "other_repository"

    def test_a_submodule_of_another_in_its_place(self, top, linked, make_repository):
        shutil.rmtree(linked)
        outer = linked.parent / "outer"
        make_repository("x")
        shutil.copytree(top, outer)
        git(outer, "submodule", "--quiet", "add", str(top), "inner")
        (outer / "inner").rename(linked)
        (linked / ".git").write_text(f"gitdir: {outer}/.git/modules/inner\n")
        assert self.fault(linked, top) == "other_repository"

    def test_its_record_gone(self, top, linked):
        shutil.rmtree(top / ".git" / "worktrees" / "linked")
        assert self.fault(linked, top) == "broken_link"

    def test_the_repository_moved(self, top, linked):
        moved = top.with_name("moved")
        top.rename(moved)
        assert self.fault(linked, moved) == "broken_link"

    def test_the_record_leads_elsewhere(self, top, linked, tmp_path):
        (top / ".git/worktrees/linked/gitdir").write_text(f"{tmp_path}/other/.git\n")
        assert self.fault(linked, top) == "broken_link"

    def test_a_copy_of_the_folder(self, top, linked, tmp_path):
        shutil.copytree(linked, tmp_path / "copy")
        assert self.fault(tmp_path / "copy", top) == "broken_link"
        assert self.fault(linked, top) is None

    def test_a_link_to_another_worktree_in_its_place(self, top, linked, tmp_path):
        other = add(top, tmp_path / "other", "other")
        shutil.rmtree(linked)
        linked.symlink_to(other)
        assert self.fault(linked, top) == "broken_link"

    def test_a_link_to_main_in_its_place(self, top, linked):
        shutil.rmtree(linked)
        linked.symlink_to(top)
        assert self.fault(linked, top) == "other_repository"

    def test_main_is_no_linked_worktree(self, top):
        assert self.fault(top, top) == "other_repository"

    def test_half_a_record(self, top, linked):
        (top / ".git/worktrees/linked/HEAD").unlink()
        assert self.fault(linked, top) == "broken_link"

    def test_two_records_for_one_folder(self, top, linked):
        shutil.copytree(top / ".git/worktrees/linked", top / ".git/worktrees/twin")
        assert self.fault(linked, top, "linked") is None
        assert self.fault(linked, top, "twin") == "broken_link"


class TestFaultOfMain:
    def test_sound_ones(self, make_repository, tmp_path):
        top = make_repository()
        bare = tmp_path / "app.git"
        git(tmp_path, "clone", "-q", "--bare", str(top), str(bare))
        assert find_main_fault(str(top), str(top / ".git")) is None
        assert find_main_fault(str(bare), str(bare)) is None

    def test_a_submodule(self, make_repository):
        outer, inner = make_repository("outer"), make_repository("inner")
        git(outer, "submodule", "--quiet", "add", str(inner), "inner")
        assert find_main_fault(str(outer / "inner"), str(outer / ".git/modules/inner")) is None

    def test_faults(self, make_repository, tmp_path):
        top, other = make_repository(), make_repository("other")
        common = str(top / ".git")
        assert find_main_fault(str(tmp_path / "gone"), common) == "missing"
        assert find_main_fault(str(other), common) == "other_repository"
        assert find_main_fault(str(tmp_path), common) == "not_a_worktree"
        (top / ".git" / "HEAD").unlink()
        assert find_main_fault(str(top), common) == "broken_link"


def test_importing_it_costs_next_to_nothing():
    script = "import os; before = set(sys.modules); import exeora_ws.git.links; print(*sorted(set(sys.modules)-before))"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(TOP)!r}); {script}"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) <= {
        "__future__", "exeora_ws", "exeora_ws.git", "exeora_ws.git.gitfiles", "exeora_ws.git.links",
    }  # fmt: skip


def test_the_configuration_is_read_as_git_reads_it(make_repository, tmp_path):
    top = make_repository("sub")
    config = top / ".git" / "config"
    other = tmp_path / "moved here"
    text = f'[core]\n\tbare = false ; not bare\n[core "x"]\n\tworktree = /wrong\n[CORE] worktree = "{other}" # so\n'
    config.write_text(text)
    (top / ".git").rename(tmp_path / "kept")
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {tmp_path}/kept\n")
    commit_file(other, "a", "b")
    assert seen(other) == (other, tmp_path / "kept", other, False)
    assert Path(git(other, "rev-parse", "--show-toplevel")) == other


def _damage(worktree: Path, admin: Path, common: Path) -> dict[str, Callable[[], object]]:
    return {
        "sound": lambda: None,
        "detached": lambda: git(worktree, "checkout", "-q", "--detach"),
        "no link": (worktree / ".git").unlink,
        "a repository": lambda: ((worktree / ".git").unlink(), git(worktree, "init", "-q")),
        "no commondir": (admin / "commondir").unlink,
        "no head": (admin / "HEAD").unlink,
        "head of tables": lambda: (admin / "HEAD").write_text("ref: refs/heads/.invalid\n"),
        "head elsewhere": lambda: (admin / "HEAD").write_text("ref: refs/remotes/a/b\n"),
        "no back link": (admin / "gitdir").unlink,
        "other back link": lambda: (admin / "gitdir").write_text("/elsewhere/.git\n"),
        "relative back link": lambda: (admin / "gitdir").write_text(os.path.relpath(worktree / ".git", admin) + "\n"),
        "link with a slash": lambda: (worktree / ".git").write_text(f"gitdir: {admin}/\n"),
        "link without newline": lambda: (worktree / ".git").write_text(f"gitdir: {admin}"),
        "link to itself": lambda: (worktree / ".git").write_text(f"gitdir: {admin.parent}/.\n"),
        "link to main": lambda: (worktree / ".git").write_text(f"gitdir: {common}\n"),
        "gone": lambda: worktree.rename(worktree.with_name("moved")),
        "a link to it": lambda: (worktree.rename(worktree.with_name("moved")), worktree.symlink_to("moved")),
    }


@pytest.mark.parametrize("damage", list(_damage(Path(), Path(), Path())))
def test_the_short_look_at_a_worktree_says_what_the_long_one_says_or_nothing(make_repository, damage: str):
    top = make_repository()
    worktree = top.parent / "linked"
    git(top, "worktree", "add", "-q", "-b", "topic/x", str(worktree))
    _damage(worktree, top / ".git/worktrees/linked", top / ".git")[damage]()
    short = links.read_plain_branch(str(worktree), str(top / ".git"))
    if short is not None:
        assert links.find_link_fault(str(worktree), str(top / ".git")) is None
        assert links.read_branch(str(worktree)) == short
    assert (short is not None) == (damage in ("sound", "detached", "a link to it"))
