"""`git status` as the value of the port, and what it does not show: submodules' own commits, files marked unchanged."""

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from exeora_ws.errors import ToolFailed
from exeora_ws.git import gitfiles
from exeora_ws.git.command import Git, decode, encode
from exeora_ws.git.index_file import OFFSETS, PLAIN, RESOLVED, TREES, Index, Unsuited, hash_name
from exeora_ws.git.port import Status
from exeora_ws.limits import HALVED_INDEX_BYTES

_ORDINARY_FIELDS = 8
_RENAMED_FIELDS = 9
_UNMERGED_FIELDS = 10
_GITLINK = "160000"
_LINK = "120000"
_GITLINK_MODE = 0o160000.to_bytes(4, "big")
_SHA1_BYTES = 20
_FEW = 200
T = TypeVar("T")


def load_status(git: Git, top: Path, *, ignored: bool) -> Status:
    """Ask git for the state of a checkout, and look at what it passes over; as needed where something may be lost."""
    # What main has there stays there, as main does.
    modules = f"{git.git_dir}/modules" if os.path.lexists(git.git_dir / "commondir") else ""
    if not os.path.isdir(modules) and load_plain_index(git.git_dir) is not None:
        return _load_halves(git, ignored=ignored)
    status = _ask(git, "--untracked-files=normal", ignored=ignored)
    index = load_index(git)
    seen: set[str] = set()
    unsaved = [*_list_unsaved_submodules(index, top, "", seen), *_list_unsaved_remains(modules, seen)]
    hidden = _list_hidden_changes(git, index, top)
    return replace(
        status,
        unstaged=tuple(sorted({*status.unstaged, *hidden})),
        submodules=tuple(sorted({*status.submodules, *unsaved})),
    )


def load_shown_status(git: Git) -> Status:
    """Ask git for what `git status` shows, and no more."""
    return _ask(git, "--untracked-files=normal", ignored=False)


def _ask(git: Git, untracked: str, *words: str, ignored: bool) -> Status:
    output = git.read(
        "status",
        "--porcelain=v2",
        "-z",
        "--no-renames",
        untracked,
        "--ignored=traditional" if ignored else "--ignored=no",
        "--ignore-submodules=none",
        *words,
    )
    return parse_status(decode(output.out))


def load_plain_index(git_dir: Path) -> Index | None:
    """Load a large index that needs no second look: no submodule, no marked file, no conflict, no cache of its own."""
    try:
        data = (git_dir / "index").read_bytes()
    except OSError:
        return None
    if len(data) < HALVED_INDEX_BYTES or _GITLINK_MODE in data:
        return None
    try:
        # A name begins after its entry's object id, which is as long as the hash at the end: only one length fits.
        index = Index(data, _SHA1_BYTES)
    except (Unsuited, IndexError, ValueError):
        return None
    plain = index.version == PLAIN and not index.find_extensions().keys() - {TREES, RESOLVED, *OFFSETS}
    return index if plain else None


def _load_halves(git: Git, *, ignored: bool) -> Status:
    """Have two gits look at once, one at the files that are tracked, one at what else there is.

    What else there is, if it is little, is then judged alone: whether it is ignored.
    """
    others = _Beside(lambda: git.read("ls-files", "--others", "--directory", "-z").out)
    status = _ask(git, "--untracked-files=no", ignored=False)
    paths = [path for path in decode(others.result()).split("\0") if path]
    if not paths:
        return status
    words = ["--", *(f":(top,literal){path.removesuffix('/')}" for path in paths)] if len(paths) <= _FEW else []
    judged = _ask(git, "--untracked-files=normal", *words, ignored=ignored)
    return replace(status, untracked=judged.untracked, ignored=judged.ignored)


class _Beside(Generic[T]):
    """Does something in a thread while this one does something else."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done: list[T] = []
        self._failed: list[ToolFailed] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._done.append(self._work())
        except ToolFailed as failed:
            self._failed.append(failed)

    def result(self) -> T:
        """Wait for it."""
        self._thread.join()
        for failed in self._failed:
            raise failed
        return self._done[0]


def parse_status(text: str) -> Status:
    """Parse `git status --porcelain=v2 -z`."""
    found: dict[str, list[str]] = {name: [] for name in Status.__slots__}
    records = iter(text.split("\0"))
    for record in records:
        kind = record[:1]
        if kind == "?":
            found["untracked"].append(record[2:])
        elif kind == "!":
            found["ignored"].append(record[2:])
        elif kind == "u":
            found["conflicted"].append(record.split(" ", _UNMERGED_FIELDS)[-1])
        elif kind in ("1", "2"):
            fields = record.split(" ", _ORDINARY_FIELDS if kind == "1" else _RENAMED_FIELDS)
            _sort_change(found, fields[1], fields[2], fields[-1])
            if kind == "2":
                next(records, None)
    return Status(**{name: tuple(sorted(paths)) for name, paths in found.items()})


def _sort_change(found: dict[str, list[str]], change: str, submodule: str, path: str) -> None:
    if change[0] != ".":
        found["staged"].append(path)
    if change[1] == ".":
        return
    found["submodules" if submodule.startswith("S") and change[1] == "M" else "unstaged"].append(path)


@dataclass(frozen=True, slots=True)
class Marked:
    """What of the index needs a second look, by path: each with the object that the index records."""

    submodules: dict[str, str]
    hidden: dict[str, str]
    """Files marked assume-unchanged or skip-worktree, whose changes `git status` does not show."""
    hidden_links: dict[str, str]
    """Symbolic links that are marked so."""


def load_index(git: Git) -> Marked:
    """Ask for the index in one go; almost every record is an ordinary file and passed over."""
    found = Marked({}, {}, {})
    for record in git.read("ls-files", "-v", "--stage", "-z").out.split(b"\0"):
        if record.startswith((b"H 100", b"H 120")) or not record:
            continue
        facts, _, path = decode(record).partition("\t")
        tag, mode, name, _ = facts.split(" ")
        if mode == _GITLINK:
            found.submodules[path] = name
        elif tag == "S" or tag.islower():
            (found.hidden_links if mode == _LINK else found.hidden)[path] = name
    return found


def _list_hidden_changes(git: Git, index: Marked, top: Path) -> list[str]:
    """List the marked paths where something is that differs from what the index records."""
    links = [path for path, recorded in index.hidden_links.items() if _hash_link(top / path, recorded) != recorded]
    kinds = {path: kind for path in index.hidden if (kind := _find_kind(top / path))}
    files = [path for path, kind in kinds.items() if kind == stat.S_IFREG]
    others = [path for path in kinds if kinds[path] != stat.S_IFREG]
    if not files:
        return [*links, *others]
    asked = b"".join(_quote(encode(path)) + b"\n" for path in files)
    hashes = git.read("hash-object", "--stdin-paths", stdin=asked).text.split("\n")
    return [*links, *others, *(p for p, found in zip(files, hashes, strict=True) if found != index.hidden[p])]


def _find_kind(path: Path) -> int | None:
    """Give what is at a path (as `stat.S_IFMT` does), None when nothing is."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return None


def _hash_link(path: Path, recorded: str) -> str:
    """Name the object that a link is; whatever else is there has no name, and nothing is as it is recorded."""
    kind = _find_kind(path)
    if kind != stat.S_IFLNK:
        return "" if kind else recorded
    leads_to = os.fsencode(os.readlink(path))
    return hashlib.new(hash_name(recorded), b"blob %d\0" % len(leads_to) + leads_to, usedforsecurity=False).hexdigest()


def _quote(path: bytes) -> bytes:
    """Quote a path as git takes one from a line: it drops a CR at the end, and reads what begins with a quote as C."""
    if not path.startswith(b'"') and b"\n" not in path and b"\r" not in path:
        return path
    for character, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r")):
        path = path.replace(character, escaped)
    return b'"' + path + b'"'


def _list_unsaved_submodules(index: Marked, top: Path, prefix: str, seen: set[str]) -> Iterator[str]:
    """List initialised submodules, nested ones too, with commits that neither their record nor a remote has.

    The Git folders of all of them go into `seen`.
    """
    for path, recorded in index.submodules.items():
        folder = top / path
        inner = _open_submodule(folder)
        if inner is not None:
            seen.add(os.path.realpath(inner.git_dir))
            if _has_unsaved_commits(inner, recorded):
                yield prefix + path
            yield from _list_unsaved_submodules(load_index(inner), folder, f"{prefix}{path}/", seen)


def _list_unsaved_remains(modules: str, seen: Collection[str]) -> Iterator[str]:
    """List the repositories of submodules that are checked out no more, with commits that no remote has, by name."""
    for git_dir in _find_modules(modules):
        # It still names the folder that it had, which may be gone.
        if os.path.realpath(git_dir) not in seen and _has_unsaved_commits(
            Git(Path(git_dir), Path(git_dir)), None, f"--work-tree={git_dir}"
        ):
            yield os.path.relpath(git_dir, modules)


def _find_modules(folder: str) -> Iterator[str]:
    for entry in sorted(os.scandir(folder), key=lambda e: e.name) if os.path.isdir(folder) else ():
        if not entry.is_dir(follow_symlinks=False):
            continue
        if gitfiles.is_git_dir(entry.path):
            yield entry.path
            yield from _find_modules(f"{entry.path}/modules")
        else:
            yield from _find_modules(entry.path)


def _open_submodule(folder: Path) -> Git | None:
    dot_git = f"{folder}/.git"
    git_dir = dot_git if os.path.isdir(dot_git) else gitfiles.read_git_link(dot_git)
    return Git(folder, Path(git_dir)) if git_dir is not None and gitfiles.is_git_dir(git_dir) else None


def _has_unsaved_commits(inner: Git, recorded: str | None, *options: str) -> bool:
    known = recorded and inner.read(*options, "cat-file", "-e", recorded + "^{commit}", ok=(0, 1, 128)).code == 0
    excluded = [recorded] if recorded and known else []
    kept = inner.read(*options, "for-each-ref", "--count=1", "refs/stash").out
    asked = ("rev-list", "--max-count=1", "HEAD", "--branches", "--not", "--remotes", *excluded)
    found = inner.read(*options, *asked, ok=(0, 128))
    return bool(kept or found.out)
