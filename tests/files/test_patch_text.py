"""The patch texts that agents write come out as the programs they were written for would apply them."""

import os
import subprocess
from pathlib import Path

import pytest
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.files.editing import Keeping
from exeora_ws.files.hunks import LineHunk, apply_hunks
from exeora_ws.files.patch import apply_patch
from exeora_ws.files.patch_text import parse_patch_text
from exeora_ws.files.reach import Reach
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.repositories import git


@pytest.fixture
def patch(reach: Reach, keeping: Keeping, tmp_path: Path):
    return lambda text: apply_patch(reach, parse_patch_text(text), keeping, tmp_path / "data" / "patches")


ENVELOPE = """*** Begin Patch
*** Add File: new/a.txt
+first
+
+third
*** Update File: src/b.py
*** Move to: src/c.py
@@ class Two:
@@     def run(self):
-        return 1
+        return 2
@@
 last = 1
+more = 2
*** End of File
*** Delete File: gone.txt
*** End Patch
"""
SOURCE = """class One:
    def run(self):
        return 1

class Two:
    def run(self):
        return 1

last = 1
"""


def test_the_envelope(patch, top: Path):
    (top / "src").mkdir()
    (top / "src" / "b.py").write_text(SOURCE)
    (top / "gone.txt").write_text("x")
    patch(ENVELOPE)
    assert (top / "new" / "a.txt").read_text() == "first\n\nthird\n"
    expected = SOURCE.replace(
        "Two:\n    def run(self):\n        return 1", "Two:\n    def run(self):\n        return 2"
    )
    assert (top / "src" / "c.py").read_text() == expected + "more = 2\n"
    assert sorted(path.name for path in top.iterdir()) == ["new", "src"]


@pytest.mark.parametrize(("ending", "data"), [("\n", b"a\nb\nc\n"), ("\r\n", b"a\r\nb\r\nc\r\n"), ("none", b"a\nb\nc")])
def test_line_ends_and_a_missing_last_newline_are_kept(ending: str, data: bytes):
    (operation,) = parse_patch_text("*** Begin Patch\n*** Update File: f\n@@\n b\n-c\n+C\n*** End Patch")
    assert apply_hunks(data, operation.hunks, "f") == data.replace(b"c", b"C")


def test_a_hunk_that_could_be_meant_twice_is_refused():
    (operation,) = parse_patch_text("*** Begin Patch\n*** Update File: f\n@@\n-x\n+y\n*** End Patch")
    with pytest.raises(ToolFailed) as caught:
        apply_hunks(b"x\nx\n", operation.hunks, "f")
    assert caught.value.reason == "ambiguous_match"
    with pytest.raises(ToolFailed) as caught:
        apply_hunks(b"xx\nax\n", operation.hunks, "f")
    assert caught.value.reason == "no_match"


def test_lines_put_in_without_any_context():
    (operation,) = parse_patch_text("*** Begin Patch\n*** Update File: f\n@@ head\n+in\n@@\n+end\n*** End Patch")
    assert apply_hunks(b"head\nbody", operation.hunks, "f") == b"head\nin\nbody\nend\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "*** Begin Patch\n",
        "*** Begin Patch\n*** Update File: f\n*** End Patch",
        "*** Begin Patch\nwhat\n*** End Patch",
        "*** Begin Patch\n*** Update File: f\n@@\nxyz\n*** End Patch",
        "*** Begin Patch\n*** Update File: f\n@@ only\n*** End Patch",
        "--- a/f\n+++ b/f\n@@ -1,5 +1 @@\n-x\n",
        "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n",
    ],
)
def test_what_is_no_patch_is_refused(text: str):
    with pytest.raises(InvalidArguments) as caught:
        parse_patch_text(text)
    assert caught.value.reason == "invalid_patch"


@pytest.mark.parametrize(
    "text",
    [
        "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
        "diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+target\n",
        "diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n",
        "diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n",
        "diff --git a/f b/g\ncopy from f\ncopy to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n",
    ],
)
def test_what_operations_cannot_say_is_refused(text: str):
    with pytest.raises(InvalidArguments) as caught:
        parse_patch_text(text)
    assert caught.value.reason == "unsupported_patch"


@pytest.mark.parametrize(
    ("held", "text"),
    [
        (b"other\n", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"),
        (b"one\nmore\n", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"),
        (b"one", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"),
        (b"one\n", "diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000\n"),
    ],
)
def test_a_diff_deletes_only_what_it_shows(patch, top: Path, held: bytes, text: str):
    (top / "f").write_bytes(held)
    with pytest.raises(ToolFailed) as caught:
        patch(text)
    assert caught.value.reason == "no_match"
    assert (top / "f").read_bytes() == held


@pytest.mark.parametrize("options", [[], ["--no-prefix"], ["-c", "diff.mnemonicPrefix=true"]])
def test_names_are_read_with_and_without_what_git_puts_before_them(patch, top: Path, make_repository, options):
    """Folders called `a` and `b`, as the prefixes are."""
    repository = make_repository()
    for folder in ("a", "b"):
        for where in (top, repository):
            (where / folder).mkdir(parents=True, exist_ok=True)
            (where / folder / "f").write_text(f"one {folder}\n")
            (where / folder / "gone").write_text("gone\r\n")
            (where / folder / "link").symlink_to("f")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "start")
    for folder in ("a", "b"):
        (repository / folder / "f").write_text(f"ONE {folder}\n")
        (repository / folder / "gone").unlink()
        (repository / folder / "link").unlink()
    before = [option for option in options if option != "--no-prefix"]
    after = [option for option in options if option == "--no-prefix"]
    told = subprocess.run(["git", "-C", str(repository), *before, "diff", *after], capture_output=True, check=True)
    patch(told.stdout.decode())
    for folder in ("a", "b"):
        assert (top / folder / "f").read_text() == f"ONE {folder}\n"
        assert os.listdir(top / folder) == ["f"]


def test_a_diff_by_git_with_everything(patch, top: Path, tmp_path: Path, make_repository):
    repository = make_repository()
    for name in ("plain", "with space", 'quo"te', "é", "renamed", "pure", "gone"):
        (repository / name).write_bytes(b"".join(b"%s line %d\n" % (name.encode(), n) for n in range(30)))
    (repository / "crlf").write_bytes(b"a\r\nb\r\nc\r\n")
    (repository / "unended").write_bytes(b"a\nb")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "start")
    subprocess.run(f"git -C {repository} archive HEAD | tar x -C {top}", shell=True, check=True)
    for name in ("plain", "with space", 'quo"te', "é", "renamed"):
        text = (repository / name).read_text()
        (repository / name).write_text(text.replace("line 3\n", "three\n").replace("line 25\n", "line 25\nadded\n"))
    (repository / "crlf").write_bytes(b"a\r\nB\r\nc\r\n")
    (repository / "unended").write_bytes(b"a\nB")
    (repository / "new file").write_bytes(b"x\ny")
    git(repository, "mv", "renamed", "renamed-now")
    git(repository, "mv", "pure", "pure-now")
    git(repository, "rm", "-q", "gone")
    git(repository, "add", "-A")
    shown = subprocess.run(["git", "-C", str(repository), "diff", "--cached", "-M"], capture_output=True, check=True)
    patch(shown.stdout.decode())
    for path in git(repository, "ls-files", "-z").split("\0")[:-1]:
        assert (top / path).read_bytes() == (repository / path).read_bytes(), path
    assert not any((top / name).exists() for name in ("renamed", "pure", "gone"))


def test_a_hunk_finds_its_place_when_lines_have_moved():
    before = "".join(f"block {n % 3}\n  same\n" for n in range(12))
    hunk = LineHunk("  same\nblock 1\n", "  same\nBLOCK 1\n", line=14)
    shifted = "shift\n" * 2 + before
    done = apply_hunks(shifted.encode(), (hunk,), "f").decode()
    assert done.count("BLOCK 1") == 1
    assert done.split("\n").index("BLOCK 1") in range(12, 20)


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "x y"]), min_size=1, max_size=14)


@settings(max_examples=60, deadline=None)
@given(LINES, LINES, st.booleans(), st.sampled_from([0, 1, 3]))
def test_any_diff_of_git_applies(tmp_path_factory, old: list[str], new: list[str], ended: bool, context: int):
    before = ("\n".join(old) + "\n" * ended).encode()
    after = ("\n".join(new) + "\n").encode()
    assume(before != after and before)
    folder = tmp_path_factory.getbasetemp()
    (folder / "before").write_bytes(before)
    (folder / "after").write_bytes(after)
    told = subprocess.run(
        ["git", "diff", "--no-index", f"-U{context}", "before", "after"], cwd=folder, capture_output=True, check=False
    )
    (operation,) = parse_patch_text(told.stdout.decode().replace("b/after", "b/before"))
    assert apply_hunks(before, operation.hunks, "f") == after
