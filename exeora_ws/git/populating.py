"""Adding a worktree, all or nothing: what both ways of populating prepare and take back, and git's own way."""

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.git import admin, copier, seeding
from exeora_ws.git.command import WORKERS, Git, Output, decode
from exeora_ws.git.engine import Engine, require_commit_id
from exeora_ws.git.links import find_link_fault
from exeora_ws.git.messages import describe_failure, find_last_line, translated_os_errors
from exeora_ws.git.port import Addition, Checkout

_HALF_WRITTEN = re.compile(rb"failed to read .*(commondir|gitdir|HEAD)")
_PAUSES = (0.01, 0.03, 0.1, 0.3, 0.0)


def populate(engine: Engine, git: Git, addition: Addition, cancellation: Cancellation | None) -> None:
    """Have `git worktree add` do it; `git` runs at the source checkout, whose sparse cone it takes over."""
    with ExitStack() as undo:
        commitish = prepare(engine, addition, undo)
        detach = [] if addition.branch or addition.new_branch else ["--detach"]
        words = [*detach, "--", str(addition.path), commitish]
        seed = _find_seed(engine, git, addition)
        if seed is None or not _copy(engine, git, seed, addition, words, cancellation=cancellation):
            output = _add(git, cancellation, *words)
            if output.code != 0:
                raise _explain(output, git, addition)
        if addition.source is None:
            _fill_whole_tree(engine, addition.path)
        undo.pop_all()


def _find_seed(engine: Engine, git: Git, addition: Addition) -> Checkout | None:
    """Find the checkout to copy from: the likely one, if that writes what git would."""
    like = addition.like or addition.source
    if like is None:
        return None
    found = engine.require_source(like)
    return found if seeding.can_seed(git, found) else None


def _copy(
    engine: Engine,
    git: Git,
    seed: Checkout,
    addition: Addition,
    words: Sequence[str],
    *,
    cancellation: Cancellation | None,
) -> bool:
    """Add the worktree by copying; False when nothing came of it, and nothing is left of it."""
    mode, before = _read_free_target(addition.path), admin.list_folders(engine.common_dir)
    code = seeding.make(git, seed, addition, ["worktree", "add", "--no-checkout", *words], cancellation)
    if code == copier.COMPLETE:
        return True
    if code != copier.INCOMPLETE:
        _take_back(engine.common_dir, addition.path, mode, before)
        return False
    output = seeding.write_rest(addition.path, cancellation)
    if output.code != 0:
        raise _explain(Output(output.code, b"", output.err), git, addition)
    return True


def _add(git: Git, cancellation: Cancellation | None, *arguments: str) -> Output:
    """Run `git worktree add`. The branch is there already, so git neither guesses one nor sets an upstream.

    Git trips over a record that another git is writing at that moment, before it has made anything itself.
    """
    for pause in _PAUSES:
        output = git.populate(*WORKERS, "worktree", "add", *arguments, cancellation=cancellation)
        if output.code == 0 or not _HALF_WRITTEN.search(output.err):
            break
        time.sleep(pause)
    return output


def prepare(engine: Engine, addition: Addition, undo: ExitStack) -> str:
    """Check what is asked, make parents and branch, and put on `undo` whatever takes them and the rest back.

    Gives what to check out: the branch's name, or the commit.
    """
    require_commit_id(addition.commit)
    if addition.branch is not None and addition.new_branch is not None:
        raise ToolFailed("a worktree has one branch, new or not", reason="invalid_argument")
    with translated_os_errors("making the worktree's folder"):
        stale = _find_stale_entries(engine.common_dir, addition.path)
        mode = _read_free_target(addition.path)
        if addition.branch is not None:
            _require_branch(engine, addition.branch, addition.commit, stale)
        for name in stale:
            admin.discard(engine.common_dir, name)
        _make_parents(addition.path.parent, undo)
    if addition.new_branch is not None:
        engine.create_branch(addition.new_branch, addition.commit)
        undo.callback(_quietly, engine.delete_ref, addition.new_branch, addition.commit)
    undo.callback(_take_back, engine.common_dir, addition.path, mode, admin.list_folders(engine.common_dir))
    return addition.branch or addition.new_branch or addition.commit


def _require_branch(engine: Engine, branch: str, commit: str, stale: list[str]) -> None:
    present = engine.find_branch(branch)
    if present is None:
        raise ToolFailed(f"there is no branch {branch!r}", reason="branch_missing")
    if present != commit:
        raise ToolFailed(f"branch {branch!r} has moved since it was looked at", reason="branch_moved")
    engine.refuse_held(branch, but_for=stale)


def _find_stale_entries(common_dir: Path, path: Path) -> list[str]:
    """Find the records of a worktree that was in this folder and was deleted by hand: the new one replaces it."""
    names = admin.find_entries_for(common_dir, path)
    for name in names:
        if find_link_fault(os.path.realpath(path), str(common_dir), name) is None:
            raise ToolFailed("there is a worktree in that folder already", reason="worktree_present")
        admin.require_unlocked(common_dir, name)
    return names


def _read_free_target(path: Path) -> int | None:
    """Give the mode of the empty folder that is to be filled; None when nothing is there yet."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(mode):
        raise ToolFailed("the target exists and is no folder", reason="target_not_empty")
    if os.listdir(path):
        raise ToolFailed("the target folder is not empty", reason="target_not_empty")
    return stat.S_IMODE(mode)


def _make_parents(folder: Path, undo: ExitStack) -> None:
    missing: list[Path] = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    for parent in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(parent)
            undo.callback(_quietly, os.rmdir, parent)


def _take_back(common_dir: Path, path: Path, mode: int | None, before: Collection[str]) -> None:
    """Remove what a failed addition left: its files, its record, its folder unless that was there before."""
    for name in (*admin.find_entries_for(common_dir, path), *_find_remains(common_dir, path, before)):
        _quietly(admin.discard, common_dir, name)
    _quietly(os.rmdir, common_dir / "worktrees")
    remove_tree(path)
    if mode is not None:
        with suppress(OSError):
            os.mkdir(path)
            os.chmod(path, mode)


def _find_remains(common_dir: Path, path: Path, before: Collection[str]) -> list[str]:
    """Find the record that a git killed while it tidied up left without its `gitdir`: new, and named for the folder."""
    stem = re.sub(r"[^A-Za-z0-9]", "", path.name)
    return [
        name
        for name in admin.list_folders(common_dir)
        if name not in before
        and admin.read_folder(common_dir, name) is None
        and re.sub(r"[^A-Za-z0-9]", "", name).startswith(stem)
    ]


def remove_tree(path: Path) -> None:
    """Delete a folder with all in it, folders without write permission too; what resists stays."""

    def force(_function: Callable[..., object], name: str, _info: object) -> None:
        with suppress(OSError):
            os.chmod(os.path.dirname(name), stat.S_IRWXU)
            os.chmod(name, stat.S_IRWXU)
            shutil.rmtree(name, ignore_errors=True) if os.path.isdir(name) else os.unlink(name)

    if os.path.lexists(path):
        shutil.rmtree(path, onerror=force)


def _quietly(function: Callable[..., object], *arguments: object) -> None:
    """Take one thing back; the failure that led here is the one to tell."""
    with suppress(OSError, ToolFailed):
        function(*arguments)


def _explain(output: Output, git: Git, addition: Addition) -> ToolFailed:
    stderr = decode(output.err)
    # Git says where HEAD is once all files are written: what fails after that is the post-checkout hook.
    if output.out.startswith(b"HEAD is now at"):
        how = f"exit code {output.code}" if output.code > 0 else f"signal {-output.code}"
        return ToolFailed(
            f"the post-checkout hook failed ({how}): {find_last_line(stderr) or 'it says nothing'}",
            reason="hook_failed",
            hint="run the hook by hand, or set core.hooksPath elsewhere",
        )
    failure = describe_failure(output.code, stderr)
    if "unable to write file" in stderr and _measure(git, addition.commit) > _measure_free(addition.path):
        return ToolFailed("the disk has too little room for the worktree", reason="disk_full")
    return failure


def _measure(git: Git, commit: str) -> int:
    """Add up the bytes of a commit's files: git does not say why it could not write one, and has tidied up already."""
    records = decode(git.read("ls-tree", "-r", "-l", "-z", commit, ok=(0, 128)).out).split("\0")
    sizes = [record.partition("\t")[0].split()[-1] for record in records if record]
    return sum(int(size) for size in sizes if size.isdecimal())


def _measure_free(path: Path) -> int:
    while not os.path.exists(path):
        path = path.parent
    space = os.statvfs(path)
    return space.f_bavail * space.f_frsize if space.f_files == 0 or space.f_favail else 0


def _fill_whole_tree(engine: Engine, path: Path) -> None:
    """Undo the sparse cone that git took from the checkout it ran in."""
    for name in admin.find_entries_for(engine.common_dir, path):
        folder = engine.common_dir / "worktrees" / name
        if os.path.exists(folder / "info" / "sparse-checkout"):
            Git(path, folder).change("sparse-checkout", "disable")
