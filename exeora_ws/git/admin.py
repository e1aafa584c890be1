"""The folders under `worktrees/` where Git keeps each linked worktree: made, locked, copied and removed as files."""

import os
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.errors import ToolFailed
from exeora_ws.git import gitfiles
from exeora_ws.git.links import find_link_fault
from exeora_ws.git.port import Worktree
from exeora_ws.storage import replace_file

# Rewritten for the entry's new place, or true only of the moment.
_NOT_SAVED = ("gitdir", "commondir", "locked")
_REMAINS_SECONDS = 3600
_LOCK_SECONDS = 600
_SAVED_NAME = "exeora-name"
_BEING_MADE = "exeora is making this worktree"


@dataclass(frozen=True, slots=True)
class Entry:
    """One admin folder that names a worktree."""

    name: str
    folder: str
    """The admin folder itself."""
    files: frozenset[str]
    """What lies in it."""
    worktree: str
    """The worktree's folder on record, real; there or not."""


def list_folders(common_dir: Path) -> list[str]:
    """List what lies under `worktrees/`, sorted: records, and what is left of some."""
    try:
        return sorted(os.listdir(common_dir / "worktrees"))
    except (FileNotFoundError, NotADirectoryError):
        return []


def load_entries(common_dir: Path) -> list[Entry]:
    """Load the admin folders that name a worktree, by name. Left-overs without `gitdir` are nobody's, as for Git."""
    real = _RealFolders()
    found = (load_entry(f"{common_dir}/worktrees/{name}", name, real) for name in list_folders(common_dir))
    return [entry for entry in found if entry is not None]


class _RealFolders:
    """Resolves folders that mostly lie side by side: what they lie in is resolved once."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def resolve(self, folder: str) -> str:
        above, name = os.path.split(folder)
        if not name or os.path.islink(folder):
            return os.path.realpath(folder)
        if above not in self._above:
            self._above[above] = os.path.realpath(above)
        return os.path.join(self._above[above], name)


def load_entry(folder: str, name: str, real: _RealFolders | None = None) -> Entry | None:
    """Load one admin folder; None when it names no worktree."""
    back = gitfiles.read_back_link(folder)
    if back is None:
        return None
    try:
        files = frozenset(os.listdir(folder))
    except FileNotFoundError:
        return None
    return Entry(name, folder, files, (real or _RealFolders()).resolve(_strip_link(back)))


def _strip_link(back: str) -> str:
    return os.path.dirname(back) if os.path.basename(back) == ".git" else back


def read_folder(common_dir: Path, name: str) -> str | None:
    """Give the worktree folder an entry is for, real; None when the entry does not say."""
    back = gitfiles.read_back_link(f"{common_dir}/worktrees/{name}")
    return None if back is None else os.path.realpath(_strip_link(back))


def read_lock(folder: str) -> str | None:
    """Give the reason the worktree of this admin folder is locked for, perhaps empty; None when it is not."""
    path = folder + "/locked"
    text = gitfiles.read_text(path)
    if text is None:
        return "" if os.path.lexists(path) else None
    return text.strip()


def find_entries_for(common_dir: Path, folder: Path) -> list[str]:
    """Find the entries whose worktree is this folder, there or not."""
    wanted, real = os.path.realpath(folder), _RealFolders()
    links = ((name, gitfiles.read_back_link(f"{common_dir}/worktrees/{name}")) for name in list_folders(common_dir))
    return [name for name, back in links if back is not None and real.resolve(_strip_link(back)) == wanted]


def remove(common_dir: Path, worktree: Worktree) -> None:
    """Remove the entry of a worktree whose folder is gone. No error when it is gone already."""
    name = require_name(worktree)
    present = read_folder(common_dir, name)
    if present is not None and present != str(worktree.path):
        raise ToolFailed("this worktree's record is another worktree's by now", reason="stale")
    require_unlocked(common_dir, name)
    if find_link_fault(str(worktree.path), str(common_dir), name) is None:
        raise ToolFailed("the worktree's folder is still there", reason="worktree_present")
    discard(common_dir, name)


def discard(common_dir: Path, name: str) -> None:
    """Delete an entry, whatever it says.

    Without `gitdir` no Git sees it any more. The index goes before that: what has lost its `gitdir` and still has an
    index was not being deleted, so it may be somebody's (see `list_remains`).
    """
    folder = common_dir / "worktrees" / name
    for first in ("index", "gitdir"):
        with suppress(FileNotFoundError):
            os.unlink(folder / first)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    with suppress(OSError):
        os.rmdir(common_dir / "worktrees")


def discard_remains(common_dir: Path, folder_name: str) -> None:
    """Delete what a `discard` cut short has left of an entry for a folder of this name: no `gitdir`, not locked.

    Git numbers entries whose name is taken, so the name may be followed by digits. What a `make` or `revive` cut
    short has left goes too, under any name: it says that it is ours, and the caller holds the repository's lock.
    """
    for name in list_folders(common_dir):
        entry = common_dir / "worktrees" / name
        ours = name == folder_name or (name.startswith(folder_name) and name[len(folder_name) :].isdecimal())
        lock_reason = read_lock(str(entry))
        left = (ours and lock_reason is None and not _has_index(entry)) or lock_reason == _BEING_MADE
        if left and not os.path.lexists(entry / "gitdir"):
            discard(common_dir, name)


def require_unlocked(common_dir: Path, name: str) -> None:
    """Refuse a locked worktree and quote why it is locked."""
    reason = read_lock(f"{common_dir}/worktrees/{name}")
    if reason is not None:
        said = f": {reason}" if reason else ""
        raise ToolFailed(f"the worktree is locked{said}", reason="locked", data={"lockReason": reason})


def lock(common_dir: Path, worktree: Worktree, reason: str) -> None:
    """Lock a worktree against pruning and removal."""
    path = common_dir / "worktrees" / require_name(worktree) / "locked"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        require_unlocked(common_dir, require_name(worktree))
        raise
    except FileNotFoundError as error:
        raise ToolFailed("Git has no record of this worktree any more", reason="stale") from error
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(os.fsencode(reason + "\n" if reason else ""))


def unlock(common_dir: Path, worktree: Worktree) -> None:
    """Unlock a worktree; no error when it was not locked."""
    with suppress(FileNotFoundError):
        os.unlink(common_dir / "worktrees" / require_name(worktree) / "locked")


def follow_move(common_dir: Path, worktree: Worktree, folder: Path) -> None:
    """Have an entry and its folder, which was moved, lead to each other again; relative links stay relative.

    Raises:
        ToolFailed: reason `unsupported`, when it has submodules: their settings name the old folder.
    """
    entry = common_dir / "worktrees" / require_name(worktree)
    if has_submodules(common_dir, worktree):
        raise ToolFailed("a worktree with submodules cannot be moved", reason="unsupported")
    back, dot_git = f"{folder}/.git", str(entry)
    if not (gitfiles.read_path(f"{entry}/gitdir") or "/").startswith("/"):
        back, dot_git = os.path.relpath(back, entry), os.path.relpath(entry, folder)
    link = f"gitdir: {dot_git}"
    if gitfiles.read_path(f"{folder}/.git") != link:
        # In place: a temporary file beside it would stand among the user's files if we were killed.
        (folder / ".git").write_bytes(os.fsencode(link + "\n"))
    replace_file(entry / "gitdir", os.fsencode(f"{back}\n"), mode=0o644)


def has_submodules(common_dir: Path, worktree: Worktree) -> bool:
    """Whether initialised submodules of this worktree are kept in its entry."""
    return (common_dir / "worktrees" / require_name(worktree) / "modules").is_dir()


def make(common_dir: Path, folder: Path, head: str) -> str:
    """Make an entry and the folder's `.git` file by hand; `head` is the content of HEAD. Gives the entry's name.

    As Git does: the entry is locked until it is whole, so that nobody's prune takes it away.
    """
    name = _claim_name(common_dir, folder.name)
    _fill(common_dir / "worktrees" / name, folder, {"HEAD": head + "\n"})
    return name


def save(common_dir: Path, worktree: Worktree, into: Path) -> None:
    """Copy an entry to the new folder `into`; large immutable objects of submodules are linked, not copied."""
    name = require_name(worktree)

    def skip(folder: str, names: list[str]) -> list[str]:
        top = os.path.samefile(folder, source)
        return [n for n in names if n.endswith((".lock", ".ipc")) or (top and n in _NOT_SAVED)]

    source = common_dir / "worktrees" / name
    shutil.copytree(source, into, symlinks=True, ignore=skip, copy_function=_link_or_copy)
    (into / _SAVED_NAME).write_text(name, "utf-8", "surrogateescape")


def revive(common_dir: Path, saved: Path, folder: Path) -> str:
    """Make an entry for `folder` from a saved copy, under its old name if that is free. Gives the name."""
    wanted = (saved / _SAVED_NAME).read_text("utf-8", "surrogateescape")
    name = _claim_name(common_dir, wanted)
    admin = common_dir / "worktrees" / name
    try:
        if name != wanted and (saved / "modules").is_dir():
            # The submodules' own .git files name the old entry.
            raise ToolFailed("its place under worktrees/ is taken, and its submodules need it", reason="unsupported")
        for item in sorted(saved.iterdir()):
            if item.name != _SAVED_NAME:
                _copy(item, admin / item.name)
        _fill(admin, folder, {})
    except BaseException:
        discard(common_dir, name)
        raise
    return name


def require_name(worktree: Worktree) -> str:
    """Give a linked worktree's entry; main has none, and no name leads out of `worktrees/`."""
    name = worktree.admin
    if name is None or name in ("", ".", "..") or "/" in name:
        raise ToolFailed("this is main, not a linked worktree", reason="main_worktree")
    return name


def _claim_name(common_dir: Path, wanted: str) -> str:
    parent = common_dir / "worktrees"
    parent.mkdir(exist_ok=True)
    stem = wanted.strip(".") or "worktree"
    name = stem
    while True:
        try:
            os.mkdir(parent / name)
        except FileExistsError:
            name = f"{stem}-{secrets.token_hex(3)}"
        else:
            (parent / name / "locked").write_text(_BEING_MADE + "\n")
            return name


def _fill(admin: Path, folder: Path, files: dict[str, str]) -> None:
    for name, content in (files | {"commondir": "../..\n", "gitdir": f"{folder}/.git\n"}).items():
        (admin / name).write_bytes(os.fsencode(content))
    (folder / ".git").write_bytes(os.fsencode(f"gitdir: {admin}\n"))
    os.unlink(admin / "locked")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, copy_function=_link_or_copy)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _link_or_copy(source: str, target: str) -> None:
    if "/objects/" in source:
        with suppress(OSError):
            os.link(source, target, follow_symlinks=False)
            return
    shutil.copy2(source, target, follow_symlinks=False)


def list_remains(common_dir: Path) -> list[tuple[str, bool]]:
    """List entries without `gitdir` that are neither locked nor new: a crash left them, and Git does not see them.

    Each with whether it is empty of work: one with an index may hold what is staged in a folder that still leads to
    it, and only lacks the way back.
    """
    named = {entry.name for entry in load_entries(common_dir)}
    before = time.time() - _REMAINS_SECONDS
    parent = common_dir / "worktrees"
    unnamed = [name for name in list_folders(common_dir) if name not in named]
    left = [n for n in unnamed if read_lock(str(parent / n)) is None and _is_older(parent / n, before)]
    return [(name, not _has_index(parent / name)) for name in left]


def _has_index(entry: Path) -> bool:
    return os.path.lexists(entry / "index")


def find_forsaken(common_dir: Path, folder: Path) -> str | None:
    """Find the entry that a folder's `.git` leads to and that has lost its way back; None when there is none."""
    link = gitfiles.read_git_link(f"{folder}/.git")
    entry = os.path.realpath(link) if link is not None else ""
    name = os.path.basename(entry)
    whole = entry == f"{common_dir}/worktrees/{name}" and gitfiles.is_git_dir(entry)
    return name if whole and not os.path.lexists(f"{entry}/gitdir") else None


def reconnect(common_dir: Path, folder: Path) -> None:
    """Give the entry that a folder's `.git` leads to its lost way back."""
    name = find_forsaken(common_dir, folder)
    if name is None:
        raise ToolFailed("the folder leads to no record that lacks only its way back", reason="stale")
    replace_file(common_dir / "worktrees" / name / "gitdir", os.fsencode(f"{folder}/.git\n"), mode=0o644)


def list_stale_locks(common_dir: Path) -> list[str]:
    """List Git's lock files older than ten minutes, relative to the shared folder."""
    before = time.time() - _LOCK_SECONDS
    found = [*common_dir.glob("*.lock"), *common_dir.glob("worktrees/*/*.lock"), *common_dir.glob("refs/**/*.lock")]
    return sorted(str(path.relative_to(common_dir)) for path in found if _is_older(path, before))


def _is_older(path: Path, than: float) -> bool:
    try:
        return path.lstat().st_mtime < than
    except OSError:
        return False
