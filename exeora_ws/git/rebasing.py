"""Rebase in memory, with libgit2: git could do it without a checkout only since 2.44."""

import pygit2

from exeora_ws.errors import ToolFailed
from exeora_ws.git.command import Git
from exeora_ws.git.libgit2 import open_libgit2, translated
from exeora_ws.git.port import Checkout, Folded


def rebase(git: Git, place: Checkout, head: str, onto: str) -> Folded:
    """Make the commits of `onto..head` again, one after the other; those that change nothing any more are left out."""
    if git.read("rev-list", "--merges", "--max-count=1", f"{onto}..{head}", "--").out:
        raise ToolFailed("there are merges among its commits", reason="has_merges", hint="use --squash")
    repository = open_libgit2(place)
    if repository is None:
        raise ToolFailed("libgit2 cannot open this repository", reason="unsupported", hint="use --squash")
    commits = git.read("rev-list", "--reverse", "--topo-order", f"{onto}..{head}", "--").text.split()
    identity = git.read("var", "GIT_COMMITTER_IDENT").text
    with translated():
        return _replay(repository, commits, onto, identity)


def _replay(repository: pygit2.Repository, commits: list[str], onto: str, identity: str) -> Folded:
    tip = repository[onto].peel(pygit2.Commit)
    for name in commits:
        commit = repository[name].peel(pygit2.Commit)
        before = commit.parents[0].tree if commit.parents else repository[repository.TreeBuilder().write()]
        index = repository.merge_trees(before.peel(pygit2.Tree), tip.tree, commit.tree)
        if index.conflicts is not None:
            return Folded(None, tuple(sorted({side.path for sides in index.conflicts for side in sides if side})))
        tree = index.write_tree(repository)
        if tree != tip.tree.id:
            made = repository.create_commit(
                None, commit.author, _sign(identity), commit.message, tree, [tip.id], commit.message_encoding or "utf-8"
            )
            tip = repository[made].peel(pygit2.Commit)
    return Folded(str(tip.id))


def _sign(identity: str) -> pygit2.Signature:
    """Read `Name <address> SECONDS +ZONE`."""
    who, _, when = identity.rpartition("> ")
    name, _, address = who.rpartition(" <")
    seconds, _, zone = when.partition(" ")
    minutes = int(zone[1:3]) * 60 + int(zone[3:5])
    return pygit2.Signature(name, address, int(seconds), -minutes if zone.startswith("-") else minutes)
