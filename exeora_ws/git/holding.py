"""References of ours that keep from garbage collection what a removed workspace leads to.

A worktree's HEAD and index keep its commits and staged contents; both leave Git's sight when the workspace goes into
the trash, so something else must keep them there until they are brought back or deleted for good.
"""

from collections.abc import Sequence
from pathlib import Path

from exeora_ws.git import gitfiles
from exeora_ws.git.command import Git, decode, encode
from exeora_ws.git.refnames import is_commit_id

MESSAGE = "What a removed workspace needs to come back (exeora restore)\n"
_IDENTITY = ("-c", "user.name=exeora", "-c", "user.email=exeora@localhost", "-c", "commit.gpgSign=false")
_POINTERS = (
    "HEAD",
    "ORIG_HEAD",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge/orig-head",
    "rebase-merge/onto",
    "rebase-apply/orig-head",
    "rebase-apply/onto",
)


def find_pointers(admin: Path) -> list[str]:
    """Find the commits that a worktree's own files name: HEAD when detached, and those of what is under way."""
    lines = [line for name in _POINTERS for line in (gitfiles.read_text(f"{admin}/{name}") or "").splitlines()]
    return [line.strip() for line in lines if is_commit_id(line.strip())]


def write(git: Git, ref: str, commits: Sequence[str], staged: Sequence[str]) -> None:
    """Point `ref` at the one commit, or at a new commit over all of them and over what is staged."""
    blobs = _list_staged(git, staged) if staged else []
    if len(commits) == 1 and not blobs:
        commit = commits[0]
    else:
        lines = "".join(f"100644 blob {blob}\t{number}\n" for number, blob in enumerate(blobs))
        tree = git.change("mktree", stdin=encode(lines)).text if lines else _write_empty_tree(git)
        parents = [word for commit in commits for word in ("-p", commit)]
        commit = git.change(*_IDENTITY, "commit-tree", *parents, "-m", MESSAGE, tree).text
    git.change("update-ref", "--no-deref", ref, commit)


def _write_empty_tree(git: Git) -> str:
    return git.change("hash-object", "-w", "-t", "tree", "--stdin").text


def _list_staged(git: Git, paths: Sequence[str]) -> list[str]:
    """List the contents in the index for these paths, every side of a conflict; submodules have none of their own."""
    wanted = set(paths)
    found: dict[str, None] = {}
    for record in decode(git.read("ls-files", "--stage", "-z").out).split("\0"):
        facts, _, path = record.partition("\t")
        if path in wanted and not facts.startswith("160000 "):
            found[facts.split(" ")[1]] = None
    return list(found)
