"""What a folder holds, as a value to compare."""

import hashlib
import os
from pathlib import Path

from support.repositories import git


def picture(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file and link below a folder: kind or digest, mode, modification time in ns."""
    seen: dict[str, tuple[str, int, int]] = {}
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(top, name)
            state = path.lstat()
            if path.is_symlink():
                what = "-> " + os.readlink(path)
            elif path.is_dir():
                what = "folder"
            else:
                what = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "special"
            seen[str(path.relative_to(folder))] = (what, state.st_mode, 0 if what == "folder" else state.st_mtime_ns)
    return seen


def repository_picture(top: Path) -> dict[str, object]:
    """What must not change when something is refused: refs, worktrees on record, config, files of main."""
    common = Path(git(top, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    admins = common / "worktrees"
    return {
        "refs": git(top, "for-each-ref"),
        "head": (common / "HEAD").read_text(),
        "worktrees": sorted(os.listdir(admins)) if admins.exists() else [],
        "config": (common / "config").read_bytes(),
        "files": {k: v for k, v in picture(top).items() if not k.startswith(".git")},
    }
