"""Listings agree with git, skip nothing silently, and `truncated` is exact (cases 18, 27, 28)."""

import os
import random
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, InvalidArguments, PathEscape, PathNotFound, ToolFailed, ToolTimeout
from exeora_ws.files.globs import parse_glob
from exeora_ws.files.listing import Entry, list_folder, list_tree
from exeora_ws.files.reach import Reach
from exeora_ws.files.ripgrep import Patience, Ripgrep, find_ripgrep
from exeora_ws.files.searching import Query, search
from hypothesis import given
from hypothesis import strategies as st

from support.repositories import git


@pytest.fixture
def tree(reach: Reach, ripgrep: Ripgrep):
    def run(path: str = ".", glob: str | None = None, limit: int = 1_000, patience: Patience | None = None):
        with reach.locate_for_reading(path) as spot:
            chosen = parse_glob(glob) if glob else None
            return list_tree(spot, ripgrep, patience or Patience(Cancellation()), glob=chosen, limit=limit)

    return run


@pytest.fixture
def paths(tree):
    return lambda *args, **options: [entry.path for entry in tree(*args, **options).entries]


def make(top: Path, *names: str, content: str = "x") -> None:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(content)


def test_one_level_shows_everything_with_its_kind(reach: Reach, top: Path):
    make(top, "b.txt", ".hidden", "folder/inner", ".git/config", "node_modules/m")
    (top / ".gitignore").write_text("b.txt\n")
    (top / "link").symlink_to("/etc")
    os.mkfifo(top / "pipe")
    with reach.locate_for_reading(".") as spot:
        got = list_folder(spot)
    assert [(entry.path, entry.type, entry.size) for entry in got.entries] == [
        (".git", "directory", None),
        (".gitignore", "file", 6),
        (".hidden", "file", 1),
        ("b.txt", "file", 1),
        ("folder", "directory", None),
        ("link", "symlink", None),
        ("node_modules", "directory", None),
        ("pipe", "other", None),
    ]
    assert not got.truncated


def test_one_level_below_and_its_glob(reach: Reach, top: Path):
    make(top, "a/x.ts", "a/y.py", "a/docs/z", "a/x.ts.d/q")
    with reach.locate_for_reading("./a/") as spot:
        assert [e.path for e in list_folder(spot, glob=parse_glob("*.ts")).entries] == ["a/x.ts"]
        assert [e.path for e in list_folder(spot, glob=parse_glob("docs/")).entries] == ["a/docs"]
        assert [e.path for e in list_folder(spot, glob=parse_glob("!*.{ts,py}")).entries] == ["a/docs", "a/x.ts.d"]


@pytest.mark.parametrize(("limit", "truncated"), [(9, True), (10, False), (11, False)])
def test_truncated_is_exact_on_one_level(reach: Reach, top: Path, limit: int, truncated: bool):
    make(top, *(f"f{n}" for n in range(10)))
    with reach.locate_for_reading(".") as spot:
        got = list_folder(spot, limit=limit)
    assert (len(got.entries), got.truncated) == (min(limit, 10), truncated)
    assert [e.path for e in got.entries] == [f"f{n}" for n in range(min(limit, 10))]


def test_a_file_lists_itself(tree, reach: Reach, top: Path):
    make(top, "a/x.ts")
    assert tree("a/x.ts").entries == (Entry("a/x.ts", "file", 1),)
    assert tree("a/x.ts", "*.py").entries == ()
    with reach.locate_for_reading("a/x.ts") as spot:
        assert list_folder(spot).entries == (Entry("a/x.ts", "file", 1),)


@pytest.mark.parametrize(("path", "kind"), [("none", PathNotFound), ("../x", PathEscape), ("/etc", PathEscape)])
def test_what_is_not_there_or_outside(tree, path: str, kind):
    with pytest.raises(kind):
        tree(path)


def test_case_18_links_are_listed_and_never_followed(paths, top: Path, tmp_path: Path):
    make(tmp_path, "outside/secret")
    make(top, "a/f")
    (top / "leak").symlink_to(tmp_path / "outside")
    (top / "a" / "etc").symlink_to("/etc")
    (top / "only" / "deep").mkdir(parents=True)
    (top / "only" / "deep" / "CLAUDE.md").symlink_to("../../AGENTS.md")
    assert paths() == ["a/etc", "a/f", "leak", "only/deep/CLAUDE.md"]
    with pytest.raises(PathEscape):
        paths("leak")


def test_case_27_the_glob_applies_before_the_limit(tree, top: Path):
    make(top, *(f"a/f{n}.txt" for n in range(3_000)), "z/.github/wanted.yml")
    got = tree(glob="**/*.yml")
    assert [e.path for e in got.entries] == ["z/.github/wanted.yml"]
    assert not got.truncated
    everything = tree()
    assert (len(everything.entries), everything.truncated) == (1_000, True)
    assert everything.entries[0].path == "a/f0.txt"
    exact = tree(limit=3_001)
    assert (len(exact.entries), exact.truncated) == (3_001, False)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_links_count_for_the_limit_in_their_place(tree, top: Path, limit: int):
    make(top, "b", "d")
    for name in ("a", "c", "e"):
        (top / name).symlink_to("b")
    got = tree(limit=limit)
    assert [e.path for e in got.entries] == list("abcde")[:limit]
    assert got.truncated == (limit < 5)


def test_case_28_hidden_ignored_and_negated(paths, top: Path, make_repository):
    git(top, "init", "-q")
    make(top, ".env.example", "x.log", "src/keep.log", "src/x.log", "build/out", "build/deep/out", "vendor/v.js")
    (top / ".gitignore").write_text("*.log\nbuild/\n/vendor/*\n")
    (top / "src" / ".gitignore").write_text("!keep.log\n")
    (top / ".git" / "info" / "exclude").write_text("secret.txt\n")
    make(top, "secret.txt")
    assert paths() == [".env.example", ".gitignore", "src/.gitignore", "src/keep.log"]
    assert paths("build") == ["build/deep/out", "build/out"]
    assert paths("build/deep") == ["build/deep/out"]
    assert paths("vendor") == ["vendor/v.js"]
    assert paths("x.log") == ["x.log"]
    assert paths("src") == ["src/.gitignore", "src/keep.log"]


def test_a_glob_never_brings_back_what_is_ignored(paths, top: Path):
    git(top, "init", "-q")
    make(top, "a.log", "src/b.log", "src/keep.log", "src/c.txt", "build/d.log")
    (top / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n")
    assert paths(glob="*.log") == ["src/keep.log"]
    assert paths(glob="src/**") == ["src/c.txt", "src/keep.log"]
    assert paths(glob="*.txt") == ["src/c.txt"]
    assert paths("src", glob="*.txt") == ["src/c.txt"]
    assert paths("build", glob="*.txt") == []


def test_the_glob_is_relative_to_what_is_listed(paths, top: Path):
    make(top, "src/a/x.ts", "src/y.ts", "z.ts", "pkg/src/w.ts")
    assert paths(glob="src/**/*.ts") == ["src/a/x.ts", "src/y.ts"]
    assert paths(glob="/z.ts") == ["z.ts"]
    assert paths("src", glob="a/*.ts") == ["src/a/x.ts"]
    assert paths("src", glob="/y.ts") == ["src/y.ts"]
    assert paths("src", glob="src/**/*.ts") == []
    assert paths(glob="src/") == ["pkg/src/w.ts", "src/a/x.ts", "src/y.ts"]
    assert paths(glob="src") == ["pkg/src/w.ts", "src/a/x.ts", "src/y.ts"]
    assert paths(glob="!src") == ["z.ts"]
    assert paths(glob="{z,y}.ts") == ["src/y.ts", "z.ts"]
    assert paths(glob="?.t[!x]") == ["pkg/src/w.ts", "src/a/x.ts", "src/y.ts", "z.ts"]


@pytest.mark.parametrize("glob", ["", "a[b", "{" + ",".join("ab" * 60) + "}", "x" * 1001, "a\nb", "!", "/"])
def test_a_glob_that_means_nothing_is_refused(glob: str):
    with pytest.raises(InvalidArguments) as caught:
        parse_glob(glob)
    assert caught.value.reason == "invalid_glob"


def test_git_and_node_modules_are_skipped_unless_named(paths, top: Path):
    make(top, "node_modules/m/i.js", "node_modules/m/node_modules/n/i.js", "a/node_modules/x", "a/b", ".git/config")
    make(top, "sub/.git", content="gitdir: elsewhere\n")
    assert paths() == ["a/b"]
    assert paths("node_modules") == ["node_modules/m/i.js"]
    assert paths(".git") == [".git/config"]


def test_rules_above_the_root_count_and_end_at_the_repository(tmp_path: Path, home: Path, ripgrep: Ripgrep):
    make(tmp_path, ".gitignore", content="*\n")
    outer = tmp_path / "repo"
    make(outer, "packages/one/a.txt", "packages/one/b.log", "packages/one/deep/c.log")
    git(outer, "init", "-q")
    make(outer, ".gitignore", content="*.log\n")
    with Reach(outer / "packages" / "one", home).locate_for_reading(".") as spot:
        got = list_tree(spot, ripgrep, Patience(Cancellation()))
    assert [e.path for e in got.entries] == ["a.txt"]


def test_outside_git_the_rules_within_the_root_count(paths, top: Path, tmp_path: Path):
    make(tmp_path, ".gitignore", content="*\n")
    make(top, ".gitignore", content="*.log\nbuild/\n")
    make(top, "a.log", "a.txt", "src/deep/b.log", "src/deep/b.txt", "build/c")
    (top / "src" / "l.log").symlink_to("x")
    assert paths() == [".gitignore", "a.txt", "src/deep/b.txt"]
    assert paths("src") == ["src/deep/b.txt"]
    assert paths("src/deep") == ["src/deep/b.txt"]
    assert paths("build") == ["build/c"]


def test_the_global_excludes_file_counts(paths, top: Path, home: Path):
    git(top, "init", "-q")
    make(top, "a.swp", "a.txt", "b.tmp")
    (top / "l.swp").symlink_to("a.txt")
    make(home, "config/git/ignore", content="*.swp\n")
    assert paths() == ["a.txt", "b.tmp"]
    (home / "mine").write_text("*.tmp\n")
    git(top, "config", "--global", "core.excludesFile", "~/mine")
    assert paths() == ["a.swp", "a.txt", "l.swp"]


def test_the_excludes_file_is_the_one_git_itself_would_read(paths, top: Path, home: Path):
    git(top, "init", "-q")
    make(top, "a.one", "b.two", "c.three", "d.four")

    def by_git() -> list[str]:
        return sorted(git(top, "ls-files", "-co", "--exclude-standard").split("\n"))

    make(home, "r1", content="*.one\n")
    make(home, "r2", content="*.two\n")
    make(top, ".git/r3", content="*.three\n")
    make(home, "config/git/ignore", content="*.four\n")
    (home / "included").write_text(f"[core]\n\texcludesFile = {home}/r1\n")
    git(top, "config", "--global", "include.path", str(home / "included"))
    assert paths() == by_git() == ["b.two", "c.three", "d.four"]
    (home / "included").write_text("[core]\n\tEXCLUDESFILE = ~/r2 # a comment\n")
    assert paths() == by_git() == ["a.one", "c.three", "d.four"]
    git(top, "config", "core.excludesFile", ".git/r3")
    assert paths() == by_git() == ["a.one", "b.two", "d.four"]
    git(top, "config", "core.excludesFile", "")
    assert paths() == by_git() == ["a.one", "b.two", "c.three", "d.four"]


def test_a_linked_worktree_takes_the_shared_excludes(tmp_path: Path, home: Path, make_repository, ripgrep: Ripgrep):
    main = make_repository()
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    (main / ".git" / "info" / "exclude").write_text("secret\nl-*\n")
    linked = (tmp_path / "linked").resolve()
    make(linked, "secret", "seen")
    (linked / "l-secret").symlink_to("seen")
    (linked / "link").symlink_to("seen")
    with Reach(linked, home).locate_for_reading(".") as spot:
        got = [e.path for e in list_tree(spot, ripgrep, Patience(Cancellation())).entries]
    assert got == ["README.md", "link", "seen", "src/file-0.txt"]


def test_names_of_all_kinds_survive(paths, top: Path):
    names = ["with space", "new\nline", "-dash", "*star", "[x]", "é", "#hash", "!bang", os.fsdecode(b"bad\xff")]
    make(top, *names, *(f"{name}.d/f" for name in names))
    shown = [name.replace("\udcff", "\\xff") for name in names]
    assert sorted(paths()) == sorted([*shown, *(f"{name}.d/f" for name in shown)])
    for name in shown:
        assert paths(f"{name}.d") == [f"{name}.d/f"]
        assert paths(f"{name}.d", glob="/f") == [f"{name}.d/f"]


def test_the_agent_files_are_listed_under_their_own_name(paths, home: Path):
    make(home / ".agents" / "skills", "one/SKILL.md", "two/SKILL.md")
    assert paths("~/.agents/skills") == ["~/.agents/skills/one/SKILL.md", "~/.agents/skills/two/SKILL.md"]
    assert paths("~/.agents/skills/one") == ["~/.agents/skills/one/SKILL.md"]


def test_a_search_taken_back_stops(tree, top: Path):
    make(top, "a")
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        tree(patience=Patience(cancellation))


def test_a_time_limit_is_said(tree, top: Path):
    make(top, "a")
    with pytest.raises(ToolTimeout) as caught:
        tree(patience=Patience(Cancellation(), seconds=-1))
    assert caught.value.reason == "search_timeout"


def test_a_fifo_among_the_rules_holds_nobody_for_long(tree, top: Path):
    os.mkfifo(top / ".gitignore")
    make(top, "a")
    with pytest.raises(ToolTimeout):
        tree(patience=Patience(Cancellation(), seconds=0.3))


def test_the_binary_can_be_named_and_its_absence_is_said(tmp_path: Path):
    chosen = tmp_path / "my-rg"
    chosen.write_text("#!/bin/sh\n")
    chosen.chmod(0o755)
    assert find_ripgrep({"EXEORA_RG": str(chosen)}) == str(chosen)
    assert find_ripgrep({}) == str(Path(sysconfig.get_path("scripts")) / "rg")
    with pytest.raises(ToolFailed) as caught:
        find_ripgrep({"EXEORA_RG": str(tmp_path / "none")})
    assert caught.value.reason == "ripgrep_missing"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A real tree of some thousand files: the standard library, with rules, links and things ignored."""
    top = tmp_path_factory.mktemp("checkout") / "stdlib"
    keep = shutil.ignore_patterns("site-packages", "lib2to3", "idlelib", "ensurepip")
    shutil.copytree(sysconfig.get_path("stdlib"), top, ignore=keep, symlinks=True)
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / ".gitignore").write_text("__pycache__/\n*.so\ntest/**/*data*/\n!test/test_email/data/\n/json/tool.py\n")
    (top / "email" / ".gitignore").write_text("mime/\n!mime/\nquopri*\n")
    (top / "link-to-file").symlink_to("os.py")
    (top / "json" / "link-out").symlink_to("/etc")
    (top / "__pycache__").mkdir(exist_ok=True)
    (top / "__pycache__" / "ignored-link").symlink_to("x")
    return top


@pytest.mark.parametrize("below", [".", "email", "test", "json", "concurrent/futures"])
def test_a_large_checkout_lists_as_git_lists_it(checkout: Path, home: Path, ripgrep: Ripgrep, below: str):
    with Reach(checkout, home).locate_for_reading(below) as spot:
        got = list_tree(spot, ripgrep, Patience(Cancellation()), limit=100_000)
    asked = ["git", "-C", str(checkout), "ls-files", "-z", "-co", "--exclude-standard", "--", below]
    told = subprocess.run(asked, capture_output=True, check=True).stdout
    assert [entry.path for entry in got.entries] == sorted(
        (os.fsdecode(path) for path in told.split(b"\0") if path), key=lambda path: path.split("/")
    )
    assert len(got.entries) > 3
    for entry in got.entries[:50]:
        found = (checkout / entry.path).lstat()
        assert entry.size == (found.st_size if entry.type == "file" else None)


PARTS = st.sampled_from(["a", "b", "ab", "a.ts", "b.ts", "ba"])
PATTERNS = st.lists(st.sampled_from(["a", "*", "**", "*.ts", "?", "a*", "[ab]", "*b*"]), min_size=1, max_size=3)


@given(PATTERNS, st.booleans(), st.booleans(), st.lists(PARTS, min_size=1, max_size=4))
def test_globs_match_as_pathspec_matches(parts: list[str], rooted: bool, folder: bool, path: list[str]):
    from pathspec import GitIgnoreSpec

    text = "/" * rooted + "/".join(parts) + "/" * folder
    if parts[-1] == "**" and (len(parts) == 1 or folder):
        return  # `**/` and a lone `**` differ between git and the library
    expected = GitIgnoreSpec.from_lines([text]).match_file("/".join(path))
    assert parse_glob(text).matches("/".join(path)) == expected, text


def test_no_glob_takes_long():
    glob = parse_glob("*a" * 60 + "b")
    assert not glob.matches("a" * 255)
    assert not parse_glob("**/a/" * 60 + "b").matches("/".join(["a"] * 300))


NAMES = ("a", "b.ts", "C", ".h", "x-y", "x.y", "x", "é", "z~", "~", "bin", "-e", "[q]")
LINES = (b"needle\n", b"x\n", b"needle\r\n", b"a needle needle\n", b"\xe9 needle\n")


def grow(folder: Path, dice: random.Random, depth: int = 0) -> None:
    for name in dice.sample(NAMES, dice.randint(1, 5)):
        path, kind = folder / name, dice.random()
        if depth < 3 and kind < 0.4:
            path.mkdir()
            grow(path, dice, depth + 1)
        elif kind < 0.5:
            path.symlink_to(dice.choice(["a", "/etc", "nowhere", "."]))
        else:
            tail = dice.choice([b"", b"", b"needle", b"\0needle\n"])
            path.write_bytes(b"".join(dice.choices(LINES, k=dice.randint(0, 4))) + tail)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("glob", [None, "*.ts", "!*.ts", "x*/**", "{a,C}", "**/b.ts", "a/"])
def test_truncated_is_a_promise(tree, reach: Reach, ripgrep: Ripgrep, top: Path, seed: int, glob: str | None):
    """Against a walk of the test's own, at every limit around what there is."""
    dice = random.Random(seed)
    grow(top, dice)
    chosen = parse_glob(glob) if glob else None
    found = [path.relative_to(top) for path in top.rglob("*") if path.is_symlink() or not path.is_dir()]
    found = [path for path in found if not any((top / above).is_symlink() for above in list(path.parents)[:-1])]
    texts = sorted(map(str, found), key=lambda text: os.fsencode(text).replace(b"/", b"\0"))
    texts = [text for text in texts if chosen is None or chosen.matches(text)]
    hits = []
    for text in texts:
        if not (top / text).is_symlink() and b"\0" not in (data := (top / text).read_bytes()):
            hits += [(text, number) for number, line in enumerate(data.split(b"\n"), 1) if b"needle" in line]
    for limit in {1, dice.randint(1, 9), *(max(1, len(some) + off) for some in (texts, hits) for off in (-1, 0, 1))}:
        got = tree(".", glob, limit)
        assert [entry.path.removeprefix("./") for entry in got.entries] == texts[:limit]
        assert got.truncated == (len(texts) > limit)
        with reach.locate_for_reading(".") as spot:
            query = Query("needle", glob=chosen)
            searched = search(spot, query, ripgrep, Patience(Cancellation()), limit=limit)
        assert [(match.path.removeprefix("./"), match.line) for match in searched.matches] == hits[:limit]
        assert searched.truncated == (len(hits) > limit)


_MEASURE = """
import os, resource, sys
from pathlib import Path
from exeora_ws.cancellation import Cancellation
from exeora_ws.files.globs import parse_glob
from exeora_ws.files.listing import list_folder, list_tree
from exeora_ws.files.reach import Reach
from exeora_ws.files.ripgrep import Patience, Ripgrep, find_ripgrep
from exeora_ws.processes.piped import spawn_piped
ripgrep = Ripgrep(find_ripgrep(os.environ), spawn_piped, os.environ)
reach = Reach(Path(sys.argv[1]), Path(sys.argv[1]))
def run(function, path, *more, **options):
    with reach.locate_for_reading(path) as spot:
        return function(spot, *more, **options)
patience = Patience(Cancellation())
run(list_tree, "few", ripgrep, patience)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
results = [
    run(list_tree, ".", ripgrep, patience),
    run(list_tree, ".", ripgrep, patience, glob=parse_glob("*7")),
    run(list_tree, ".", ripgrep, patience, glob=parse_glob("nothing*")),
    run(list_folder, "many"),
]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(after - before, *(f"{len(result.entries)}:{result.truncated}" for result in results))
"""


def test_a_listing_of_100_000_files_costs_at_most_20_mb(top: Path):
    for number in range(1_000):
        folder = top / ("many" if number < 500 else f"few{number}" if number > 501 else "few")
        folder.mkdir(exist_ok=True)
        for file in range(100):
            os.close(os.open(folder / f"file-with-a-longer-name-{number:04}-{file:02}", os.O_CREAT | os.O_WRONLY))
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(top)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    grown, *rest = done.stdout.split()
    assert int(grown) <= 20_000
    assert rest == ["1000:True", "1000:True", "0:False", "1000:True"]
