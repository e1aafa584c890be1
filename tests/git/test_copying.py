"""A worktree made of copies equals the one that `git worktree add` makes, whatever the source has become meanwhile."""

import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ToolFailed
from exeora_ws.git import command, copier, seeding
from exeora_ws.git.index_file import MODE_AT, STAT_BYTES, Index, Unsuited
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Addition
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from support.repositories import commit_file, git

TOP = Path(__file__).parents[2]
_SIZE_FROM = MODE_AT  # mode, user, group and size are the same in both; times, device and inode are not


@pytest.fixture(autouse=True)
def codes(monkeypatch) -> list[int]:
    """Copy however small the source is, and note how the program ended."""
    ended: list[int] = []
    make = seeding.make

    def noted(*arguments: object) -> int:
        ended.append(make(*arguments))  # type: ignore[arg-type]
        return ended[-1]

    monkeypatch.setattr(seeding, "SEED_INDEX_BYTES", 0)
    monkeypatch.setattr(seeding, "make", noted)
    return ended


def files_of(top: Path) -> dict[bytes, tuple[int, int, bytes]]:
    """Every entry but `.git`, with its mode, its links and its content."""
    found = {}
    for folder, folders, names in os.walk(os.fsencode(top)):
        if b".git" in folders:
            folders.remove(b".git")
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            content = b""
            if stat.S_ISLNK(facts.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(facts.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
                assert facts.st_nlink == 1
            found[os.path.relpath(path, os.fsencode(top))] = (facts.st_mode, 0, content)
    found.pop(b".git", None)
    return found


def read_index(top: Path) -> bytes:
    return Path((top / ".git").read_text().removeprefix("gitdir: ").strip(), "index").read_bytes()


def index_of(top: Path, commit: str) -> tuple[bytes, dict[bytes, bytes]]:
    """The entries of an index, but for the stat data that must differ, and its extensions."""
    hash_bytes = len(commit) // 2
    raw = read_index(top)
    algorithm = "sha1" if hash_bytes == 20 else "sha256"
    assert raw[-hash_bytes:] in (hashlib.new(algorithm, raw[:-hash_bytes]).digest(), bytes(hash_bytes))
    data = bytearray(raw)
    index = Index(raw, hash_bytes)
    for at, path in index.entries:
        facts = os.lstat(os.path.join(os.fsencode(top), path))
        said = int.from_bytes(raw[at : at + 4], "big"), int.from_bytes(raw[at + 20 : at + 24], "big")
        assert said == (int(facts.st_ctime) & 0xFFFFFFFF, facts.st_ino & 0xFFFFFFFF)
        data[at : at + _SIZE_FROM] = bytes(_SIZE_FROM)
    extensions = index.find_extensions()
    extensions.pop(b"UNTR", None)  # an empty cache of untracked files, which the next status makes
    return bytes(data[: index.end]), extensions


def compare(source: Path, into: Path, commit: str = "HEAD", start: Path | None = None, *, clean: bool = True) -> Path:
    """Add one worktree by us and one by git, and compare them; gives ours.

    Where a conversion does not give back what is recorded, git itself takes a file for changed when it looks closely.
    """
    ours, theirs = into / "ours", into / "theirs"
    wanted = git(source, "rev-parse", commit)
    repository = open_repository(source)
    repository.add_worktree(Addition(ours, wanted, new_branch="ours", source=source, like=start))
    git(source, "worktree", "add", "-q", "-b", "theirs", str(theirs), wanted)
    assert not clean or git(ours, "diff-files", "--name-only") == ""
    assert files_of(ours) == files_of(theirs)
    assert index_of(ours, wanted) == index_of(theirs, wanted)
    assert not clean or git(ours, "status", "--porcelain", "--branch") == "## ours"
    return ours


# What may be in a commit.

NAMES = st.sampled_from(
    (b"a", b"B", b"a b", b"x\n", b"\xff\xfe", "ä".encode(), "a\u0308".encode(), b'q"', b"-n", b"c.txt", b"d.up", b"e.c")
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
SIZES = st.sampled_from((0, 1, 100, 65_535, 65_536, 65_537, 200_000))
CONTENTS = st.builds(
    lambda size, fill: (fill * (size + 1))[:size], SIZES, st.sampled_from((b"a\n", b"$Id$\n", b"\0\r\n"))
)
KINDS = st.one_of(
    st.tuples(st.just("file"), CONTENTS),
    st.tuples(st.just("program"), CONTENTS),
    st.tuples(st.just("link"), st.sampled_from((b"a", b"../../etc", b"nowhere\xff"))),
    st.tuples(st.just("submodule"), st.just(b"")),
)
TREES = st.dictionaries(PATHS, KINDS, min_size=1, max_size=12)
ATTRIBUTES = st.sampled_from(
    (
        b"* text=auto\n",
        b"*.txt text eol=crlf\n",
        b"* text=auto eol=lf\n*.c ident\n",
        b"[attr]loud filter=upper\n*.up loud\n",
        b"a filter=upper\n",
        b"*.txt working-tree-encoding=UTF-16LE\n",
    )
)
SETTINGS = st.sampled_from(
    (
        (),
        ("core.autocrlf", "true"),
        ("core.untrackedCache", "true"),
        ("feature.manyFiles", "true"),
        ("core.eol", "crlf"),
    )
)


def plant(top: Path, *trees: dict[bytes, tuple[str, bytes]]) -> None:
    """Commit trees one after the other, as git takes them in without touching a file, and check out the last."""
    lines = []
    for tree in trees:
        lines.append(b"commit refs/heads/main\ncommitter A <a@b.invalid> 1700000000 +0000\ndata 1\nx\ndeleteall\n")
        taken: set[bytes] = set()
        for path, (kind, content) in sorted(tree.items()):
            above = {path[:at] for at in range(len(path)) if path[at : at + 1] == b"/"}
            if above & taken or any(other.startswith(path + b"/") for other in taken):
                continue
            taken.add(path)
            quoted = b'"' + path.replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
            if kind == "submodule":
                lines.append(b"M 160000 %s %s\n" % (b"1" * 40, quoted))
                continue
            mode = {"file": b"100644", "program": b"100755", "link": b"120000"}[kind]
            lines.append(b"M %s inline %s\ndata %d\n%s\n" % (mode, quoted, len(content), content))
    git(top, "fast-import", "--quiet", "--force", stdin=b"".join(lines))
    git(top, "reset", "-q", "--hard")


# What may become of the source.


def edit_unseen(path: bytes, top: Path) -> None:
    """Change bytes, not the size, and set the times back."""
    facts = os.lstat(path)
    if stat.S_ISREG(facts.st_mode) and facts.st_size:
        with open(path, "r+b") as stream:
            stream.write(b"#")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def stage_an_edit(path: bytes, top: Path) -> None:
    if os.path.isfile(path) and not os.path.islink(path):
        with open(path, "ab") as stream:
            stream.write(b"more\n")
        git(top, "add", "-A", check=False)  # it takes in no FIFO


def mark_unchanged(path: bytes, top: Path) -> None:
    mark("--assume-unchanged", path, top)


def skip(path: bytes, top: Path) -> None:
    mark("--skip-worktree", path, top)


def mark(how: str, path: bytes, top: Path) -> None:
    asked = os.path.relpath(path, os.fsencode(top)) + b"\0"
    git(top, "update-index", "-z", how, "--stdin", stdin=asked, check=False)  # a folder cannot be marked
    edit_unseen(path, top)


def replace_by_fifo(path: bytes, top: Path) -> None:
    delete(path, top)
    os.mkfifo(path)


def replace_by_link(path: bytes, top: Path) -> None:
    delete(path, top)
    os.symlink(b"/etc/hostname", path)


def replace_by_folder(path: bytes, top: Path) -> None:
    delete(path, top)
    os.mkdir(path)


def delete(path: bytes, top: Path) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def link_hard(path: bytes, top: Path) -> None:
    if os.path.isfile(path) and not os.path.islink(path) and not os.path.lexists(path + b".hard"):
        os.link(path, path + b".hard")


def make_program(path: bytes, top: Path) -> None:
    if not os.path.islink(path):
        os.chmod(path, 0o755)


def intend_to_add(path: bytes, top: Path) -> None:
    Path(top, "intended").write_text("not yet")
    git(top, "add", "--intent-to-add", "intended")


def split(path: bytes, top: Path) -> None:
    git(top, "update-index", "--split-index")


CHANGES = (
    edit_unseen,
    stage_an_edit,
    mark_unchanged,
    skip,
    replace_by_fifo,
    replace_by_link,
    replace_by_folder,
    delete,
    link_hard,
    make_program,
    intend_to_add,
    split,
)


@contextlib.contextmanager
def new_repository() -> Iterator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder).resolve()
        top = into / "source"
        git(into, "init", "-q", "-b", "main", str(top))
        with (top / ".git/config").open("a") as stream:
            stream.write('[filter "upper"]\n\tsmudge = tr a-z A-Z\n\tclean = tr A-Z a-z\n')
        yield top, into


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tree=TREES,
    attributes=st.none() | ATTRIBUTES,
    setting=st.just(()) | SETTINGS,
    changes=st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 20)), max_size=3),
    other=st.booleans(),
)
@example(tree={b"a": ("file", b"x\n")}, attributes=None, setting=(), changes=[(edit_unseen, 0)], other=False)
@example(
    tree={b"a/B": ("file", b"x\n"), b"c.txt": ("submodule", b"")}, attributes=None, setting=(), changes=[], other=True
)
def test_it_equals_what_git_makes(codes, tree, attributes, setting, changes, other):
    with new_repository() as (top, into):
        if attributes is not None:
            tree = tree | {b".gitattributes": ("file", attributes)}
        plant(top, *([tree | {b"a": ("file", b"other\n")}] if other else []), tree)
        if setting:
            git(top, "config", *setting)
        present = sorted(files_of(top))
        for change, number in changes:
            path = os.path.join(os.fsencode(top), present[number % len(present)])
            if os.path.lexists(path):
                change(path, top)
        codes.clear()
        compare(top, into, "HEAD~1" if other else "HEAD", clean=attributes is None and not setting)
        event(f"ended {codes}")
        assert set(codes) <= {copier.COMPLETE, copier.INCOMPLETE}


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository(commits=2)


class TestHowItIsDone:
    def test_a_clean_source_needs_no_more_of_git(self, codes, top, tmp_path):
        compare(top, tmp_path)
        assert codes == [copier.COMPLETE]

    def test_an_edit_that_is_not_committed_stays_where_it_is(self, codes, top, tmp_path):
        (top / "README.md").write_text("mine\n")
        assert "mine" not in (compare(top, tmp_path) / "README.md").read_text()
        assert codes == [copier.INCOMPLETE]

    def test_a_file_that_was_only_touched_is_taken(self, codes, top, tmp_path):
        os.utime(top / "README.md", (1, 1))
        compare(top, tmp_path)
        assert codes == [copier.COMPLETE]

    def test_line_endings_that_git_does_not_see(self, codes, top, tmp_path):
        commit_file(top, ".gitattributes", "* text=auto\n")
        commit_file(top, "a.txt", "one\r\ntwo\r\n")
        assert git(top, "status", "--porcelain") == ""
        assert (compare(top, tmp_path) / "a.txt").read_bytes() == b"one\ntwo\n"
        assert codes == [copier.INCOMPLETE]

    def test_sha256(self, codes, make_repository, tmp_path):
        compare(make_repository("wide", commits=2, init=("--object-format=sha256",)), tmp_path)
        assert codes == [copier.COMPLETE]

    @pytest.mark.parametrize("version", ["3", "4"])
    def test_other_versions_of_the_index(self, codes, top, tmp_path, version):
        git(top, "config", "index.version", version)
        git(top, "update-index", "--index-version", version)
        compare(top, tmp_path)
        assert codes == [copier.COMPLETE]

    def test_an_index_that_is_shared(self, codes, top, tmp_path):
        git(top, "config", "core.sharedRepository", "group")
        ours = compare(top, tmp_path)
        modes = [
            os.stat(git(w, "rev-parse", "--path-format=absolute", "--git-path", "index")).st_mode
            for w in (ours, tmp_path / "theirs")
        ]
        assert modes[0] == modes[1]
        assert codes == [copier.COMPLETE]

    def test_the_umask_counts(self, codes, top, tmp_path):
        (top / "run.sh").write_text("true\n")
        (top / "run.sh").chmod(0o755)
        git(top, "add", "-A")
        git(top, "commit", "-qm", "program")
        before = os.umask(0o027)
        try:
            ours = compare(top, tmp_path)
        finally:
            os.umask(before)
        assert stat.S_IMODE((ours / "run.sh").stat().st_mode) == 0o750
        assert codes == [copier.COMPLETE]

    def test_another_checkout_that_is_at_the_commit(self, codes, top, tmp_path):
        git(top, "worktree", "add", "-q", "-b", "there", str(tmp_path / "there"), "HEAD~1")
        compare(top, tmp_path, "HEAD~1", start=tmp_path / "there")
        assert codes == [copier.COMPLETE]

    def test_a_source_with_little_in_common_is_left_alone_soon(self, codes, top, tmp_path):
        for number in range(600):
            (top / f"old-{number}").write_text(f"old {number}")
        git(top, "add", "-A")
        git(top, "commit", "-qm", "old")
        for number in range(600):
            (top / f"old-{number}").write_text(f"new {number}")
        compare(top, tmp_path)
        assert codes == [copier.INCOMPLETE]


class TestWhenGitDoesIt:
    @pytest.mark.parametrize("hook", ["post-checkout", "post-index-change"])
    def test_a_hook_wants_to_see_it(self, codes, top, tmp_path, hook):
        path = top / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/ran\n")
        path.chmod(0o755)
        open_repository(top).add_worktree(
            Addition(tmp_path / "x", git(top, "rev-parse", "HEAD"), new_branch="x", source=top)
        )
        assert (tmp_path / "ran").read_text().startswith("ran")
        assert codes == []

    def test_the_hooks_are_elsewhere(self, codes, top, tmp_path):
        git(top, "config", "core.hooksPath", str(tmp_path / "hooks"))
        compare(top, tmp_path)
        assert codes == [copier.COMPLETE]
        (tmp_path / "hooks").mkdir()
        (tmp_path / "hooks/post-checkout").write_text("#!/bin/sh\n")
        (tmp_path / "hooks/post-checkout").chmod(0o755)
        open_repository(top).add_worktree(
            Addition(tmp_path / "x", git(top, "rev-parse", "HEAD"), new_branch="x", source=top)
        )
        assert codes == [copier.COMPLETE]

    def test_an_object_is_replaced(self, codes, top, tmp_path):
        old = git(top, "rev-parse", "HEAD:README.md")
        git(top, "replace", old, git(top, "hash-object", "-w", "--stdin", stdin=b"another\n"))
        commit = git(top, "rev-parse", "HEAD")
        open_repository(top).add_worktree(Addition(tmp_path / "x", commit, new_branch="x", source=top))
        assert (tmp_path / "x" / "README.md").read_text() == "another\n"
        assert codes == []
        git(top, "pack-refs", "--all")
        assert not seeding.can_seed(command.Git(top, top / ".git"), open_repository(top).require_source(top))

    def test_a_hook_in_the_configuration(self, codes, top, tmp_path):
        git(top, "config", "hook.mine.event", "post-checkout")
        git(top, "config", "hook.mine.command", "true")
        compare(top, tmp_path)
        assert codes == []

    @pytest.mark.parametrize("spelt", ["false", "00"])
    def test_a_setting_however_it_is_spelt(self, codes, top, tmp_path, spelt):
        (top / "link").symlink_to("README.md")
        git(top, "add", "-A")
        git(top, "commit", "-qm", "link")
        git(top, "config", "core.symlinks", spelt)
        compare(top, tmp_path)
        assert codes == []

    @pytest.mark.parametrize("setting", ["core.autocrlf", "core.ignorecase", "core.splitIndex", "core.sparseCheckout"])
    def test_a_setting_that_changes_what_is_written(self, codes, top, tmp_path, setting):
        git(top, "config", setting, "true")
        open_repository(top).add_worktree(
            Addition(tmp_path / "x", git(top, "rev-parse", "HEAD"), new_branch="x", source=top)
        )
        assert git(tmp_path / "x", "status", "--porcelain") == ""
        assert codes == []

    def test_a_setting_for_the_new_place_alone(self, codes, top, tmp_path, home):
        (home / "crlf").write_text("[core]\n\tautocrlf = true\n")
        with (home / ".gitconfig").open("a") as stream:
            stream.write(f'[includeIf "gitdir:**/worktrees/**"]\n\tpath = {home}/crlf\n')
        assert b"\r\n" in (compare(top, tmp_path) / "README.md").read_bytes()
        assert codes == [copier.INCOMPLETE]

    def test_a_small_source(self, codes, top, tmp_path, monkeypatch):
        monkeypatch.setattr(seeding, "SEED_INDEX_BYTES", 200_000)
        open_repository(top).add_worktree(
            Addition(tmp_path / "x", git(top, "rev-parse", "HEAD"), new_branch="x", source=top)
        )
        assert codes == []

    def test_the_program_does_not_start(self, codes, top, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "executable", "/bin/false")
        compare(top, tmp_path)
        assert codes == [1]

    def test_the_program_ends_in_the_middle(self, codes, top, tmp_path, monkeypatch):
        broken = "import os, exeora_ws.git.copier as c; c.write_all = lambda *a: os._exit(9); c.main()"
        monkeypatch.setattr(seeding, "_PROGRAM", f"import sys; sys.path.append(sys.argv.pop(1)); {broken}")
        compare(top, tmp_path)
        assert codes == [9]

    def test_there_is_no_room(self, codes, top, tmp_path, trace, monkeypatch):
        full = "import os, errno\ndef full(*a, **k): raise OSError(errno.ENOSPC, 'full')\nos.utime = full\n"
        monkeypatch.setattr(seeding, "_PROGRAM", full + seeding._PROGRAM)
        before = trace(top), sorted(tmp_path.iterdir())
        commit = git(top, "rev-parse", "HEAD")
        with pytest.raises(ToolFailed) as caught:
            open_repository(top).add_worktree(Addition(tmp_path / "new", commit, new_branch="new", source=top))
        assert caught.value.reason == "disk_full"
        assert (trace(top), sorted(tmp_path.iterdir())) == before

    def test_git_adds_no_worktree(self, codes, top, tmp_path, monkeypatch):
        refusing = tmp_path / "bin" / "git"
        refusing.parent.mkdir()
        refusing.write_text(
            f'#!/bin/sh\ncase "$*" in *--no-checkout*) exit 128;; esac\nexec {shutil.which("git")} "$@"\n'
        )
        refusing.chmod(0o755)
        monkeypatch.setenv("PATH", f"{refusing.parent}:{os.environ['PATH']}")
        compare(top, tmp_path)
        assert codes == [copier.NOT_ADDED]


def test_a_source_that_is_edited_meanwhile(codes, top, tmp_path):
    for number in range(200):
        (top / f"file-{number}").write_text("0" * 5_000)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "many")
    ended = threading.Event()

    def edit() -> None:
        digit = 0
        while not ended.is_set():
            digit = (digit + 1) % 10
            for number in range(200):
                with open(top / f"file-{number}", "r+b", buffering=0) as stream:
                    stream.write(b"%d" % digit * 5_000)

    editor = threading.Thread(target=edit)
    editor.start()
    try:
        for turn in range(5):
            into = tmp_path / str(turn)
            open_repository(top).add_worktree(Addition(into, git(top, "rev-parse", "HEAD"), source=top))
            assert all((into / f"file-{number}").read_text() == "0" * 5_000 for number in range(200))
            assert git(into, "status", "--porcelain") == ""
    finally:
        ended.set()
        editor.join()
    assert set(codes) <= {copier.COMPLETE, copier.INCOMPLETE}


@pytest.fixture
def large(top) -> Path:
    """A source whose copy takes a while: many names of one large content."""
    content = os.urandom(100_000) * 20
    for number in range(100):
        (top / f"large-{number}").write_bytes(content)
    git(top, "-c", "core.compression=0", "add", "-A")
    git(top, "commit", "-qm", "large")
    return top


def wait_for(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def programs_of(home: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            ours = process.pid != os.getpid() and process.environ().get("HOME") == str(home)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_the_call_is_taken_back(large, tmp_path, trace, home):
    before = trace(large), sorted(tmp_path.iterdir())
    cancellation = Cancellation()

    def cancel() -> None:
        wait_for((tmp_path / "new" / "large-1").exists)
        cancellation.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(Cancelled):
        open_repository(large).add_worktree(
            Addition(tmp_path / "new", git(large, "rev-parse", "HEAD"), new_branch="new", source=large), cancellation
        )
    canceller.join()
    assert (trace(large), sorted(tmp_path.iterdir())) == before
    assert programs_of(home) == []


KILLED = """
import sys
from pathlib import Path
from exeora_ws.git import seeding
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Addition
seeding.SEED_INDEX_BYTES = 0
top, target = Path(sys.argv[1]), Path(sys.argv[2])
repository = open_repository(top)
repository.add_worktree(Addition(target, repository.head().commit, new_branch="new", source=top))
"""


def test_when_exeora_is_killed_the_copying_ends(large, tmp_path, home):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, large, tmp_path / "new"], env=os.environ | {"PYTHONPATH": str(TOP)}
    )
    wait_for((tmp_path / "new" / "large-1").exists)
    process.kill()
    process.wait()
    wait_for(lambda: programs_of(home) == [])


@pytest.mark.parametrize("large", [False, True])
def test_the_disk_is_full(codes, top, tmp_path, trace, large):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        for number in range(20):
            (top / f"file-{number}").write_bytes(os.urandom(100_000 if large else 30_000))
        git(top, "add", "-A")
        git(top, "commit", "-qm", "large")
        before = trace(top)
        with pytest.raises(ToolFailed) as caught:
            open_repository(top).add_worktree(
                Addition(disk / "new", git(top, "rev-parse", "HEAD"), new_branch="new", source=top)
            )
        assert caught.value.reason == "disk_full"
        assert trace(top) == before
        assert list(disk.iterdir()) == []
        assert codes == []
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


class TestTheIndexFile:
    @pytest.mark.parametrize("version", ["2", "4"])
    def test_every_entry_is_found(self, top, version):
        for name in ("a", "a.b", "a/b/c", "long/" + "x" * 200 + "/" + "y" * 200, "\n", "ü"):
            commit_file(top, f"deep/{name}" + ("/z" if name == "a" else ""), name)
        git(top, "update-index", "--index-version", version)
        index = Index((top / ".git/index").read_bytes(), 20)
        assert index.version == int(version)
        assert [os.fsdecode(path) for _, path in index.entries] == git(top, "ls-files", "-z").split("\0")[:-1]
        for at, path in index.entries:
            name = index.data[at + STAT_BYTES : at + STAT_BYTES + 20].hex()
            assert git(top, "rev-parse", f":{os.fsdecode(path)}") == name

    def test_a_name_longer_than_its_field_holds(self, top):
        path = "/".join("x" * 200 for _ in range(25))
        blob = git(top, "hash-object", "-w", "--stdin", stdin=b"deep")
        git(
            top,
            "update-index",
            "-z",
            "--index-info",
            stdin=b"".join(b"100644 %s\t%s\0" % (blob.encode(), p.encode()) for p in (path, "z")),
        )
        paths = [entry[1] for entry in Index((top / ".git/index").read_bytes(), 20).entries]
        assert paths[-2:] == [path.encode(), b"z"]

    def test_it_says_whose_tree_it_is(self, top):
        def index() -> Index:
            return Index((top / ".git/index").read_bytes(), 20)

        tree = bytes.fromhex(git(top, "rev-parse", "HEAD^{tree}"))
        assert index().is_of(tree)
        assert not index().is_of(bytes(20))
        (top / "README.md").write_text("staged\n")
        git(top, "add", "-A")
        assert not index().is_of(tree)
        git(top, "reset", "-q", "--hard")
        assert index().is_of(tree)
        git(top, "update-index", "--untracked-cache")
        assert not index().is_of(tree)

    @pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
    def test_an_entry_that_is_not_plain(self, top, flag):
        git(top, "update-index", flag, "README.md")
        with pytest.raises(Unsuited):
            Index((top / ".git/index").read_bytes(), 20)

    def test_a_split_index_is_not_fresh(self, top):
        git(top, "update-index", "--split-index")
        with pytest.raises(Unsuited):
            Index((top / ".git/index").read_bytes(), 20).require_fresh()
