"""Uncommitted changes as a commit of the shape of a stash: taken without a trace, applied, compared, taken out.

`git stash push` would change the checkout before the changes are safe elsewhere, and `git stash create` leaves
untracked files out. So the commit is built here, from copies of the index.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from exeora_ws.errors import ToolFailed
from exeora_ws.git.command import Git, decode
from exeora_ws.git.port import Snapshot

_IDENTITY = ("-c", "user.name=exeora", "-c", "user.email=exeora@localhost", "-c", "commit.gpgSign=false")


def take(git: Git, git_dir: Path, ref: str) -> Snapshot:
    """Take a snapshot of a checkout and keep it under `ref`."""
    head = git.read("rev-parse", "--verify", "HEAD^{commit}").text
    index = git.change("write-tree").text
    with _spare_index(git_dir, copied=True) as spare:
        git.change("add", "--update", "--", ":/", environment=spare)
        files = git.change("write-tree", environment=spare).text
    untracked = _write_untracked(git, git_dir)
    parents = [head, _commit(git, index, [head])]
    if untracked is not None:
        parents.append(_commit(git, untracked, []))
    commit = _commit(git, files, parents)
    git.change("update-ref", "--no-deref", ref, commit)
    return Snapshot(commit, head, index, files, untracked)


def _write_untracked(git: Git, git_dir: Path) -> str | None:
    names = git.read("ls-files", "--others", "--exclude-standard", "-z", "--", ":/").out
    if not names:
        return None
    if any(name.endswith(b"/") for name in names.split(b"\0")):
        raise ToolFailed(
            "an untracked folder is a repository of its own and cannot be moved along",
            reason="nested_repository",
            hint="move it away, or ignore it",
        )
    with _spare_index(git_dir, copied=False) as spare:
        git.change("update-index", "--add", "-z", "--stdin", stdin=names, environment=spare)
        return git.change("write-tree", environment=spare).text


def _commit(git: Git, tree: str, parents: list[str]) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    return git.change(*_IDENTITY, "commit-tree", *words, "-m", "exeora: uncommitted changes", tree).text


@contextmanager
def _spare_index(git_dir: Path, *, copied: bool) -> Iterator[dict[str, str]]:
    """Give the environment of another index beside the real one, which is not touched."""
    spare = git_dir / f"exeora-index-{secrets.token_hex(6)}"
    try:
        if copied:
            with suppress(FileNotFoundError):
                shutil.copy2(git_dir / "index", spare)
        yield {"GIT_INDEX_FILE": str(spare)}
    finally:
        for left in (spare, Path(f"{spare}.lock")):
            with suppress(FileNotFoundError):
                os.unlink(left)


def apply(git: Git, snapshot: Snapshot) -> None:
    """Bring the changes into a clean checkout at the snapshot's HEAD."""
    git.change(*_IDENTITY, "stash", "apply", "--index", "--quiet", snapshot.commit)


def are_equal(git: Git, wanted: Snapshot, found: Snapshot) -> bool:
    """Whether `found` has the changes of `wanted`: every tree the same, but for further untracked files."""
    if (wanted.head, wanted.index, wanted.files) != (found.head, found.index, found.files):
        return False
    if wanted.untracked in (None, found.untracked):
        return True
    if found.untracked is None:
        return False
    return git.read("diff-tree", "-r", "--diff-filter=a", str(wanted.untracked), found.untracked).out == b""


def is_rest(git: Git, wanted: Snapshot, found: Snapshot) -> bool:
    """Whether every change in `found` is one of `wanted`, as clearing that was cut short leaves it.

    Further untracked files are nobody's business; one that has another content is.
    """
    if wanted.head != found.head:
        return False
    for kind in ("index", "files"):
        whole = _list_changes(git, wanted.head, getattr(wanted, kind))
        if not _list_changes(git, wanted.head, getattr(found, kind)).items() <= whole.items():
            return False
    if wanted.untracked is None or found.untracked is None:
        return True
    moved, left = (_list_changes(git, empty_tree(git), tree) for tree in (wanted.untracked, found.untracked))
    return all(left[path] == moved[path] for path in left.keys() & moved.keys())


def empty_tree(git: Git) -> str:
    """Give the id of the tree with nothing in it."""
    return git.change("mktree").text


def _list_changes(git: Git, before: str, after: str) -> dict[bytes, bytes]:
    """Give what each path that differs is afterwards: its mode and its blob."""
    words = git.read("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", before, after).out.split(b"\0")
    facts, paths = words[0:-1:2], words[1::2]
    return {path: b" ".join(fact.split()[1::2]) for fact, path in zip(facts, paths, strict=True)}


def discard(git: Git, top: Path, snapshot: Snapshot) -> None:
    """Reset the checkout and delete the snapshot's untracked files, and the folders that are empty then."""
    git.change("reset", "--hard", "--quiet", snapshot.head)
    if snapshot.untracked is None:
        return
    for name in decode(git.read("ls-tree", "-r", "-z", "--name-only", snapshot.untracked).out).split("\0"):
        path = top / name
        if not name or not path.parent.resolve().is_relative_to(top):
            continue
        with suppress(FileNotFoundError):
            os.unlink(path)
        _remove_empty_folders(path.parent, top)


def _remove_empty_folders(folder: Path, top: Path) -> None:
    with suppress(OSError):
        while folder != top:
            os.rmdir(folder)
            folder = folder.parent
