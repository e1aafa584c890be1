"""Deleting a large folder with several processes: for the sweeper, which has one thread and may fork."""

import os
from pathlib import Path

from exeora_ws.git.populating import remove_tree

_MANY_FOLDERS = 100


def clear_tree(path: Path) -> None:
    """Delete a folder with all in it, following no link; what resists stays.

    Args:
        path: the folder. Nothing else may be writing in it.
    """
    folders = _list_folders(path)
    others = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, 4) - 1
    if len(folders) >= _MANY_FOLDERS and others:
        children = [_fork(folders[number :: others + 1]) for number in range(others)]
        _empty(folders[others :: others + 1])
        for child in children:
            os.waitpid(child, 0)
    # What is left are folders, and what could not be deleted so simply.
    remove_tree(path)


def _list_folders(top: Path) -> list[str]:
    found, waiting = [], [str(top)]
    while waiting:
        folder = waiting.pop()
        found.append(folder)
        try:
            with os.scandir(folder) as entries:
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
    return found


def _fork(folders: list[str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        _empty(folders)
    finally:
        os._exit(0)


def _empty(folders: list[str]) -> None:
    """Delete the files in these folders, not what is in folders in them."""
    for folder in folders:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            with os.scandir(descriptor) as entries:
                names = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
            for name in names:
                os.unlink(name, dir_fd=descriptor)
        except OSError:
            continue
        finally:
            os.close(descriptor)
