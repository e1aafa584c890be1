"""Uncommitted changes as a commit of the shape of a stash: taken without a trace, applied, compared, taken out.

`git stash push` would change the checkout before the changes are safe elsewhere, and `git stash create` leaves
untracked files out. So the commit is built here, from copies of the index.
"""

import filecmp
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from exeora_ws.errors import ToolFailed
from exeora_ws.git.command import Git, decode, encode
from exeora_ws.git.messages import describe_failure
from exeora_ws.git.port import Snapshot

_NO_MODE = b"000000 "
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

    A file of `wanted` that is not there is no change: clearing deletes before it brings back, and nothing is lost.
    Further untracked files are nobody's business; one that has another content is.
    """
    if wanted.head != found.head:
        return False
    for kind in ("index", "files"):
        whole = _list_changes(git, wanted.head, getattr(wanted, kind))
        left = _list_changes(git, wanted.head, getattr(found, kind))
        if any(whole.get(path) != change and not _is_gone(path, change, whole) for path, change in left.items()):
            return False
    if wanted.untracked is None or found.untracked is None:
        return True
    moved, left = (_list_changes(git, empty_tree(git), tree) for tree in (wanted.untracked, found.untracked))
    return all(left[path] == moved[path] for path in left.keys() & moved.keys())


def _is_gone(path: bytes, change: bytes, whole: dict[bytes, bytes]) -> bool:
    return path in whole and change.startswith(_NO_MODE)


def empty_tree(git: Git) -> str:
    """Give the id of the tree with nothing in it."""
    return git.change("mktree").text


def _list_changes(git: Git, before: str, after: str) -> dict[bytes, bytes]:
    """Give what each path that differs is afterwards: its mode and its blob."""
    words = git.read("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", before, after).out.split(b"\0")
    facts, paths = words[0:-1:2], words[1::2]
    return {path: b" ".join(fact.split()[1::2]) for fact, path in zip(facts, paths, strict=True)}


def load(git: Git, ref: str) -> Snapshot:
    """Load a snapshot that is kept under `ref`."""
    commit, *parents = git.read("rev-list", "--parents", "--max-count=1", ref, "--").text.split()
    trees = [_read_tree(git, each) for each in (commit, *parents[1:])]
    return Snapshot(commit, parents[0], trees[1], trees[0], trees[2] if len(trees) > 2 else None)  # noqa: PLR2004


def _read_tree(git: Git, commit: str) -> str:
    return git.read("rev-parse", "--verify", f"{commit}^{{tree}}").text


def is_part(git: Git, whole: Snapshot, found: Snapshot) -> bool:
    """Whether nothing is in `found` but what is in `whole`, as bringing it that was cut short leaves it."""
    if not is_rest(git, whole, found):
        return False
    return found.untracked is None or _list_untracked(git, found) <= _list_untracked(git, whole)


def _list_untracked(git: Git, snapshot: Snapshot) -> set[tuple[bytes, bytes]]:
    if snapshot.untracked is None:
        return set()
    return set(_list_changes(git, empty_tree(git), snapshot.untracked).items())


def list_paths(git: Git, snapshot: Snapshot) -> list[str]:
    """List every path that the changes are about, deleted ones too, relative to the top."""
    trees = [snapshot.index, snapshot.files]
    found = {path for tree in trees for path in _list_changes(git, snapshot.head, tree)}
    if snapshot.untracked is not None:
        found |= _list_changes(git, empty_tree(git), snapshot.untracked).keys()
    return sorted(map(decode, found))


def carry_bytes(top: Path, source: Path, paths: list[str]) -> None:
    """Give files in `top` the very bytes and permissions they have in `source`.

    What went through Git may differ where a filter or a line ending conversion cleans: to Git it is the same.
    """
    for name in paths:
        ours, theirs = top / name, source / name
        if _is_plain(ours, top) and _is_plain(theirs, source):
            if not filecmp.cmp(theirs, ours, shallow=False):
                shutil.copyfile(theirs, ours, follow_symlinks=False)
            os.chmod(ours, stat.S_IMODE(theirs.lstat().st_mode))


def discard(git: Git, top: Path, snapshot: Snapshot, copy: Path) -> bool:
    """Take the snapshot's changes out of a checkout; False when a file is not what `copy` has, byte by byte.

    Each file is compared right before it is deleted, and what was changed is then made again only where nothing
    stands: an editor that saves meanwhile loses nothing. Nothing is touched when a file differs at the outset, other
    than by being unchanged already.
    """
    paths = list_paths(git, snapshot)
    odd = [name for name in paths if not _is_same(top, copy, name)]
    committed = _list_blobs(git, snapshot.head)
    if any(committed.get(name) != _hash(git, top, name) for name in odd):
        return False
    # First what another git's lock can keep us from.
    git.change("reset", "--quiet", snapshot.head, ok=(0, 1))
    whole = True
    for name in sorted(set(paths) - set(odd)):
        if not os.path.lexists(top / name) or not _is_inside(top / name, top):
            continue
        if not _is_same(top, copy, name):
            whole = False
        elif not _is_folder(top / name):
            os.unlink(top / name)
            _remove_empty_folders((top / name).parent, top)
    _make_missing(git, [name for name in paths if name in committed])
    return whole


def _list_blobs(git: Git, commit: str) -> dict[str, str]:
    """Give the blob of every path in a commit."""
    lines = decode(git.read("ls-tree", "-r", "-z", "--full-tree", commit).out).split("\0")
    return {name: facts.split(" ")[2] for facts, _, name in (line.partition("\t") for line in lines) if name}


def _hash(git: Git, top: Path, name: str) -> str:
    """Give the blob that Git would make of a file or link."""
    path = top / name
    if path.is_symlink():
        return git.read("hash-object", "--stdin", stdin=os.fsencode(os.readlink(path))).text
    return git.read("hash-object", f"--path={name}", "--", str(path)).text


def _make_missing(git: Git, names: list[str]) -> None:
    """Write files as they are in the index, where there is none."""
    if not names:
        return
    given = encode("".join(f"{name}\0" for name in names))
    output = git.change("checkout-index", "--quiet", "-u", "-z", "--stdin", stdin=given, ok=(0, 1, 128))
    if output.code != 0 and output.err:
        raise describe_failure(output.code, decode(output.err))


def _is_same(top: Path, copy: Path, name: str) -> bool:
    """Whether a path that may be deleted from `top` is whole in `copy`; what is not there is."""
    ours, theirs = top / name, copy / name
    if not os.path.lexists(ours) or not _is_inside(ours, top) or _is_folder(ours):
        return True
    if not os.path.lexists(theirs) or not _is_inside(theirs, copy):
        return False
    if ours.is_symlink() or theirs.is_symlink():
        return ours.is_symlink() and theirs.is_symlink() and os.readlink(ours) == os.readlink(theirs)
    return _is_plain(ours, top) and _is_plain(theirs, copy) and filecmp.cmp(ours, theirs, shallow=False)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _is_plain(path: Path, top: Path) -> bool:
    return os.path.lexists(path) and stat.S_ISREG(path.lstat().st_mode) and _is_inside(path, top)


def _is_inside(path: Path, top: Path) -> bool:
    return Path(os.path.realpath(path.parent)).is_relative_to(top)


def _remove_empty_folders(folder: Path, top: Path) -> None:
    with suppress(OSError):
        while folder != top:
            os.rmdir(folder)
            folder = folder.parent
