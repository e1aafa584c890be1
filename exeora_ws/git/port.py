"""What the product asks of Git: values and the `Repository` port that both engines fill.

Paths are absolute and real (no symbolic links) unless said otherwise. Commits are full hexadecimal object ids. Branch
names are short (`feature/x`, never `refs/heads/feature/x`). Nothing here imports pygit2 or starts a process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from exeora_ws.cancellation import Cancellation


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where a folder stands in a repository, as `find_checkout` sees it by reading `.git` files alone."""

    top: Path | None
    """Top folder of the worktree around the folder; None in a bare repository."""
    git_dir: Path
    """The worktree's own Git folder (`.git`, or `.git/worktrees/NAME`)."""
    common_dir: Path
    """The repository's shared Git folder: the identity of the repository."""
    main: Path
    """The project root this repository suggests: the main worktree's top; for a bare repository its folder (for the
    `.bare` layout the folder that holds `.bare` and the `.git` file)."""
    bare: bool
    """Whether the repository has no main worktree."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a checkout points at. `branch` is None when detached, `commit` is None when unborn."""

    branch: str | None
    commit: str | None


class Operation(StrEnum):
    """What a worktree is in the middle of; while it is, Git keeps its branch for it."""

    REBASE = "rebase"
    BISECT = "bisect"
    MERGE = "merge"
    CHERRY_PICK = "cherry-pick"
    REVERT = "revert"
    AM = "am"


@dataclass(frozen=True, slots=True)
class Worktree:
    """One worktree as Git records it, also when broken. `list_worktrees` gives main first, then by path."""

    path: Path
    """The folder Git has on record; it may be gone."""
    main: bool
    bare: bool
    branch: str | None
    """Branch on HEAD; None when detached, bare or unreadable."""
    head: str | None
    """Commit on HEAD; None when unborn, bare or unreadable."""
    detached: bool
    locked: str | None
    """None when not locked; the reason, perhaps empty, when locked."""
    prunable: str | None
    """None when sound; else why Git could prune it, or why it is broken (folder missing, broken back-link)."""
    operation: Operation | None
    held_branch: str | None
    """Branch that a rebase or bisect in this worktree holds although HEAD is detached."""
    admin: str | None
    """Name under `worktrees/` of the common folder; None for main."""
    also_held: tuple[str, ...] = ()
    """Further branches that a rebase with `--update-refs` in this worktree will move."""

    @property
    def holds(self) -> tuple[str, ...]:
        """Every branch that may not be checked out or deleted elsewhere because of this worktree."""
        return tuple(b for b in (self.branch, self.held_branch) if b is not None) + self.also_held


@dataclass(frozen=True, slots=True)
class Status:
    """What a removal would lose. Paths are relative to the worktree's top, `/`-separated, sorted."""

    staged: tuple[str, ...]
    unstaged: tuple[str, ...]
    untracked: tuple[str, ...]
    """Files; a folder with only untracked files is one entry that ends in `/`."""
    ignored: tuple[str, ...]
    """As `untracked`; only filled when asked for."""
    conflicted: tuple[str, ...]
    submodules: tuple[str, ...]
    """Initialised submodules with changes or commits that their recorded commit does not have."""

    @property
    def clean(self) -> bool:
        """Whether nothing but ignored files would be lost."""
        return not (self.staged or self.unstaged or self.untracked or self.conflicted or self.submodules)


class LinkFault(StrEnum):
    """Why a folder is not the worktree that was registered."""

    MISSING = "missing"
    NOT_A_WORKTREE = "not_a_worktree"
    OTHER_REPOSITORY = "other_repository"
    BROKEN_LINK = "broken_link"


@dataclass(frozen=True, slots=True)
class Addition:
    """A worktree to add. Exactly one of `new_branch`, `branch` and `detach` says what its HEAD will be."""

    path: Path
    """Target folder: absent, or existing and empty. Missing parents are made."""
    commit: str
    """What to check out (for `branch`, the branch's present commit)."""
    new_branch: str | None = None
    branch: str | None = None
    source: Path | None = None
    """Checkout whose sparse cone the new worktree takes; None for the whole tree."""
    like: Path | None = None
    """Checkout that probably has the same files, to copy from; `source` when not said."""


@dataclass(frozen=True, slots=True)
class BranchDeletion:
    """What became of a branch: deleted, or kept for a `reason`.

    Reasons: `unmerged`, `checked_out`, `moved`, `missing`, `stale`.
    """

    deleted: bool
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class RemoteBranch:
    """A branch of a remote as last fetched."""

    remote: str
    branch: str
    commit: str

    @property
    def short(self) -> str:
        """As people write it: `origin/x`."""
        return f"{self.remote}/{self.branch}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The uncommitted changes of a checkout as a commit of the shape of a stash, and the trees it is made of."""

    commit: str
    head: str
    index: str
    files: str
    untracked: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What a checkout has that a commit had not: committed, staged and unstaged together, untracked files by name."""

    since: str
    """The commit it is measured from: where both lines of history parted."""
    text: bytes
    untracked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """A commit as a log shows it; `at` in seconds since 1970."""

    id: str
    at: int
    subject: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Commits made in memory; `conflicts` names files instead when that cannot be done."""

    commit: str | None
    conflicts: tuple[str, ...] = ()


class Repository(Protocol):
    """One repository, opened at one checkout (or at its bare Git folder).

    Every method raises `ToolFailed` with a reason (`not_a_repository`, `git_failed`, `unsupported`, …) when Git cannot
    answer; nothing else escapes. Reads start no program that the repository's configuration names.
    """

    @property
    def common_dir(self) -> Path:
        """The repository's shared Git folder."""
        ...

    @property
    def checkout(self) -> Path | None:
        """Top folder of the worktree it was opened at; None when opened at a bare Git folder."""
        ...

    @property
    def bare(self) -> bool:
        """Whether the repository has no main worktree."""
        ...

    def head(self) -> Head:
        """HEAD of the checkout it was opened at."""
        ...

    def list_worktrees(self) -> Sequence[Worktree]:
        """Every worktree on record, broken ones too, main first."""
        ...

    def find_holder(self, branch: str) -> Worktree | None:
        """The worktree that has a branch checked out, or holds it in an operation; None when none does."""
        ...

    def find_commit(self, spec: str) -> str | None:
        """The commit a commit-ish names, annotated tags peeled; None when there is none. `-x` is never an option."""
        ...

    def find_branch(self, name: str) -> str | None:
        """The commit of a local branch; None when there is none."""
        ...

    def list_branches(self) -> Sequence[str]:
        """Local branches, sorted."""
        ...

    def find_upstream(self, branch: str) -> str | None:
        """The commit of the branch's configured upstream; None when not configured or gone."""
        ...

    def is_branch_name(self, name: str) -> bool:
        """Whether Git takes this as a new branch's name (`git check-ref-format --branch`, without `@{-1}`)."""
        ...

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether commit `older` is reachable from `newer` (or the same)."""
        ...

    def is_reachable(self, commit: str) -> bool:
        """Whether any branch, remote branch or tag still leads to a commit, so that it cannot be lost."""
        ...

    def count_ahead_behind(self, ours: str, theirs: str) -> tuple[int, int]:
        """Commits only in `ours`, and only in `theirs`."""
        ...

    def status(self, *, ignored: bool = False) -> Status:
        """State of the checkout it was opened at, as `git status` has it."""
        ...

    def add_worktree(self, addition: Addition, cancellation: Cancellation | None = None) -> None:
        """Add a worktree as `git worktree add` does: filters, encodings, hooks, sparse cone; no upstream is set.

        The caller holds the repository's lock. All or nothing: when it fails, or is cancelled, interrupted or out of
        time, the folder, the admin entry and a new branch are gone again. A record of a worktree in this folder that
        was deleted by hand is replaced.

        Raises:
            ToolFailed: reason `target_not_empty`, `worktree_present`, `locked`; `invalid_branch`, `branch_exists`,
                `branch_conflict`, `branch_missing`, `branch_moved`, `branch_checked_out`; `unknown_commit`;
                `hook_failed` with the post-checkout hook's last line, `filter_failed`, `remote_unreachable`,
                `disk_full`, `permission_denied`, `timeout`; `unsupported` with what is missing; `git_failed` with
                Git's own first complaint.
            Cancelled: the call was taken back.
        """
        ...

    def remove_admin(self, worktree: Worktree) -> None:
        """Forget one linked worktree whose folder is gone already: its admin entry only, nobody else's.

        Raises `ToolFailed` with reason `locked`, `worktree_present` (its folder still leads to this entry) or
        `stale` (the entry is another worktree's by now). No error when the entry is gone already.
        """
        ...

    def discard_remains(self, folder_name: str) -> None:
        """Delete what a `remove_admin` that was killed has left of an entry for a folder of this name."""
        ...

    def save_admin(self, worktree: Worktree, into: Path) -> None:
        """Copy what Git keeps about a linked worktree (HEAD, index, reflog, cone, submodules) to a new folder.

        `into` must not exist; its parent must. With it and the worktree's files, `revive_admin` brings all back.
        """
        ...

    def revive_admin(self, saved: Path, folder: Path, *, unborn: bool = False) -> Worktree:
        """Make an admin entry for `folder` (its files are back, its `.git` file may be missing) from a saved one.

        With `unborn` its branch has no commit yet. Raises `ToolFailed` with reason `branch_missing`,
        `branch_checked_out` or `worktree_present`.
        """
        ...

    def lock_worktree(self, worktree: Worktree, reason: str) -> None:
        """Lock a linked worktree. Raises `ToolFailed` with reason `locked` when it is locked already."""
        ...

    def unlock_worktree(self, worktree: Worktree) -> None:
        """Unlock a linked worktree; no error when it was not locked."""
        ...

    def delete_branch(self, name: str, expected: str, *, force: bool = False) -> BranchDeletion:
        """Delete a local branch as `git branch -d` does, only while it still points at `expected`.

        Merged means: reachable from its upstream if it has one, else from HEAD of the checkout this was opened at.
        A branch that any worktree has checked out, or holds in a rebase or bisect, is kept. `force` skips the merged
        test and nothing else.
        """
        ...

    def create_branch(self, name: str, commit: str) -> None:
        """Make a local branch at a commit, without upstream. Raises `ToolFailed` `branch_exists` when there is one."""
        ...

    def hold_objects(self, label: str, commits: Sequence[str], staged: Sequence[str]) -> None:
        """Keep commits, and what is staged for paths of this checkout, from garbage collection until released.

        `label` is one path component. Commits that are not there are left out.
        """
        ...

    def release_objects(self, label: str) -> None:
        """Let go of what `hold_objects` kept under this label; no error when there is nothing."""
        ...

    def read_branch_settings(self, name: str) -> Sequence[tuple[str, str]]:
        """The `branch.NAME.*` settings of the repository as (key, value), in order (`remote`, `merge`, …)."""
        ...

    def write_branch_settings(self, name: str, settings: Sequence[tuple[str, str]]) -> None:
        """Add `branch.NAME.*` settings to the repository's configuration."""
        ...

    def rename_branch(self, old: str, new: str) -> None:
        """Rename a local branch as `git branch -m` does: reflog, settings and the HEADs that are on it follow.

        Raises `ToolFailed` with reason `branch_exists`, `branch_missing`, `branch_in_use` (a rebase or bisect holds it)
        or `git_missing`.
        """
        ...

    def attach_head(self, worktree: Worktree, branch: str) -> None:
        """Put a linked worktree's HEAD on a branch, touching neither index nor files."""
        ...

    def follow_move(self, worktree: Worktree, folder: Path) -> None:
        """Have Git's record and the `.git` file lead to each other again after the worktree's folder was moved.

        Raises `ToolFailed` with reason `unsupported` when submodules in it would be lost.
        """
        ...

    def list_remotes(self) -> Sequence[tuple[str, str]]:
        """The remotes as (name, address), by name; the address is as configured."""
        ...

    def find_remote_branch(self, text: str) -> RemoteBranch | None:
        """The branch that `REMOTE/BRANCH` names among what was fetched; None when there is none."""
        ...

    def find_tracked(self, branch: str) -> RemoteBranch | None:
        """The remote branch that a local branch has as upstream, if it was ever fetched."""
        ...

    def fetch(self, remote: str, refspec: str | None = None) -> None:
        """Fetch from a remote within a short limit, asking nobody for anything; one refspec, or what is configured.

        Raises `ToolFailed` with reason `remote_unreachable`, `unknown_ref` or `timeout`.
        """
        ...

    def find_on_remote(self, remote: str, ref: str) -> str | None:
        """Ask a remote where a full reference is, fetching nothing; raises as `fetch` does."""
        ...

    def drop_ref(self, ref: str) -> None:
        """Delete a reference below `refs/exeora/`; no error when there is none."""
        ...

    def take_snapshot(self, ref: str) -> Snapshot:
        """Take the uncommitted changes of this checkout (staged, unstaged, untracked) as a commit kept under `ref`.

        Nothing in the checkout changes. Raises `ToolFailed` with reason `nested_repository` when an untracked folder
        is a repository of its own.
        """
        ...

    def apply_snapshot(self, snapshot: Snapshot, source: Path) -> None:
        """Bring the changes into this checkout, which is clean and at the snapshot's HEAD, staged ones as staged.

        The files get the bytes and permissions they have in the checkout `source`, where a filter would make others.
        """
        ...

    def has_changes_of(self, snapshot: Snapshot, ref: str) -> bool:
        """Whether this checkout holds exactly these changes, and perhaps further untracked files. Uses `ref`."""
        ...

    def has_rest_of(self, snapshot: Snapshot, ref: str) -> bool:
        """Whether all this checkout has uncommitted is a part of these changes, but for further untracked files.

        So it is while `discard_changes` is at work, and after it was cut short. Uses `ref`.
        """
        ...

    def is_part_of(self, kept: str, ref: str) -> bool:
        """Whether this checkout has nothing uncommitted but what is in the snapshot under `kept`. Uses `ref`."""
        ...

    def discard_changes(self, snapshot: Snapshot, copy: Path) -> bool:
        """Take the snapshot's changes out of this checkout, whose files must be byte by byte in the checkout `copy`.

        False when one is not; it stays. Safe to repeat, and while somebody edits.
        """
        ...

    def read_commit_time(self, commit: str) -> int:
        """When a commit was made, in seconds since 1970."""
        ...

    def find_merge_evidence(self, head: str, target: str) -> str | None:
        """Say how everything in `head` is in `target` already; None when it is not, or that cannot be told.

        One of `same_commit`, `ancestor`, `no_difference` (the three-dot diff is empty), `same_tree`, `adds_nothing` (a
        merge would change no file), `squashed` (one commit of the target has the patch of the whole branch). Asks
        nobody and fetches nothing.
        """
        ...

    def load_difference(self, against: str, *, stat: bool) -> Difference:
        """What this checkout has since it parted from a commit, as a patch or, with `stat`, as a summary."""
        ...

    def squash(self, head: str, onto: str, message: str) -> Folded:
        """Make one commit on top of `onto` with everything of `head`, touching no checkout and no reference."""
        ...

    def rebase(self, head: str, onto: str) -> Folded:
        """Make the commits of `head` again on top of `onto`, touching no checkout and no reference.

        Raises `ToolFailed` with reason `has_merges` when one of them is a merge, `unsupported` without libgit2.
        """
        ...

    def list_subjects(self, base: str, head: str) -> Sequence[str]:
        """First lines of the commits that `head` has and `base` lacks, oldest first."""
        ...

    def list_recent(self, commit: str, count: int) -> Sequence[LoggedCommit]:
        """The last commits up to this one, newest first."""
        ...

    def advance(self, branch: str, old: str, new: str) -> None:
        """Move a branch that no checkout has from `old` to `new`; raises `ToolFailed` `branch_moved` otherwise."""
        ...

    def fast_forward(self, commit: str) -> None:
        """Bring this checkout and its branch forward to a commit, as `git merge --ff-only` does.

        Raises `ToolFailed` with reason `would_overwrite` when local changes are in the way; nothing changed then.
        """
        ...

    def switch_to(self, commit: str) -> None:
        """Put this checkout and its branch on another commit, keeping local changes, as `git reset --keep` does."""
        ...

    def is_locked_by_git(self) -> bool:
        """Whether a git is changing this checkout, or died while it did: its index has a lock file."""
        ...

    def list_remains(self) -> Sequence[tuple[str, bool]]:
        """Names of folders under `worktrees/` that name no worktree, are not locked and not of the last hour.

        Each with whether nobody's work can be in it: one with an index may hold what a folder has staged.
        """
        ...

    def discard_entry(self, name: str) -> None:
        """Delete such a folder; one that names a worktree by now, or has an index, is left alone."""
        ...

    def find_forsaken(self, folder: Path) -> str | None:
        """Name of the record that a worktree's folder leads to and that only lacks its way back; None when sound."""
        ...

    def reconnect(self, folder: Path) -> None:
        """Give that record its way back."""
        ...

    def list_stale_locks(self) -> Sequence[str]:
        """Lock files of Git that are older than ten minutes, relative to the shared folder."""
        ...

    def is_wrongly_bare(self) -> bool:
        """Whether the shared settings say `core.bare` although there is a main worktree with an index."""
        ...

    def clear_bare(self) -> None:
        """Set `core.bare` to false in the shared settings."""
        ...
