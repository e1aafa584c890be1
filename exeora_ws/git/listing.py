"""Every worktree on record, broken ones too: the records read as files, the commits asked of an engine."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.git import admin, gitfiles
from exeora_ws.git.links import find_link_fault
from exeora_ws.git.operations import STATES, read_operation
from exeora_ws.git.port import Checkout, LinkFault, Worktree
from exeora_ws.git.refnames import is_commit_id, short_branch

_FAULTS = {
    LinkFault.MISSING: "its folder is missing",
    LinkFault.NOT_A_WORKTREE: "its folder has no .git file",
    LinkFault.OTHER_REPOSITORY: "its folder belongs to another repository",
    LinkFault.BROKEN_LINK: "its folder and Git's record of it do not lead to each other",
}


@dataclass(frozen=True, slots=True)
class RawHead:
    """HEAD as its file says: a reference or a commit, or neither when it cannot be read."""

    ref: str | None
    commit: str | None


Resolver = Callable[[Iterable[str]], Mapping[str, str]]
"""Gives the commits of those full references that exist."""
HeadReader = Callable[[str], RawHead]


def read_head_file(git_dir: str) -> RawHead:
    """Read the HEAD of a worktree, by its Git folder; an old symbolic link counts as its target."""
    path = git_dir + "/HEAD"
    text = (gitfiles.read_text(path) or "").strip()
    if not text.startswith("ref:") and os.path.islink(path):
        return RawHead(os.readlink(path), None)
    if text.startswith("ref:"):
        return RawHead(text[len("ref:") :].strip(), None)
    return RawHead(None, text if is_commit_id(text) else None)


def list_worktrees(checkout: Checkout, read_head: HeadReader, resolve: Resolver) -> list[Worktree]:
    """List main first, then the linked worktrees by path."""
    common = checkout.common_dir
    entries = admin.load_entries(common)
    heads = [read_head(entry.folder) for entry in entries]
    main = RawHead(None, None) if checkout.bare else read_head(str(common))
    commits = resolve({head.ref for head in (main, *heads) if head.ref is not None})
    linked = [_describe_linked(str(common), entry, head, commits) for entry, head in zip(entries, heads, strict=True)]
    return [_describe_main(checkout, main, commits), *sorted(linked, key=lambda w: (str(w.path), w.admin))]


def _describe_main(checkout: Checkout, head: RawHead, commits: Mapping[str, str]) -> Worktree:
    state = read_operation(str(checkout.common_dir), os.listdir(checkout.common_dir))
    return Worktree(
        path=checkout.main,
        main=True,
        bare=checkout.bare,
        branch=short_branch(head.ref),
        head=_commit_of(head, commits),
        detached=not checkout.bare and head.ref is None and head.commit is not None,
        locked=None,
        prunable=None,
        operation=state.operation,
        held_branch=state.held_branch,
        admin=None,
        also_held=state.also_held,
    )


def _describe_linked(common: str, entry: admin.Entry, head: RawHead, commits: Mapping[str, str]) -> Worktree:
    state = read_operation(entry.folder, entry.files)
    fault = find_link_fault(entry.worktree, common, entry.name)
    return Worktree(
        path=Path(entry.worktree),
        main=False,
        bare=False,
        branch=short_branch(head.ref),
        head=_commit_of(head, commits),
        detached=head.ref is None and head.commit is not None,
        locked=admin.read_lock(entry.folder) if "locked" in entry.files else None,
        prunable=None if fault is None else _FAULTS[LinkFault(fault)],
        operation=state.operation,
        held_branch=state.held_branch,
        admin=entry.name,
        also_held=state.also_held,
    )


def _commit_of(head: RawHead, commits: Mapping[str, str]) -> str | None:
    return head.commit if head.ref is None else commits.get(head.ref)


def find_holder(
    checkout: Checkout, read_head: HeadReader, resolve: Resolver, branch: str, *, but_for: Collection[str] = ()
) -> Worktree | None:
    """Find the worktree that keeps a branch from being checked out or deleted elsewhere.

    Only those are looked at closely that may be it: there can be a thousand, and this is asked before every creation.
    """
    common = checkout.common_dir
    main = RawHead(None, None) if checkout.bare else read_head(str(common))
    found = _describe_main(checkout, main, _resolve(resolve, main))
    if branch in found.holds:
        return found
    for name in admin.list_folders(common):
        folder = f"{common}/worktrees/{name}"
        if name in but_for or not _may_hold(folder, head := read_head(folder), branch):
            continue
        entry = admin.load_entry(folder, name)
        if entry is not None:
            worktree = _describe_linked(str(common), entry, head, _resolve(resolve, head))
            if branch in worktree.holds:
                return worktree
    return None


def _may_hold(folder: str, head: RawHead, branch: str) -> bool:
    if short_branch(head.ref) == branch:
        return True
    try:
        return not STATES.isdisjoint(os.listdir(folder))
    except OSError:
        return False


def _resolve(resolve: Resolver, head: RawHead) -> Mapping[str, str]:
    return {} if head.ref is None else resolve([head.ref])
