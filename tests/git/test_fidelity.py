"""What a checkout needs beyond plain files: our worktree equals the one that `git worktree add` makes beside it."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.git import seeding
from exeora_ws.git.opening import load_libgit2, open_repository
from exeora_ws.git.port import Addition

from support.repositories import commit_file, git


def tree_of(top: Path) -> dict[str, tuple[int, bytes]]:
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        if path.relative_to(top).parts[0] != ".git":
            found[str(path.relative_to(top))] = (mode, path.read_bytes() if stat.S_ISREG(mode) else b"")
    return found


def write_script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


SWAPPING_FILTER = """
import sys
source, sink = sys.stdin.buffer, sys.stdout.buffer

def read():
    packets = []
    while True:
        size = source.read(4)
        if not size:
            sys.exit()
        if size == b"0000":
            return packets
        packets.append(source.read(int(size, 16) - 4))

def write(*packets):
    for packet in packets:
        sink.write(b"%04x" % (len(packet) + 4) + packet)
    sink.write(b"0000")
    sink.flush()

read()
write(b"git-filter-server\\n", b"version=2\\n")
read()
write(b"capability=clean\\n", b"capability=smudge\\n")
while True:
    read()
    content = b"".join(read())
    write(b"status=success\\n")
    write(content.swapcase())
    write()
"""

Compare = Callable[[Path], Path]


@pytest.fixture(params=["git reads", "libgit2 reads", "copying"])
def compare(request, tmp_path, monkeypatch) -> Compare:
    """Add one worktree by us and one by git, from the same source, and compare them; gives ours."""
    if request.param == "libgit2 reads":
        load_libgit2()
    if request.param == "copying":
        monkeypatch.setattr(seeding, "SEED_INDEX_BYTES", 0)

    def run(source: Path) -> Path:
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        repository = open_repository(source)
        commit = repository.head().commit
        repository.add_worktree(Addition(ours, commit, new_branch="ours", source=repository.checkout))
        git(source, "worktree", "add", "-q", "-b", "theirs", str(theirs))
        assert tree_of(ours) == tree_of(theirs)
        assert git(ours, "status", "--porcelain") == git(theirs, "status", "--porcelain") == ""
        assert open_repository(ours).status().clean
        return ours

    return run


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository(commits=2)


class TestConversion:
    def test_a_smudge_filter(self, compare, top):
        git(top, "config", "filter.upper.smudge", "tr a-z A-Z")
        git(top, "config", "filter.upper.clean", "tr A-Z a-z")
        commit_file(top, ".gitattributes", "*.up filter=upper\n")
        commit_file(top, "a.up", "quiet\n")
        assert (compare(top) / "a.up").read_text() == "QUIET\n"

    def test_a_filter_that_stays_running(self, compare, top, tmp_path):
        (tmp_path / "filter.py").write_text(SWAPPING_FILTER)
        git(top, "config", "filter.swap.process", f"{sys.executable} {tmp_path}/filter.py")
        git(top, "config", "filter.swap.required", "true")
        commit_file(top, ".gitattributes", "*.up filter=swap\n")
        for number in range(5):
            commit_file(top, f"{number}.up", "Quiet\n")
        assert git(top, "show", "HEAD:1.up") == "qUIET"
        assert (compare(top) / "1.up").read_text() == "Quiet\n"

    def test_a_filter_that_is_not_set_up_here(self, compare, top):
        commit_file(top, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
        commit_file(top, "a.bin", "version https://git-lfs.github.com/spec/v1\n")
        assert (compare(top) / "a.bin").read_text().startswith("version")

    @pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16", "ISO-8859-1"])
    def test_a_working_tree_encoding(self, compare, top, encoding):
        commit_file(top, ".gitattributes", f"*.txt text working-tree-encoding={encoding}\n")
        commit_file(top, "wide.txt", "grün\n".encode(encoding))
        assert (compare(top) / "wide.txt").read_bytes() == "grün\n".encode(encoding)

    @pytest.mark.parametrize("setting", [("core.autocrlf", "true"), ("core.eol", "crlf")])
    def test_line_endings(self, compare, top, setting):
        commit_file(top, ".gitattributes", "*.txt text\n*.sh text eol=lf\n*.bat text eol=crlf\n")
        for name in ("a.txt", "a.sh", "a.bat"):
            commit_file(top, name, "one\ntwo\n")
        git(top, "config", *setting)
        ours = compare(top)
        assert (ours / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
        assert (ours / "a.sh").read_bytes() == b"one\ntwo\n"

    def test_expanded_identifiers(self, compare, top):
        commit_file(top, ".gitattributes", "*.c ident\n")
        commit_file(top, "a.c", "/* $Id$ */\n")
        assert b"$Id: " in (compare(top) / "a.c").read_bytes()

    def test_attributes_outside_the_tree(self, compare, top):
        git(top, "config", "filter.upper.smudge", "tr a-z A-Z")
        git(top, "config", "filter.upper.clean", "tr A-Z a-z")
        commit_file(top, "a.up", "quiet\n")
        (top / ".git" / "info" / "attributes").write_text("*.up filter=upper\n")
        assert (compare(top) / "a.up").read_text() == "QUIET\n"


class TestSparse:
    @pytest.fixture
    def sparse(self, top) -> Path:
        for name in ("kept/a", "kept/deep/b", "left/c", "other/d", "root"):
            commit_file(top, name, name)
        git(top, "sparse-checkout", "set", "--cone", "kept", "src")
        return top

    def test_the_cone_of_the_source_is_taken_over(self, compare, sparse):
        ours = compare(sparse)
        assert git(ours, "sparse-checkout", "list") == "kept\nsrc"
        assert (ours / "kept/deep/b").exists()
        assert not (ours / "left").exists()

    def test_of_a_linked_worktree_not_of_main(self, compare, sparse, tmp_path):
        linked = tmp_path / "linked"
        git(sparse, "worktree", "add", "-q", "-b", "linked", str(linked))
        git(linked, "sparse-checkout", "set", "--cone", "left")
        ours = compare(linked)
        assert git(ours, "sparse-checkout", "list") == "left"
        assert git(sparse, "sparse-checkout", "list") == "kept\nsrc"
        assert not (ours / "kept").exists()

    def test_opened_elsewhere_it_is_still_the_sources(self, sparse, tmp_path):
        linked = tmp_path / "linked"
        git(sparse, "worktree", "add", "-q", "-b", "linked", str(linked))
        git(linked, "sparse-checkout", "set", "--cone", "left")
        repository = open_repository(sparse)
        repository.add_worktree(Addition(tmp_path / "new", repository.head().commit, new_branch="new", source=linked))
        assert git(tmp_path / "new", "sparse-checkout", "list") == "left"
        assert git(tmp_path / "new", "status", "--porcelain") == ""

    def test_patterns_without_cone(self, compare, sparse):
        git(sparse, "sparse-checkout", "set", "--no-cone", "/*", "!left/")
        ours = compare(sparse)
        assert (ours / "other/d").exists()
        assert not (ours / "left").exists()

    def test_a_sparse_index(self, compare, sparse):
        git(sparse, "sparse-checkout", "set", "--cone", "--sparse-index", "kept")
        assert not (compare(sparse) / "left").exists()

    def test_without_a_source_the_whole_tree_is_there(self, sparse, tmp_path):
        repository = open_repository(sparse)
        repository.add_worktree(Addition(tmp_path / "new", repository.head().commit, new_branch="new"))
        assert (tmp_path / "new" / "left" / "c").exists()
        assert git(tmp_path / "new", "status", "--porcelain") == ""
        assert git(sparse, "sparse-checkout", "list") == "kept\nsrc"

    def test_configuration_of_one_worktree_is_taken_over(self, compare, top):
        git(top, "config", "extensions.worktreeConfig", "true")
        git(top, "config", "--worktree", "user.email", "only@main.invalid")
        git(top, "config", "--worktree", "core.worktree", str(top))
        ours = compare(top)
        assert git(ours, "config", "user.email") == "only@main.invalid"
        assert Path(git(ours, "rev-parse", "--show-toplevel")) == ours


class TestBareWithConfigurationOfSingleWorktrees:
    """There `core.bare` stands in `config.worktree` of the shared folder."""

    @pytest.fixture
    def linked(self, top, tmp_path) -> Path:
        git(tmp_path, "clone", "-q", "--bare", str(top), "app.git")
        git(tmp_path / "app.git", "worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"))
        git(tmp_path / "linked", "sparse-checkout", "set", "src")
        assert "bare" in (tmp_path / "app.git" / "config.worktree").read_text()
        return tmp_path / "linked"

    def test_from_the_worktree_with_its_cone(self, compare, linked, tmp_path):
        assert git(compare(linked), "sparse-checkout", "list") == "src"
        main, *_ = open_repository(linked).list_worktrees()
        assert (main.path, main.bare) == (tmp_path / "app.git", True)

    @pytest.mark.parametrize("load", [False, True])
    def test_from_the_bare_folder(self, linked, tmp_path, load):
        if load:
            load_libgit2()
        repository = open_repository(tmp_path / "app.git")
        assert repository.bare
        repository.add_worktree(Addition(tmp_path / "new", repository.head().commit, new_branch="new"))
        assert git(tmp_path / "new", "status", "--porcelain") == ""
        assert open_repository(tmp_path / "new").status().clean
        assert (tmp_path / "new" / "README.md").exists()


class TestHooks:
    REPORT = 'echo "$1 $2 $3 $(pwd) ${GIT_DIR-unset}" >> "$HOME/hook"\n'

    def test_the_hook_runs_as_git_runs_it(self, compare, top, home):
        write_script(top / ".git" / "hooks" / "post-checkout", self.REPORT)
        ours = compare(top)
        by_us, by_git = (home / "hook").read_text().splitlines()
        assert by_us.replace(str(ours), "") == by_git.replace(str(ours.parent / "theirs"), "")

    @pytest.mark.parametrize("absolute", [True, False])
    def test_in_a_folder_of_hooks(self, compare, top, home, absolute):
        write_script(top / "hooks" / "post-checkout", self.REPORT)
        git(top, "add", "-A")
        git(top, "commit", "-qm", "hooks")
        git(top, "config", "core.hooksPath", str(top / "hooks") if absolute else "hooks")
        compare(top)
        assert len((home / "hook").read_text().splitlines()) == 2

    def test_one_that_is_not_executable_does_not(self, compare, top, home):
        write_script(top / ".git" / "hooks" / "post-checkout", self.REPORT).chmod(0o644)
        compare(top)
        assert not (home / "hook").exists()

    def test_what_it_writes_stays(self, top, tmp_path):
        write_script(top / ".git" / "hooks" / "post-checkout", "echo made > made-by-hook; echo noise; echo more >&2\n")
        repository = open_repository(top)
        repository.add_worktree(Addition(tmp_path / "new", repository.head().commit, new_branch="new", source=top))
        assert (tmp_path / "new" / "made-by-hook").read_text() == "made\n"


class TestSubmodules:
    def test_they_are_not_initialised_as_with_git(self, compare, top, make_repository):
        git(top, "submodule", "--quiet", "add", str(make_repository("inner")), "inner")
        git(top, "commit", "-qm", "submodule")
        assert list((compare(top) / "inner").iterdir()) == []

    def test_nor_with_submodule_recurse(self, compare, top, make_repository):
        git(top, "submodule", "--quiet", "add", str(make_repository("inner")), "inner")
        git(top, "commit", "-qm", "submodule")
        git(top, "config", "submodule.recurse", "true")
        compare(top)


class TestFormats:
    """libgit2 refuses most of these: then git reads as well."""

    def walk(self, compare, top: Path) -> None:
        ours = compare(top)
        repository = open_repository(top)
        assert [w.branch for w in repository.list_worktrees()] == [repository.head().branch, "ours", "theirs"]
        assert repository.find_commit("HEAD") == git(top, "rev-parse", "HEAD")
        assert repository.is_ancestor(repository.find_commit("HEAD~1"), repository.head().commit)
        (ours / "README.md").write_text("changed")
        assert open_repository(ours).status().unstaged == ("README.md",)
        commit = repository.find_branch("ours")
        assert repository.delete_branch("ours", commit).reason == "checked_out"
        repository.create_branch("spare", commit)
        assert repository.delete_branch("spare", commit).deleted

    def test_sha256(self, compare, make_repository):
        self.walk(compare, make_repository("wide", commits=2, init=("--object-format=sha256",)))

    def test_reftable(self, compare, make_repository):
        try:
            top = make_repository("tables", commits=2, init=("--ref-format=reftable",))
        except AssertionError:
            pytest.skip("this git has no reftable")
        self.walk(compare, top)

    def test_a_split_index(self, compare, top):
        git(top, "config", "core.splitIndex", "true")
        git(top, "update-index", "--split-index")
        self.walk(compare, top)

    @pytest.mark.parametrize("version", ["4", "2"])
    def test_an_index_version(self, compare, top, version):
        git(top, "config", "index.version", version)
        self.walk(compare, top)

    def test_a_partial_clone(self, compare, top, tmp_path):
        git(top, "config", "uploadpack.allowFilter", "true")
        git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{top}", "partial")
        self.walk(compare, tmp_path / "partial")

    def test_a_shallow_clone(self, compare, top, tmp_path):
        git(tmp_path, "clone", "-q", "--depth=2", f"file://{top}", "shallow")
        self.walk(compare, tmp_path / "shallow")

    def test_borrowed_objects(self, compare, top, tmp_path):
        git(tmp_path, "clone", "-q", "--shared", str(top), "borrowing")
        self.walk(compare, tmp_path / "borrowing")

    def test_packed_with_a_graph(self, compare, top):
        git(top, "gc", "-q")
        git(top, "commit-graph", "write", "--reachable")
        self.walk(compare, top)

    def test_a_missing_object_of_a_partial_clone_is_one_sentence(self, top, tmp_path, trace):
        git(top, "config", "uploadpack.allowFilter", "true")
        git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{top}", "partial")
        os.rename(top, tmp_path / "away")
        repository = open_repository(tmp_path / "partial")
        before = trace_bare(tmp_path / "partial")
        with pytest.raises(ToolFailed) as caught:
            repository.add_worktree(
                Addition(tmp_path / "new", repository.head().commit, new_branch="new", source=tmp_path / "partial")
            )
        assert caught.value.reason == "remote_unreachable"
        assert str(tmp_path) not in caught.value.message
        assert not (tmp_path / "new").exists()
        assert trace_bare(tmp_path / "partial") == before


def trace_bare(top: Path) -> tuple[str, list[str]]:
    return git(top, "for-each-ref"), sorted(os.listdir(top / ".git"))
