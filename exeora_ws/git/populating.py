"""Adding a worktree, all or nothing: what both ways of populating prepare and take back, and git's own way."""

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from exeora_ws.errors import ToolFailed
from exeora_ws.git import admin
from exeora_ws.git.command import Git, Output, decode
from exeora_ws.git.engine import Engine, require_commit_id
from exeora_ws.git.links import find_link_fault
from exeora_ws.git.messages import describe_failure, find_last_line, translated_os_errors
from exeora_ws.git.port import Addition

_WORKERS = ("-c", "checkout.workers=8", "-c", "checkout.thresholdForParallelism=1")


def populate(engine: Engine, git: Git, addition: Addition) -> None:
    """Have `git worktree add` do it; `git` runs at the source checkout, whose sparse cone it takes over."""
    with ExitStack() as undo:
        commitish = prepare(engine, addition, undo)
        detach = [] if addition.branch or addition.new_branch else ["--detach"]
        target = str(addition.path)
        # The branch is there already, so git neither guesses one nor sets an upstream.
        output = git.populate(*_WORKERS, "worktree", "add", *detach, "--", target, commitish)
        if output.code != 0:
            raise _explain(output, addition.path)
        if addition.source is None:
            _fill_whole_tree(engine, addition.path)
        undo.pop_all()


def prepare(engine: Engine, addition: Addition, undo: ExitStack) -> str:
    """Check what is asked, make parents and branch, and put on `undo` whatever takes them and the rest back.

    Gives what to check out: the branch's name, or the commit.
    """
    require_commit_id(addition.commit)
    if addition.branch is not None and addition.new_branch is not None:
        raise ToolFailed("a worktree has one branch, new or not", reason="invalid_argument")
    if addition.branch is not None:
        _require_branch(engine, addition.branch, addition.commit)
    with translated_os_errors("making the worktree's folder"):
        _drop_stale_entries(engine.common_dir, addition.path)
        mode = _read_free_target(addition.path)
        _make_parents(addition.path.parent, undo)
    if addition.new_branch is not None:
        engine.create_branch(addition.new_branch, addition.commit)
        undo.callback(_quietly, engine.delete_ref, addition.new_branch, addition.commit)
    undo.callback(_take_back, engine.common_dir, addition.path, mode)
    return addition.branch or addition.new_branch or addition.commit


def _require_branch(engine: Engine, branch: str, commit: str) -> None:
    present = engine.find_branch(branch)
    if present is None:
        raise ToolFailed(f"there is no branch {branch!r}", reason="branch_missing")
    if present != commit:
        raise ToolFailed(f"branch {branch!r} has moved since it was looked at", reason="branch_moved")
    engine.refuse_held(branch)


def _drop_stale_entries(common_dir: Path, path: Path) -> None:
    """Forget the records of a worktree that was in this folder and was deleted by hand, as `add --force` would."""
    for name in admin.find_entries_for(common_dir, path):
        if find_link_fault(os.path.realpath(path), str(common_dir), name) is None:
            raise ToolFailed("there is a worktree in that folder already", reason="worktree_present")
        admin.require_unlocked(common_dir, name)
        admin.discard(common_dir, name)


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


def _take_back(common_dir: Path, path: Path, mode: int | None) -> None:
    """Remove what a failed addition left: its files, its record, its folder unless that was there before."""
    for name in admin.find_entries_for(common_dir, path):
        _quietly(admin.discard, common_dir, name)
    remove_tree(path)
    if mode is not None:
        with suppress(OSError):
            os.mkdir(path)
            os.chmod(path, mode)


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


def _explain(output: Output, path: Path) -> ToolFailed:
    stderr = decode(output.err)
    # Git says where HEAD is once all files are written: what fails after that is the post-checkout hook.
    if output.code > 0 and output.out.startswith(b"HEAD is now at"):
        return ToolFailed(
            f"the post-checkout hook failed (exit code {output.code}): {find_last_line(stderr) or 'it says nothing'}",
            reason="hook_failed",
            hint="run the hook by hand, or set core.hooksPath elsewhere",
        )
    failure = describe_failure(output.code, stderr)
    if failure.reason == "git_failed" and _is_full(path):
        return ToolFailed("the disk is full", reason="disk_full")
    return failure


def _is_full(path: Path) -> bool:
    folder = path
    while not os.path.exists(folder):
        folder = folder.parent
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize < 65_536 or (space.f_files > 0 and space.f_favail == 0)  # noqa: PLR2004


def _fill_whole_tree(engine: Engine, path: Path) -> None:
    """Undo the sparse cone that git took from the checkout it ran in."""
    for name in admin.find_entries_for(engine.common_dir, path):
        folder = engine.common_dir / "worktrees" / name
        if os.path.exists(folder / "info" / "sparse-checkout"):
            Git(path, folder).change("sparse-checkout", "disable")
