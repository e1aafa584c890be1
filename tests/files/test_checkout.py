"""In a Git checkout a listing is Git's own: tracked files are there whatever the rules say, and only what is there."""

import os
import random
import subprocess
import threading
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled
from exeora_ws.files.checkout import CheckedOut
from exeora_ws.files.globs import parse_glob
from exeora_ws.files.listing import Entry, list_tree
from exeora_ws.files.reach import Reach
from exeora_ws.files.ripgrep import Patience, Ripgrep
from exeora_ws.files.searching import Query, search
from exeora_ws.git.contents import Contents, list_contents
from hypothesis import given
from hypothesis import strategies as st

from support.repositories import git


@pytest.fixture
def tree(reach: Reach, ripgrep: Ripgrep):
    def run(path: str = ".", glob: str | None = None, limit: int = 1_000):
        with reach.locate_for_reading(path) as spot:
            chosen = parse_glob(glob) if glob else None
            return list_tree(spot, ripgrep, Patience(Cancellation()), glob=chosen, limit=limit)

    return run


@pytest.fixture
def paths(tree):
    return lambda *args, **options: [entry.path for entry in tree(*args, **options).entries]


@pytest.fixture
def grep(reach: Reach, ripgrep: Ripgrep):
    def run(pattern: str, path: str = ".", glob: str | None = None, limit: int = 200):
        query = Query(pattern, glob=parse_glob(glob) if glob else None)
        with reach.locate_for_reading(path) as spot:
            return search(spot, query, ripgrep, Patience(Cancellation()), limit=limit)

    return run


@pytest.fixture
def repository(top: Path) -> Path:
    git(top, "init", "-q")
    return top


def make(top: Path, *names: str, content: str = "x") -> None:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(content)


def commit(top: Path) -> None:
    git(top, "add", "-A", "-f")
    git(top, "commit", "-q", "-m", "all")


def test_what_is_tracked_is_listed_though_a_rule_ignores_it(paths, repository: Path):
    make(repository, "a.py", "build/kept.bin", "dist/kept.js")
    commit(repository)
    make(repository, ".gitignore", content="*.bin\ndist/\n*.log\n")
    make(repository, "build/new.bin", "dist/new.js", "b.log", "b.py")
    assert paths() == [".gitignore", "a.py", "b.py", "build/kept.bin", "dist/kept.js"]
    assert paths("build") == ["build/kept.bin"]
    assert paths("dist") == ["dist/kept.js", "dist/new.js"]  # an ignored folder that is named is looked into
    assert paths(glob="*.bin") == ["build/kept.bin"]


def test_what_is_tracked_is_searched_though_a_rule_ignores_it(grep, repository: Path):
    make(repository, "a.py", "bin/tool", "dist/kept.js", "node_modules/m.js", "other.bin", content="needle\n")
    (repository / "dist" / "picture").write_bytes(b"needle\0")
    (repository / "dist" / "link").symlink_to("/etc/passwd")
    make(repository, "dist/gone.js", content="needle\n")
    commit(repository)
    (repository / "dist" / "gone.js").unlink()
    make(repository, ".gitignore", content="bin/\ndist/\n*.bin\n")
    make(repository, "bin/new", "dist/new.js", "new.bin", content="needle\n")
    found = grep("needle|root")
    assert [match.path for match in found.matches] == ["a.py", "bin/tool", "dist/kept.js", "other.bin"]
    assert (found.truncated, found.skipped_binary, found.unreadable) == (False, 1, 0)
    assert [match.path for match in grep("needle", glob="*.bin").matches] == ["other.bin"]
    assert [match.path for match in grep("needle", "bin").matches] == ["bin/new", "bin/tool"]
    for limit in range(1, 6):
        cut = grep("needle", limit=limit)
        assert [match.path for match in cut.matches] == ["a.py", "bin/tool", "dist/kept.js", "other.bin"][:limit]
        assert cut.truncated == (limit < 4)


def test_many_that_are_tracked_and_ignored_are_all_searched(grep, repository: Path):
    names = [f"out/{'x' * 150}-{number:04}" for number in range(900)]
    make(repository, *names, content="needle\n")
    commit(repository)
    make(repository, ".gitignore", content="out/\n")
    assert [match.path for match in grep("needle", limit=1_000).matches] == names
    got = grep("needle", limit=100)
    assert ([match.path for match in got.matches], got.truncated) == (names[:100], True)
    (repository / names[-1]).write_text("the last\n")
    assert [match.path for match in grep("the last").matches] == names[-1:]


def test_what_is_gone_or_something_else_by_now_is_neither_listed_nor_counted(tree, repository: Path):
    make(repository, *(f"gone/{number}" for number in range(30)), *(f"there/{number:02}" for number in range(3)))
    make(repository, "file", "folder/inner", "linked/inner", "pipe")
    commit(repository)
    for number in range(30):
        (repository / "gone" / str(number)).unlink()
    (repository / "file").unlink()
    make(repository, "file/now-a-folder")
    (repository / "linked" / "inner").unlink()
    (repository / "linked").rmdir()
    (repository / "linked").symlink_to("folder")
    (repository / "pipe").unlink()
    os.mkfifo(repository / "pipe")
    expected = [
        Entry("file/now-a-folder", "file", 1),
        Entry("folder/inner", "file", 1),
        Entry("linked", "symlink", None),
        *(Entry(f"there/{number:02}", "file", 1) for number in range(3)),
    ]
    for limit in range(1, 8):
        got = tree(limit=limit)
        assert list(got.entries) == expected[:limit]
        assert got.truncated == (limit < len(expected))


def test_many_that_are_gone_hide_none_that_are_there(tree, repository: Path):
    make(repository, *(f"a/{number}" for number in range(6_000)), "z")
    commit(repository)
    for number in range(6_000):
        (repository / "a" / str(number)).unlink()
    got = tree(limit=3)
    assert ([entry.path for entry in got.entries], got.truncated) == (["z"], False)


def test_repositories_inside_are_looked_into(paths, repository: Path, make_repository):
    inner = make_repository("inner")
    git(repository, "submodule", "--quiet", "add", str(inner), "module")
    commit(repository)
    git(repository, "clone", "-q", str(inner), "cloned")
    (repository / "cloned" / "link").symlink_to("README.md")
    make(repository, "cloned/.gitignore", content="*.log\n")
    make(repository, "cloned/a.log", "a.txt")
    assert paths() == [
        ".gitmodules",
        "a.txt",
        "cloned/.gitignore",
        "cloned/README.md",
        "cloned/link",
        "cloned/src/file-0.txt",
        "module/README.md",
        "module/src/file-0.txt",
    ]
    assert paths(glob="*.md") == ["cloned/README.md", "module/README.md"]
    assert paths(glob="cloned/**") == ["cloned/.gitignore", "cloned/README.md", "cloned/link", "cloned/src/file-0.txt"]
    assert paths("module") == ["module/README.md", "module/src/file-0.txt"]
    assert paths("cloned/src") == ["cloned/src/file-0.txt"]
    assert paths("module/src") == ["module/src/file-0.txt"]
    (repository / "module").rename(repository / "elsewhere")
    (repository / "module").symlink_to("elsewhere")
    assert not [path for path in paths() if path.startswith("module/")]


def test_node_modules_is_left_out_tracked_or_not_unless_named(paths, repository: Path):
    make(repository, "node_modules/a/x.js", "lib/node_modules/b/y.js", "my_node_modules/z.js")
    commit(repository)
    make(repository, "node_modules/new/x.js", "other/node_modules/c.js", "other/d.js")
    assert paths() == ["my_node_modules/z.js", "other/d.js"]
    assert paths("node_modules/new") == ["node_modules/new/x.js"]
    assert paths("node_modules") == ["node_modules/a/x.js", "node_modules/new/x.js"]


def test_a_conflicted_file_is_listed_once(paths, repository: Path):
    make(repository, "a")
    commit(repository)
    blob = git(repository, "hash-object", "-w", "a")
    records = "".join(f"100644 {blob} {stage}\ta\n" for stage in (1, 2, 3))
    git(repository, "update-index", "--force-remove", "a")
    git(repository, "update-index", "--index-info", stdin=records.encode())
    assert paths() == ["a"]


def test_names_of_all_kinds_come_through(paths, repository: Path):
    names = [b"\xff.txt", "h\u00e9.txt".encode(), b"new\nline", b"H 100644 abc 0\tx", b"? q", b" lead", b"tab\t"]
    for name in names:
        Path(os.fsdecode(os.fsencode(repository) + b"/" + name)).write_text("x")
    untracked = paths()
    commit(repository)
    assert paths() == untracked
    assert len(untracked) == len(names)


def test_worktree_setting_and_variables_have_no_say(paths, repository: Path, tmp_path: Path, monkeypatch):
    make(repository, "mine")
    other = tmp_path / "other"
    make(other, "theirs")
    git(repository, "config", "core.worktree", str(other))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "0")
    assert paths() == ["mine"]


@pytest.mark.parametrize("damage", ["index", "HEAD"])
def test_where_git_cannot_say_ripgrep_does(paths, repository: Path, damage: str):
    make(repository, "a", "b.log")
    commit(repository)
    make(repository, ".gitignore", content="*.log\n")
    (repository / ".git" / damage).write_bytes(b"nonsense")
    assert paths() == [".gitignore", "a"]


def test_without_git_ripgrep_does(paths, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    make(repository, "a", "b.log")
    commit(repository)
    make(repository, ".gitignore", content="*.log\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert paths() == [".gitignore", "a"]


def test_a_listing_taken_back_ends_git(repository: Path):
    os.mkfifo(repository / ".gitignore")  # git waits for somebody to write into it
    cancellation = Cancellation()
    timer = threading.Timer(0.1, cancellation.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        list_contents(str(repository), ".", cancellation, 60)
    timer.join()
    assert list_contents(str(repository), ".", Cancellation(), 0.1) is None


def test_a_linked_worktree_and_a_folder_of_one(repository: Path, tmp_path: Path, home: Path, ripgrep: Ripgrep):
    make(repository, "sub/deep/a.log", "sub/b", "other/c")
    commit(repository)
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    make(tmp_path / "linked", ".gitignore", content="*.log\n")
    make(tmp_path / "linked", "sub/new", "sub/new.log")
    with Reach(tmp_path / "linked" / "sub", home).locate_for_reading(".") as spot:
        got = list_tree(spot, ripgrep, Patience(Cancellation()))
    assert [entry.path for entry in got.entries] == ["b", "deep/a.log", "new"]


@pytest.mark.parametrize("seed", range(3))
def test_the_first_are_the_first_however_many_there_are(seed: int):
    chance = random.Random(seed)
    names = sorted({"/".join(chance.choices("abcd.-", k=chance.randint(1, 7))) for _ in range(9_000)})
    chance.shuffle(names)
    records = b"".join(b"H 100644 %040d 0\t%s\0" % (0, name.encode()) for name in names)
    ordered = sorted(names, key=lambda name: name.replace("/", "\0"))
    for count in (1, 7, 500, len(names), len(names) + 1):
        found = CheckedOut(Contents(records, 0), ".", None)
        assert found.find_first(count) == (ordered[:count], count < len(names))


_PARTS = st.text("ab.*?[]!{,}\\/-", min_size=1, max_size=8)


@given(_PARTS, st.lists(st.text("ab.-", min_size=1, max_size=4), min_size=1, max_size=4))
def test_what_a_glob_chooses_holds_one_of_its_needles(text: str, parts: list[str]):
    try:
        glob = parse_glob(text)
    except Exception:  # noqa: BLE001 - refused ones choose nothing
        return
    path = "/".join(parts)
    if glob.matches(path):
        assert not glob.needles or any(needle in path.encode() for needle in glob.needles)
    elif glob.everything:
        raise AssertionError(text)


def test_an_untouched_checkout_is_listed_as_git_lists_it(paths, repository: Path, tmp_path: Path):
    chance = random.Random(1)
    make(
        repository,
        *{"/".join(chance.choices(("a", "b.py", "c-d", "e.d"), k=chance.randint(1, 6))) + "!" for _ in range(300)},
    )
    make(repository, ".gitignore", content="c-d!\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "some")
    listed = subprocess.run(
        ["git", "-C", repository, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert paths() == sorted(listed, key=lambda name: name.replace("/", "\0"))
