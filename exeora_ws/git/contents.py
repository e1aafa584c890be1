"""What is in a checkout as Git sees it: what is tracked, and what is neither tracked nor ignored."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError
from exeora_ws.git.command import Git, decode, find_git
from exeora_ws.git.gitfiles import is_git_dir, read_git_link

_UNREADABLE = "warning: could not open directory"
_SKIPPED = "node_modules"
_FILE = "100"
"""How the modes of files begin; links and other repositories have other ones."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What git printed, as `ls-files -t --stage -z` does: a tag, for what is tracked mode, object and stage, a path.

    Paths are relative to the top of the checkout. A repository of its own in there is one entry.
    """

    records: bytes
    unreadable: int
    """Folders that could not be read."""


def list_contents(top: str, folder: str, cancellation: Cancellation, seconds: float) -> Contents | None:
    """List what is below a folder of a checkout, without untracked `node_modules`.

    What is tracked is listed also where its file is gone, and however a rule would have it ignored.

    Args:
        top: absolute path of the checkout's top, where its `.git` is.
        folder: relative to it, `.` for the top itself.
        cancellation: ends it.
        seconds: how long it may take.

    Returns:
        None where Git cannot say: no git executable, no sound repository, or not in this time.

    Raises:
        Cancelled: the call was taken back.
    """
    cancellation.raise_if_cancelled()
    git_dir = _find_git_dir(top)
    if git_dir is None or find_git() is None:
        return None
    skipped = () if _SKIPPED in folder.split("/") else (f"--exclude={_SKIPPED}",)
    try:
        said = Git(Path(top), Path(git_dir)).read(
            f"--work-tree={top}",  # whatever core.worktree says
            "--literal-pathspecs",
            *("ls-files", "--cached", "--others", "--exclude-standard", *skipped, "-t", "--stage", "-z", "--", folder),
            cancellation=cancellation,
            seconds=seconds,
        )
    except ExeoraError:
        cancellation.raise_if_cancelled()
        return None
    return Contents(said.out, decode(said.err).count(_UNREADABLE))


def list_tracked_ignored(top: str, folder: str, cancellation: Cancellation, seconds: float) -> Sequence[str]:
    """List the tracked files below a folder of a checkout that a rule would have ignored, relative to the folder.

    Args and Raises: as `list_contents`. Where Git cannot say there are none.
    """
    cancellation.raise_if_cancelled()
    git_dir = _find_git_dir(top)
    if git_dir is None or find_git() is None:
        return ()
    words = ("ls-files", "--cached", "--ignored", "--exclude-standard", "--stage", "-z", "--", folder)
    try:
        said = Git(Path(top), Path(git_dir)).read(
            f"--work-tree={top}", "--literal-pathspecs", *words, cancellation=cancellation, seconds=seconds
        )
    except ExeoraError:
        cancellation.raise_if_cancelled()
        return ()
    head = "" if folder == "." else f"{folder}/"
    records = (record.partition("\t") for record in decode(said.out).split("\0"))
    files = (path for facts, _, path in records if facts.startswith(_FILE))
    return tuple(dict.fromkeys(path.removeprefix(head) for path in files if path.startswith(head)))


def _find_git_dir(top: str) -> str | None:
    entry = os.path.join(top, ".git")
    git_dir = entry if os.path.isdir(entry) else read_git_link(entry)
    return git_dir if git_dir is not None and is_git_dir(git_dir) else None
