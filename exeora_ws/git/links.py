"""Which repository a folder belongs to, and whether a registered worktree is still what it was: by reading alone.

Importing this imports nothing but `os`: `list`, `path` and completion are answered with it. Variables `GIT_*` are not
looked at.
"""

import os

from exeora_ws.git import gitfiles

TYPE_CHECKING = False  # type checkers take it as true; importing `typing` would cost more than this whole module
if TYPE_CHECKING:
    from pathlib import Path

    from exeora_ws.errors import ToolFailed
    from exeora_ws.git.port import Checkout

# The values of `port.LinkFault`, which would cost this module an import of `enum`.
_MISSING = "missing"
_NOT_A_WORKTREE = "not_a_worktree"
_OTHER_REPOSITORY = "other_repository"
_BROKEN_LINK = "broken_link"


def find_checkout(folder: "Path") -> "Checkout | None":
    """Find the repository around `folder`. The only function that walks up, and it stops at the file system's root.

    A `.git` that leads nowhere ends the walk: the folder belonged to a worktree whose link broke, and the repository
    further up is not it.

    Raises:
        ToolFailed: reason `broken_link`, for such a `.git`.
    """
    current = os.path.realpath(folder)
    while True:
        found = read_checkout(current)
        if found is not None:
            return found
        above = os.path.dirname(current)
        if above == current:
            return None
        current = above


def read_checkout(folder: str) -> "Checkout | None":
    """Read what is at exactly this real folder: the top of a worktree, or a Git folder. None when neither.

    Raises:
        ToolFailed: reason `broken_link`, when its `.git` leads nowhere.
    """
    dot_git = folder + "/.git"
    if os.path.lexists(dot_git):
        git_dir = _follow(dot_git)
        return _read_at_top(folder, git_dir, _real_common_dir(git_dir))
    if gitfiles.is_git_dir(folder):
        common = _real_common_dir(folder)
        main, bare = find_main(common)
        return _checkout(None, folder, common, main, bare=bare)
    return None


def _follow(dot_git: str) -> str:
    git_dir = dot_git if os.path.isdir(dot_git) else gitfiles.read_git_link(dot_git)
    if git_dir is None or not gitfiles.is_git_dir(git_dir):
        raise _broken("the .git of this folder leads to no repository")
    return os.path.realpath(git_dir)


def _read_at_top(folder: str, git_dir: str, common: str) -> "Checkout":
    if git_dir != common:
        main, bare = find_main(common)
        return _checkout(folder, git_dir, common, main, bare=bare)
    core = gitfiles.read_core(common)
    if core.worktree is not None and os.path.realpath(os.path.join(common, core.worktree)) != folder:
        raise _broken("the Git folder of this folder names another one as its worktree (core.worktree)")
    if core.bare and core.worktree is None:
        return _checkout(None, git_dir, common, folder, bare=True)
    return _checkout(folder, git_dir, common, folder, bare=False)


def find_main(common_dir: str) -> tuple[str, bool]:
    """Give the main worktree's top, or for a bare repository its folder, and whether it is bare.

    A Git folder kept apart (`git init --separate-git-dir`) does not say where its worktree is. Seen from a linked
    worktree such a repository counts as bare.
    """
    core = gitfiles.read_core(common_dir)
    above = os.path.dirname(common_dir)
    if core.worktree is not None:
        return os.path.realpath(os.path.join(common_dir, core.worktree)), False
    if os.path.basename(common_dir) == ".git":
        return above, bool(core.bare)
    link = gitfiles.read_git_link(above + "/.git")
    if link is not None and os.path.realpath(link) == common_dir:
        return above, core.bare is not False
    return common_dir, True


def find_link_fault(worktree: str, common_dir: str, admin: str | None = None) -> "str | None":
    """Say why a folder is not (any more) the linked worktree of this repository; None when it is.

    Costs a few `stat` and two small reads.

    Args:
        worktree: top folder, as registered.
        common_dir: the repository's shared Git folder, real.
        admin: the name it must have under `worktrees/`; None for any.

    Returns:
        One of the values of `port.LinkFault`.
    """
    if not os.path.isdir(worktree):
        return _MISSING
    git_dir = gitfiles.read_git_link(worktree + "/.git")
    if git_dir is None:
        return _OTHER_REPOSITORY if os.path.isdir(worktree + "/.git") else _NOT_A_WORKTREE
    if not _is_admin_of(git_dir, common_dir):
        gone = not os.path.lexists(git_dir)
        return _BROKEN_LINK if gone else _OTHER_REPOSITORY
    if admin is not None and os.path.basename(git_dir) != admin:
        return _BROKEN_LINK
    if not (os.path.lexists(git_dir + "/HEAD") and os.path.lexists(git_dir + "/commondir")):
        return _BROKEN_LINK
    return None if _leads_back(git_dir, worktree) else _BROKEN_LINK


def find_main_fault(root: str, common_dir: str) -> "str | None":
    """Say why a folder is not (any more) the main worktree, or the bare folder, of this repository; None when it is."""
    if not os.path.isdir(root):
        return _MISSING
    if root == common_dir:
        return None if gitfiles.is_git_dir(root) else _NOT_A_WORKTREE
    dot_git = root + "/.git"
    git_dir = dot_git if os.path.isdir(dot_git) else gitfiles.read_git_link(dot_git)
    if git_dir is None:
        return _NOT_A_WORKTREE
    if git_dir != common_dir and os.path.realpath(git_dir) != common_dir:
        return _OTHER_REPOSITORY if os.path.isdir(git_dir) else _BROKEN_LINK
    return None if gitfiles.is_git_dir(common_dir) else _BROKEN_LINK


def leads_to(worktree: str, common_dir: str) -> bool:
    """Whether a folder's `.git` file leads to an entry of this repository, sound or not."""
    git_dir = gitfiles.read_git_link(worktree + "/.git")
    return git_dir is not None and os.path.dirname(os.path.realpath(git_dir)) == common_dir + "/worktrees"


def read_branch(worktree: str) -> "str | None":
    """Read the branch that a worktree's HEAD is on now: two small reads.

    Returns:
        The branch; "" when HEAD is detached; None when that cannot be read off a file (broken, or references are kept
        in tables).
    """
    dot_git = worktree + "/.git"
    git_dir = gitfiles.read_git_link(dot_git) or dot_git
    return _parse_branch(gitfiles.read_text(git_dir + "/HEAD"))


def read_plain_branch(worktree: str, common_dir: str) -> "str | None":
    """Read the branch of a linked worktree in which nothing is odd: its links lead to each other, word for word.

    For lists of hundreds: what `find_link_fault` and `read_branch` find there, in three reads instead of nine calls.

    Returns:
        The branch; "" when HEAD is detached; None when these two have to look (which includes every fault).
    """
    head = f"gitdir: {common_dir}/worktrees/"
    link = gitfiles.read_text(worktree + "/.git")
    if link is None or not link.startswith(head) or not link.endswith("\n"):
        return None
    name, git_dir = link[len(head) : -1], link[len("gitdir: ") : -1]
    if "/" in name or name in ("", ".", "..") or not os.access(git_dir + "/commondir", os.F_OK):
        return None
    if gitfiles.read_text(git_dir + "/gitdir") != worktree + "/.git\n":
        return None
    return _parse_branch(gitfiles.read_text(git_dir + "/HEAD"))


def _parse_branch(head: str | None) -> "str | None":
    if head is None:
        return None
    if not head.startswith("ref:"):
        return ""
    ref = head[len("ref:") :].strip()
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") and ref != "refs/heads/.invalid" else None


def _is_admin_of(git_dir: str, common_dir: str) -> bool:
    if os.path.dirname(git_dir) == common_dir + "/worktrees":
        return os.path.lexists(git_dir)
    common = gitfiles.read_common_dir(git_dir)
    return common != git_dir and (common == common_dir or os.path.realpath(common) == common_dir)


def _leads_back(git_dir: str, worktree: str) -> bool:
    back = gitfiles.read_back_link(git_dir)
    if back is None or back == worktree + "/.git":
        return back is not None
    # A folder replaced by a link to another worktree must not pass for it; one behind a moved parent folder may.
    return not os.path.islink(worktree) and os.path.realpath(back) == os.path.realpath(worktree) + "/.git"


def _real_common_dir(git_dir: str) -> str:
    return os.path.realpath(gitfiles.read_common_dir(git_dir))


def _checkout(top: str | None, git_dir: str, common_dir: str, main: str, *, bare: bool) -> "Checkout":
    from pathlib import Path  # noqa: PLC0415  the fault functions are imported by commands that cannot wait for pathlib

    from exeora_ws.git.port import Checkout  # noqa: PLC0415  same

    return Checkout(
        top=None if top is None else Path(top),
        git_dir=Path(git_dir),
        common_dir=Path(common_dir),
        main=Path(main),
        bare=bare,
    )


def _broken(message: str) -> "ToolFailed":
    from exeora_ws.errors import ToolFailed  # noqa: PLC0415  same

    return ToolFailed(
        message,
        reason="broken_link",
        hint="git worktree repair, if the folder or its repository was moved",
    )
