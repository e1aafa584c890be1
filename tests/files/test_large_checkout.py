"""A run of the writing tools over a real checkout: what git and cmp say changed is what was asked for, no byte more."""

import filecmp
import os
import random
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from exeora_ws.files.editing import Keeping, edit_file, revert_file, write_file
from exeora_ws.files.hunks import Hunk
from exeora_ws.files.operation import Operation
from exeora_ws.files.patch import apply_patch
from exeora_ws.files.reach import Reach
from exeora_ws.files.replacing import Replacement

from support.repositories import git


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "stdlib"
    keep = shutil.ignore_patterns(
        "site-packages", "test", "lib2to3", "idlelib", "ensurepip", "__pycache__", "*.so", "*.a"
    )
    shutil.copytree(sysconfig.get_path("stdlib"), top, ignore=keep, symlinks=True)
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "start")
    shutil.copytree(top, tmp_path / "before", ignore=shutil.ignore_patterns(".git"), symlinks=True)
    return top


def find_unique_lines(top: Path, seed: int, count: int) -> list[tuple[str, str]]:
    """Choose files and a line in each that stands there once."""
    files = [path for path in git(top, "ls-files", "-z").split("\0") if path.endswith(".py")]
    chosen = []
    for path in random.Random(seed).sample(files, len(files)):
        try:
            text = (top / path).read_text("utf-8")
        except UnicodeDecodeError:
            continue
        unique = [line for line in text.split("\n") if len(line) > 25 and text.count(line) == 1]
        if unique:
            chosen.append((path, random.Random(path).choice(unique)))
        if len(chosen) == count:
            break
    return chosen


def changed(top: Path) -> set[str]:
    rows = git(top, "status", "--porcelain", "-z", "-uall", "--no-renames").split("\0")
    return {row[3:] for row in rows if row}


def test_edits_writes_and_a_patch_change_what_they_name(top: Path, home: Path, keeping: Keeping, tmp_path: Path):
    reach = Reach(top, home)
    first, *rest = find_unique_lines(top, 1, 40)
    edits, patched = rest[:20], rest[20:36]
    for path, line in edits:
        edit_file(reach, path, Replacement(line, f"{line}  # \\1 $& edited"), keeping)
    write_file(reach, "new/deep/file.txt", "fresh\n", keeping)
    write_file(reach, first[0], "whole\r\n", keeping)
    operations = [Operation("update", path, hunks=(Hunk(line, ""),)) for path, line in patched]
    operations += [Operation("move", "json/tool.py", to="json/moved.py"), Operation("delete", "this.py")]
    done = apply_patch(reach, operations, keeping, tmp_path / "data" / "patches")
    assert not done.diff.truncated

    expected = {path for path, _ in (first, *edits, *patched)}
    assert changed(top) == expected | {"new/deep/file.txt", "json/tool.py", "json/moved.py", "this.py"}
    for path, line in edits:
        before = (tmp_path / "before" / path).read_bytes()
        assert (top / path).read_bytes() == before.replace(line.encode(), f"{line}  # \\1 $& edited".encode())
    for path, line in patched:
        assert (top / path).read_bytes() == (tmp_path / "before" / path).read_bytes().replace(line.encode(), b"")
    assert filecmp.cmp(top / "json/moved.py", tmp_path / "before" / "json/tool.py", shallow=False)

    for path in (*expected, "new/deep/file.txt", "json/tool.py", "json/moved.py", "this.py"):
        revert_file(reach, path, keeping)
    told = subprocess.run(
        ["diff", "-r", "--no-dereference", "-x", ".git", str(tmp_path / "before"), str(top)],
        capture_output=True,
        check=False,
    )
    assert told.stdout.decode().strip() == f"Only in {top}: new"
    assert not os.listdir(top / "new" / "deep")
