"""What both engines share: everything that is read or changed as files, and the rules built on their primitives."""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.git import admin, folding, gitfiles, merged, refnames, remotes, snapshots
from exeora_ws.git.command import Git, decode
from exeora_ws.git.links import read_checkout
from exeora_ws.git.listing import RawHead, find_holder, list_worktrees, read_head_file
from exeora_ws.git.messages import describe_failure, translated_os_errors
from exeora_ws.git.port import (
    Addition,
    BranchDeletion,
    Checkout,
    Difference,
    Folded,
    Head,
    LoggedCommit,
    RemoteBranch,
    Snapshot,
    Status,
    Worktree,
)

SAFE_REFS = ("refs/heads/", "refs/remotes/", "refs/tags/")
"""What keeps a commit from being lost, and is not moved by an ordinary command."""
OURS = "refs/exeora/"
HOLDERS = OURS + "removed/"
"""Where the references of removed workspaces are, which keep what can be brought back from garbage collection."""


class Engine(ABC):
    """A `Repository` but for the primitives below it, each of which one engine has its own way to do."""

    def __init__(self, checkout: Checkout) -> None:
        self._place = checkout

    @property
    def place(self) -> Checkout:
        """Where it was opened."""
        return self._place

    @property
    def common_dir(self) -> Path:
        """The repository's shared Git folder."""
        return self._place.common_dir

    @property
    def checkout(self) -> Path | None:
        """Top folder of the worktree it was opened at; None when opened at a bare Git folder."""
        return self._place.top

    @property
    def bare(self) -> bool:
        """Whether the repository has no main worktree."""
        return self._place.bare

    # What an engine must do itself.

    @abstractmethod
    def resolve_refs(self, refs: Iterable[str]) -> Mapping[str, str]:
        """Give the commits of those of the full references that exist."""

    @abstractmethod
    def find_commit(self, spec: str) -> str | None:
        """Find the commit a commit-ish names."""

    @abstractmethod
    def list_branches(self) -> Sequence[str]:
        """List local branches, sorted."""

    @abstractmethod
    def find_upstream(self, branch: str) -> str | None:
        """Find the commit of a branch's upstream."""

    @abstractmethod
    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `older` is reachable from `newer`."""

    @abstractmethod
    def is_reachable(self, commit: str) -> bool:
        """Whether any branch, remote branch or tag leads to `commit`."""

    @abstractmethod
    def count_ahead_behind(self, ours: str, theirs: str) -> tuple[int, int]:
        """Count the commits on one side only."""

    @abstractmethod
    def status(self, *, ignored: bool = False) -> Status:
        """Give the state of the checkout."""

    @abstractmethod
    def add_worktree(self, addition: Addition, cancellation: Cancellation | None = None) -> None:
        """Add a worktree, all or nothing."""

    @abstractmethod
    def write_branch(self, name: str, commit: str) -> bool:
        """Make a reference that must not exist; False when it does by now."""

    @abstractmethod
    def delete_ref(self, name: str, expected: str) -> bool:
        """Delete a branch's reference while it is at `expected`; False when it is elsewhere by now."""

    @abstractmethod
    def forget_branch_settings(self, name: str) -> None:
        """Remove the `branch.NAME` section of the repository's configuration."""

    @abstractmethod
    def write_holder(self, ref: str, commits: Sequence[str], staged: Sequence[str]) -> None:
        """Point a reference of ours at a commit that leads to these commits and to what is staged for these paths."""

    @abstractmethod
    def drop_holder(self, ref: str) -> None:
        """Delete a reference of ours; no error when there is none."""

    @abstractmethod
    def read_branch_settings(self, name: str) -> Sequence[tuple[str, str]]:
        """Read the `branch.NAME` section of the repository's configuration."""

    @abstractmethod
    def write_branch_settings(self, name: str, settings: Sequence[tuple[str, str]]) -> None:
        """Add to the `branch.NAME` section of the repository's configuration."""

    @abstractmethod
    def require_git(self) -> Git:
        """Give the git executable at this place, for what only git can do.

        Raises:
            ToolFailed: reason `git_missing`.
        """

    # What follows from that.

    def read_head(self, git_dir: str) -> RawHead:
        """Read HEAD of the worktree with this Git folder."""
        return read_head_file(git_dir)

    def head(self) -> Head:
        """HEAD of the checkout it was opened at."""
        raw = self.read_head(str(self._place.git_dir))
        if raw.ref is None:
            return Head(None, raw.commit)
        return Head(refnames.short_branch(raw.ref), self.resolve_refs([raw.ref]).get(raw.ref))

    def list_worktrees(self) -> Sequence[Worktree]:
        """Every worktree on record, broken ones too, main first."""
        with translated_os_errors("reading the worktrees"):
            return list_worktrees(self._place, self.read_head, self.resolve_refs)

    def find_branch(self, name: str) -> str | None:
        """Find the commit of a local branch."""
        if not refnames.is_branch_name(name):
            return None
        ref = refnames.BRANCHES + name
        return self.resolve_refs([ref]).get(ref)

    def is_branch_name(self, name: str) -> bool:
        """Whether Git takes this as a new branch's name."""
        return refnames.is_branch_name(name)

    def create_branch(self, name: str, commit: str) -> None:
        """Make a local branch at a commit, without upstream."""
        if not refnames.is_branch_name(name):
            raise ToolFailed(f"{name[:200]!r} is not a valid branch name", reason="invalid_branch")
        require_commit_id(commit)
        if self.find_branch(name) is not None:
            raise ToolFailed(f"branch {name!r} exists already", reason="branch_exists")
        self._refuse_conflict(name)
        if not self.write_branch(name, commit):
            raise ToolFailed(f"branch {name!r} exists already", reason="branch_exists")

    def _refuse_conflict(self, name: str) -> None:
        other = refnames.find_conflict(name, list(self.list_branches()))
        if other is not None:
            raise ToolFailed(
                f"branch {name!r} cannot stand beside branch {other!r}: one is a folder of the other",
                reason="branch_conflict",
                data={"branch": other},
            )

    def remove_admin(self, worktree: Worktree) -> None:
        """Forget one linked worktree whose folder is gone already."""
        with translated_os_errors("forgetting the worktree"):
            admin.remove(self.common_dir, worktree)

    def discard_remains(self, folder_name: str) -> None:
        """Delete what a removal cut short has left."""
        admin.discard_remains(self.common_dir, folder_name)

    def lock_worktree(self, worktree: Worktree, reason: str) -> None:
        """Lock a linked worktree."""
        with translated_os_errors("locking the worktree"):
            admin.lock(self.common_dir, worktree, reason)

    def unlock_worktree(self, worktree: Worktree) -> None:
        """Unlock a linked worktree."""
        with translated_os_errors("unlocking the worktree"):
            admin.unlock(self.common_dir, worktree)

    def save_admin(self, worktree: Worktree, into: Path) -> None:
        """Copy what Git keeps about a linked worktree to a new folder."""
        with translated_os_errors("saving the worktree's record"):
            admin.save(self.common_dir, worktree, into)

    def revive_admin(self, saved: Path, folder: Path, *, unborn: bool = False) -> Worktree:
        """Make an admin entry for `folder` from a saved one."""
        with translated_os_errors("bringing the worktree's record back"):
            if admin.find_entries_for(self.common_dir, folder) or self._is_anothers(folder):
                raise ToolFailed("there is a worktree in that folder already", reason="worktree_present")
            self._refuse_revival(saved, unborn=unborn)
            name = admin.revive(self.common_dir, saved, folder)
        return next(w for w in self.list_worktrees() if w.admin == name)

    def _is_anothers(self, folder: Path) -> bool:
        """Whether the folder is a repository of its own, or a checkout of another one."""
        dot_git = f"{folder}/.git"
        link = gitfiles.read_git_link(dot_git)
        if link is None or not gitfiles.is_git_dir(link):
            return os.path.isdir(dot_git)
        return os.path.realpath(gitfiles.read_common_dir(link)) != str(self.common_dir)

    def _refuse_revival(self, saved: Path, *, unborn: bool) -> None:
        branch = refnames.short_branch(read_head_file(str(saved)).ref)
        if branch is not None:
            if not unborn and self.find_branch(branch) is None:
                raise ToolFailed(f"branch {branch!r} is gone", reason="branch_missing", data={"branch": branch})
            self.refuse_held(branch)

    def require_source(self, source: Path) -> Checkout:
        """Read the checkout that an addition starts from; it must be one of this repository."""
        found = read_checkout(os.path.realpath(source))
        if found is None or found.common_dir != self.common_dir or found.top is None:
            raise ToolFailed("the source is no checkout of this repository", reason="not_a_repository")
        return found

    def find_holder(self, branch: str, *, but_for: Collection[str] = ()) -> Worktree | None:
        """Find the worktree that has a branch checked out, or holds it in an operation."""
        with translated_os_errors("reading the worktrees"):
            return find_holder(self._place, self.read_head, self.resolve_refs, branch, but_for=but_for)

    def refuse_held(self, branch: str, *, but_for: Collection[str] = ()) -> None:
        """Refuse a branch that some worktree (but for these records) has checked out, or holds in an operation."""
        holder = self.find_holder(branch, but_for=but_for)
        if holder is not None:
            raise ToolFailed(
                f"branch {branch!r} is {describe_hold(holder, branch)}",
                reason="branch_checked_out",
                data={"branch": branch, "worktree": holder.path.name, "main": holder.main},
            )

    def rename_branch(self, old: str, new: str) -> None:
        """Rename a local branch as `git branch -m` does."""
        if not refnames.is_branch_name(new):
            raise ToolFailed(f"{new[:200]!r} is not a valid branch name", reason="invalid_branch")
        if self.find_branch(new) is not None:
            raise ToolFailed(f"branch {new!r} exists already", reason="branch_exists")
        output = self.require_git().change("branch", "-m", old, new, ok=(0, 128))
        if output.code != 0:
            said = decode(output.err)
            if "being rebased" in said or "being bisected" in said:
                raise ToolFailed(f"branch {old!r} is in the middle of a rebase or bisect", reason="branch_in_use")
            raise describe_failure(output.code, said)

    def attach_head(self, worktree: Worktree, branch: str) -> None:
        """Put a linked worktree's HEAD on a branch."""
        git_dir = self.common_dir / "worktrees" / admin.require_name(worktree)
        self.require_git().at(git_dir).change("symbolic-ref", "HEAD", refnames.BRANCHES + branch)

    def follow_move(self, worktree: Worktree, folder: Path) -> None:
        """Have record and folder lead to each other again."""
        with translated_os_errors("moving the worktree"):
            admin.follow_move(self.common_dir, worktree, folder)

    def hold_objects(self, label: str, commits: Sequence[str], staged: Sequence[str]) -> None:
        """Keep commits and staged contents from garbage collection until released."""
        ref = _require_holder(label)
        known = [commit for commit in dict.fromkeys(commits) if self.find_commit(commit) is not None]
        if known:
            self.write_holder(ref, known, staged)

    def release_objects(self, label: str) -> None:
        """Let go of what was kept under this label."""
        self.drop_holder(_require_holder(label))

    def list_remotes(self) -> Sequence[tuple[str, str]]:
        """List the remotes."""
        return remotes.list_remotes(self.require_git())

    def find_remote_branch(self, text: str) -> RemoteBranch | None:
        """Find what `REMOTE/BRANCH` names."""
        commit = self.resolve_refs([remotes.REMOTES + text]).get(remotes.REMOTES + text)
        if commit is None:
            return None
        # The longest remote's name wins: both `a` and `a/b` may be one.
        names = sorted((name for name, _ in self.list_remotes() if text.startswith(name + "/")), key=len)
        return RemoteBranch(names[-1], text.removeprefix(names[-1] + "/"), commit) if names else None

    def find_tracked(self, branch: str) -> RemoteBranch | None:
        """Find a local branch's upstream on a remote."""
        settings = dict(self.read_branch_settings(branch))
        remote, theirs = settings.get("remote"), refnames.short_branch(settings.get("merge"))
        if remote in (None, ".") or theirs is None:
            return None
        commit = self.find_upstream(branch)
        return None if commit is None else RemoteBranch(str(remote), theirs, commit)

    def fetch(self, remote: str, refspec: str | None = None) -> None:
        """Fetch from a remote."""
        remotes.fetch(self.require_git(), remote, refspec)

    def find_on_remote(self, remote: str, ref: str) -> str | None:
        """Ask a remote where a reference is."""
        return remotes.find_on_remote(self.require_git(), remote, ref)

    def drop_ref(self, ref: str) -> None:
        """Delete a reference of ours."""
        if not ref.startswith(OURS):
            raise ToolFailed("that reference is not ours", reason="invalid_argument")
        self.drop_holder(ref)

    def take_snapshot(self, ref: str) -> Snapshot:
        """Take the uncommitted changes of this checkout."""
        return snapshots.take(self.require_git(), self._place.git_dir, ref)

    def apply_snapshot(self, snapshot: Snapshot, source: Path) -> None:
        """Bring the changes into this checkout."""
        git = self.require_git()
        snapshots.apply(git, snapshot)
        with translated_os_errors("bringing the changes along"):
            snapshots.carry_bytes(self._require_top(), source, snapshots.list_paths(git, snapshot))

    def has_changes_of(self, snapshot: Snapshot, ref: str) -> bool:
        """Whether this checkout holds exactly these changes."""
        return snapshots.are_equal(self.require_git(), snapshot, self.take_snapshot(ref))

    def has_rest_of(self, snapshot: Snapshot, ref: str) -> bool:
        """Whether what this checkout holds is a part of these changes."""
        return snapshots.is_rest(self.require_git(), snapshot, self.take_snapshot(ref))

    def is_part_of(self, kept: str, ref: str) -> bool:
        """Whether what this checkout holds is in a snapshot that is kept."""
        git = self.require_git()
        return snapshots.is_part(git, snapshots.load(git, kept), self.take_snapshot(ref))

    def discard_changes(self, snapshot: Snapshot, copy: Path) -> bool:
        """Take the snapshot's changes out of this checkout."""
        with translated_os_errors("clearing the source"):
            return snapshots.discard(self.require_git(), self._require_top(), snapshot, copy)

    def _require_top(self) -> Path:
        if self._place.top is None:
            raise ToolFailed("this is a bare Git folder, without files", reason="bare")
        return self._place.top

    def read_commit_time(self, commit: str) -> int:
        """Ask when a commit was made."""
        return int(self.require_git().read("show", "--no-patch", "--format=%ct", require_commit_id(commit)).text)

    def find_merge_evidence(self, head: str, target: str) -> str | None:
        """Say how everything in `head` is in `target` already."""
        require_commit_id(head)
        require_commit_id(target)
        if head == target:
            return "same_commit"
        return "ancestor" if self.is_ancestor(head, target) else merged.find_evidence(self.require_git(), head, target)

    def load_difference(self, against: str, *, stat: bool) -> Difference:
        """Give what this checkout has since it parted from a commit."""
        return folding.load_difference(self.require_git(), require_commit_id(against), stat=stat)

    def squash(self, head: str, onto: str, message: str) -> Folded:
        """Make one commit of everything."""
        return folding.squash(self.require_git(), require_commit_id(head), require_commit_id(onto), message)

    def rebase(self, head: str, onto: str) -> Folded:
        """Make the commits again."""
        require_commit_id(head)
        require_commit_id(onto)
        from exeora_ws.git import rebasing  # noqa: PLC0415  loads libgit2

        return rebasing.rebase(self.require_git(), self._place, head, onto)

    def list_subjects(self, base: str, head: str) -> Sequence[str]:
        """List first lines."""
        span = f"{require_commit_id(base)}..{require_commit_id(head)}"
        return decode(self.require_git().read("log", "--reverse", "--format=%s", span, "--").out).splitlines()

    def list_recent(self, commit: str, count: int) -> Sequence[LoggedCommit]:
        """List the last commits."""
        words = ("log", "-z", f"--max-count={count}", "--format=%H %ct %s", require_commit_id(commit), "--")
        found = decode(self.require_git().read(*words).out).split("\0")
        rows = [line.split(" ", 2) for line in found if line]
        return [LoggedCommit(row[0], int(row[1]), row[2] if len(row) > 2 else "") for row in rows]  # noqa: PLR2004

    def advance(self, branch: str, old: str, new: str) -> None:
        """Move a branch that no checkout has."""
        self.refuse_held(branch)
        ref, said = refnames.BRANCHES + branch, "exeora merge: Fast-forward"
        ids = (require_commit_id(new), require_commit_id(old))
        output = self.require_git().change("update-ref", "--no-deref", "-m", said, ref, *ids, ok=(0, 128))
        if output.code != 0:
            raise ToolFailed(f"branch {branch!r} has moved since it was looked at", reason="branch_moved")

    def fast_forward(self, commit: str) -> None:
        """Bring this checkout forward."""
        self._move_checkout("merge", "--ff-only", "--quiet", require_commit_id(commit))

    def switch_to(self, commit: str) -> None:
        """Put this checkout on another commit."""
        self._move_checkout("reset", "--keep", "--quiet", require_commit_id(commit))

    def _move_checkout(self, *arguments: str) -> None:
        output = self.require_git().change(*arguments, ok=(0, 1, 128))
        if output.code != 0:
            said = decode(output.err)
            failure = describe_failure(output.code, said)
            if "would be overwritten" in said or "not uptodate" in said:
                raise ToolFailed("local changes are in the way", reason="would_overwrite")
            raise failure

    def is_locked_by_git(self) -> bool:
        """Whether the index has a lock file."""
        return os.path.lexists(self._place.git_dir / "index.lock")

    def list_remains(self) -> Sequence[tuple[str, bool]]:
        """List folders that name no worktree."""
        return admin.list_remains(self.common_dir)

    def find_forsaken(self, folder: Path) -> str | None:
        """Find the record that only lacks its way back."""
        return admin.find_forsaken(self.common_dir, folder)

    def reconnect(self, folder: Path) -> None:
        """Write the way back."""
        with translated_os_errors("mending the worktree's record"):
            admin.reconnect(self.common_dir, folder)

    def discard_entry(self, name: str) -> None:
        """Delete such a folder."""
        if (name, True) in admin.list_remains(self.common_dir):
            with translated_os_errors("deleting what was left of a worktree's record"):
                admin.discard(self.common_dir, name)

    def list_stale_locks(self) -> Sequence[str]:
        """List lock files that nobody can still be using."""
        return admin.list_stale_locks(self.common_dir)

    def is_wrongly_bare(self) -> bool:
        """Whether `core.bare` is set although there is a main worktree."""
        said = gitfiles.parse_config(gitfiles.read_text(f"{self.common_dir}/config") or "").get("core.bare", "false")
        apart = self.common_dir.name == ".git" and (self.common_dir / "index").is_file()
        return said.lower() in ("true", "yes", "on", "1") and apart

    def clear_bare(self) -> None:
        """Set `core.bare` to false."""
        self.require_git().change("config", "--file", str(self.common_dir / "config"), "core.bare", "false")

    def delete_branch(self, name: str, expected: str, *, force: bool = False) -> BranchDeletion:
        """Delete a local branch as `git branch -d` does, only while it still points at `expected`."""
        present = self.find_branch(name)
        if present is None:
            return BranchDeletion(deleted=False, reason="missing", message=f"there is no branch {name!r}")
        holder = self.find_holder(name)
        if holder is not None:
            said = f"branch {name!r} is {describe_hold(holder, name)}"
            return BranchDeletion(deleted=False, reason="checked_out", message=said)
        if present == expected and not force and not self._is_merged(name, present):
            said = f"branch {name!r} has commits that are not merged"
            return BranchDeletion(deleted=False, reason="unmerged", message=said)
        if present != expected or not self.delete_ref(name, expected):
            said = f"branch {name!r} has moved since it was looked at"
            return BranchDeletion(deleted=False, reason="moved", message=said)
        self.forget_branch_settings(name)
        return BranchDeletion(deleted=True)

    def _is_merged(self, name: str, commit: str) -> bool:
        into = self.find_upstream(name) or self.head().commit
        return into is not None and self.is_ancestor(commit, into)


def _require_holder(label: str) -> str:
    if not refnames.is_branch_name(label) or "/" in label:
        raise ToolFailed("that is no name for what is kept", reason="invalid_argument")
    return HOLDERS + label


def describe_hold(worktree: Worktree, branch: str) -> str:
    """Say how a worktree holds a branch."""
    where = "main" if worktree.main else f"worktree {worktree.path.name!r}"
    if worktree.branch == branch:
        return f"checked out in {where}"
    doing = worktree.operation or "rebase"
    return f"in the middle of a {doing} in {where}"


def require_commit_id(text: str) -> str:
    """Take a full object id.

    Raises:
        ToolFailed: reason `unknown_commit`.
    """
    if not refnames.is_commit_id(text):
        raise ToolFailed("a full commit id is needed here", reason="unknown_commit")
    return text
