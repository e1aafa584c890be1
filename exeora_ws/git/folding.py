"""Differences, and commits made in memory: no checkout, no index and no reference is touched by any of it."""

from exeora_ws.git.command import Git, decode, encode
from exeora_ws.git.messages import describe_failure
from exeora_ws.git.port import Difference, Folded

_QUIET = ("--no-ext-diff", "--no-textconv", "--no-color")


def load_difference(git: Git, against: str, *, stat: bool) -> Difference:
    """Compare the files as they are with where their history parted from `against`."""
    since = git.read("merge-base", against, "HEAD", ok=(0, 1)).text or against
    form = ("--stat=100",) if stat else ()
    text = git.read("diff", *_QUIET, *form, since, "--").out
    untracked = decode(git.read("ls-files", "--others", "--exclude-standard", "-z", "--", ":/").out).split("\0")
    return Difference(since, text, tuple(name for name in untracked if name))


def squash(git: Git, head: str, onto: str, message: str) -> Folded:
    """Merge in memory and put the result on top of `onto` as one commit, by the user."""
    merged = git.change("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto, head, ok=(0, 1, 129))
    names = decode(merged.out).split("\0")
    if merged.code == 1:
        return Folded(None, tuple(dict.fromkeys(name for name in names[1:] if name)))
    if merged.code != 0:
        raise describe_failure(merged.code, "fatal: this needs git 2.38 or newer")
    tree = names[0].strip()
    return Folded(git.change("commit-tree", "-p", onto, "-F", "-", tree, stdin=encode(message)).text)
