import os
import subprocess
import sys
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.git.executable import ExecutableRepository
from exeora_ws.git.libgit2 import Libgit2Repository
from exeora_ws.git.opening import load_libgit2, open_repository

from support.repositories import commit_file, git

TOP = Path(__file__).parents[2]


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository()


def refused(path: Path) -> str | None:
    with pytest.raises(ToolFailed) as caught:
        open_repository(path)
    assert str(path) not in caught.value.message
    return caught.value.reason


def test_exactly_a_top_or_a_git_folder(top, tmp_path):
    git(top, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    assert open_repository(top).checkout == top
    assert open_repository(tmp_path / "linked").checkout == tmp_path / "linked"
    assert open_repository(top / ".git").checkout is None
    assert open_repository(top / ".git").head().branch == "main"
    for opened in (top, tmp_path / "linked", top / ".git"):
        assert open_repository(opened).common_dir == top / ".git"


def test_never_further_up(top, tmp_path):
    nested = top / "trees" / "one"
    git(top, "worktree", "add", "-q", "-b", "side", str(nested))
    assert refused(top / "src") == "not_a_repository"
    assert refused(nested / "src") == "not_a_repository"
    assert refused(tmp_path) == "not_a_repository"
    assert refused(tmp_path / "nowhere") == "not_a_repository"
    (nested / ".git").unlink()
    assert refused(nested) == "not_a_repository"
    (nested / ".git").write_text("gitdir: /nowhere\n")
    assert refused(nested) == "broken_link"
    (nested / ".git").unlink()
    (nested / ".git").mkdir()
    assert refused(nested) == "broken_link"


def test_a_worktree_that_loses_its_link_after_opening_is_not_main(opened, top):
    nested = top / "trees" / "one"
    git(top, "worktree", "add", "-q", "-b", "side", str(nested))
    repository = opened(nested)
    commit_file(top, "only-main", "x")
    (nested / ".git").rename(top / "aside")
    for ask in (repository.status, lambda: repository.find_commit("HEAD"), repository.list_branches, repository.head):
        try:
            answer = ask()
        except ToolFailed:
            continue
        assert "only-main" not in str(answer)
        assert answer != git(top, "rev-parse", "HEAD")
    (top / ".git" / "worktrees" / "one").rename(top / "record")
    with pytest.raises(ToolFailed):
        repository.status()


def test_through_a_symbolic_link_the_paths_are_real(top, tmp_path):
    (tmp_path / "short").symlink_to(top)
    repository = open_repository(tmp_path / "short")
    assert (repository.checkout, repository.common_dir) == (top, top / ".git")


class TestWhichEngine:
    def ask(self, top: Path, *, path: str, load: bool) -> str:
        script = (
            "import sys; from pathlib import Path; from exeora_ws.git.opening import *\n"
            f"if {load}: load_libgit2()\n"
            f"r = open_repository(Path({str(top)!r})); r.head(); r.list_worktrees()\n"
            "print(type(r).__name__, 'pygit2' in sys.modules)"
        )
        environment = os.environ | {"PYTHONPATH": str(TOP), "PATH": path}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def test_a_short_command_does_not_load_libgit2(self, top):
        assert self.ask(top, path=os.environ["PATH"], load=False) == "ExecutableRepository False"

    def test_a_process_that_stays_reads_with_it(self, top):
        assert self.ask(top, path=os.environ["PATH"], load=True) == "Libgit2Repository True"

    def test_without_git_it_is_all_there_is(self, top, tmp_path):
        assert self.ask(top, path=str(tmp_path), load=False) == "Libgit2Repository True"

    def test_a_format_that_libgit2_refuses_falls_to_git(self, make_repository):
        load_libgit2()
        wide = make_repository("wide", init=("--object-format=sha256",))
        assert isinstance(open_repository(wide), ExecutableRepository)
        assert isinstance(open_repository(make_repository("plain")), Libgit2Repository)

    def test_and_without_git_it_is_one_sentence(self, make_repository, monkeypatch, tmp_path):
        wide = make_repository("wide", init=("--object-format=sha256",))
        monkeypatch.setenv("PATH", str(tmp_path))
        assert refused(wide) == "git_missing"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
class TestSomebodyElsesRepository:
    @pytest.fixture(autouse=True)
    def theirs(self, top):
        subprocess.run(["chown", "-R", "12345", top], check=True)

    @pytest.mark.parametrize("load", [False, True])
    def test_is_refused_as_git_refuses_it(self, top, load):
        if load:
            load_libgit2()
        with pytest.raises(ToolFailed) as caught:
            open_repository(top).find_commit("HEAD")
        assert caught.value.reason == "dubious_ownership"
        assert str(top) not in caught.value.message

    def test_also_where_git_could_not_be_kept_to_the_folder(self, make_repository):
        odd = make_repository("co:lon/app")
        subprocess.run(["chown", "-R", "12345", odd], check=True)
        with pytest.raises(ToolFailed) as caught:
            open_repository(odd).find_commit("HEAD")
        assert caught.value.reason == "dubious_ownership"

    def test_unless_the_user_trusts_it(self, top):
        git(top.parent, "config", "--global", "--add", "safe.directory", str(top))
        assert open_repository(top).find_commit("HEAD") is not None
