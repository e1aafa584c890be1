"""`git status` as the value of the port: asked once, parsed purely; and what only submodules' own commits can lose."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from exeora_ws.git import gitfiles
from exeora_ws.git.command import Git, decode
from exeora_ws.git.port import Status

_ORDINARY_FIELDS = 8
_RENAMED_FIELDS = 9
_UNMERGED_FIELDS = 10


def load_status(git: Git, top: Path, git_dir: Path, *, ignored: bool) -> Status:
    """Ask git for the state of a checkout."""
    output = git.read(
        "status",
        "--porcelain=v2",
        "-z",
        "--no-renames",
        "--untracked-files=normal",
        "--ignored=traditional" if ignored else "--ignored=no",
        "--ignore-submodules=none",
    )
    status = parse_status(decode(output.out))
    if not _may_have_submodules(top, git_dir):
        return status
    ahead = set(_list_unsaved_submodules(git, top, ""))
    return _with_submodules(status, ahead)


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


def _with_submodules(status: Status, more: Iterable[str]) -> Status:
    return Status(
        staged=status.staged,
        unstaged=status.unstaged,
        untracked=status.untracked,
        ignored=status.ignored,
        conflicted=status.conflicted,
        submodules=tuple(sorted({*status.submodules, *more})),
    )


def _may_have_submodules(top: Path, git_dir: Path) -> bool:
    return os.path.lexists(top / ".gitmodules") or os.path.isdir(git_dir / "modules")


def _list_unsaved_submodules(git: Git, top: Path, prefix: str) -> Iterator[str]:
    """List initialised submodules, nested ones too, with commits that neither their record nor a remote has."""
    for path, recorded in _list_gitlinks(git):
        folder = top / path
        inner = _open_submodule(folder)
        if inner is not None:
            if _has_unsaved_commits(inner, recorded):
                yield prefix + path
            yield from _list_unsaved_submodules(inner, folder, f"{prefix}{path}/")


def _list_gitlinks(git: Git) -> Iterator[tuple[str, str]]:
    for record in decode(git.read("ls-files", "--stage", "-z").out).split("\0"):
        if record.startswith("160000 "):
            facts, _, path = record.partition("\t")
            yield path, facts.split(" ")[1]


def _open_submodule(folder: Path) -> Git | None:
    dot_git = f"{folder}/.git"
    git_dir = dot_git if os.path.isdir(dot_git) else gitfiles.read_git_link(dot_git)
    return Git(folder, Path(git_dir)) if git_dir is not None and gitfiles.is_git_dir(git_dir) else None


def _has_unsaved_commits(inner: Git, recorded: str) -> bool:
    known = inner.read("cat-file", "-e", recorded + "^{commit}", ok=(0, 1, 128)).code == 0
    excluded = [recorded] if known else []
    kept = inner.read("for-each-ref", "--count=1", "refs/stash").out
    found = inner.read("rev-list", "--max-count=1", "HEAD", "--branches", "--not", "--remotes", *excluded, ok=(0, 128))
    return bool(kept or found.out)
