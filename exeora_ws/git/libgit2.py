"""The engine on libgit2: reads without a process. It populates and tells the status only where there is no git."""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import pygit2
from pygit2.enums import ConfigLevel, FileMode, ReferenceType, RepositoryOpenFlag

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.git import holding, refnames
from exeora_ws.git.command import Git, decode
from exeora_ws.git.engine import SAFE_REFS, Engine, require_commit_id
from exeora_ws.git.executable import ExecutableRepository
from exeora_ws.git.libgit2_checkout import load_status, populate
from exeora_ws.git.messages import tidy
from exeora_ws.git.port import Addition, Checkout, Status
from exeora_ws.names import is_text

_LOCAL_LEVEL = ConfigLevel.LOCAL


@contextmanager
def translated() -> Iterator[None]:
    """libgit2's own errors become ours here.

    Raises:
        ToolFailed: reason `git_failed`; `unknown_commit` for an object that is not there.
    """
    try:
        yield
    except (pygit2.GitError, ValueError, OSError) as error:
        if "too long" in str(error):
            raise ToolFailed(
                f"libgit2: {tidy(str(error))}", reason="name_too_long", hint="choose a shorter name"
            ) from error
        reason = "disk_full" if "No space left on device" in str(error) else "git_failed"
        raise ToolFailed(f"libgit2: {tidy(str(error))}", reason=reason) from error
    except KeyError as error:
        raise ToolFailed("the repository has no such object", reason="unknown_commit") from error


def open_libgit2(checkout: Checkout) -> pygit2.Repository | None:
    """Open exactly this place, never one further up; None for a format or an owner that libgit2 refuses."""
    place = checkout.top or checkout.git_dir
    try:
        return pygit2.Repository(os.fsdecode(place), RepositoryOpenFlag.NO_SEARCH)
    except (pygit2.GitError, KeyError, ValueError, OSError):
        return None


class Libgit2Repository(Engine):
    """A repository as libgit2 sees it.

    Args:
        checkout: where it is opened.
        git: populates, tells the status and changes references, and takes names that are not UTF-8, which pygit2 does
            not; None where there is no git executable.
    """

    def __init__(self, checkout: Checkout, git: ExecutableRepository | None) -> None:
        super().__init__(checkout)
        self._git = git
        self._opened = threading.local()

    @property
    def raw(self) -> pygit2.Repository:
        """This thread's own libgit2 repository: one may not be shared between threads."""
        found: pygit2.Repository | None = getattr(self._opened, "repository", None)
        if found is None:
            found = open_libgit2(self.place)
            if found is None:
                raise ToolFailed("libgit2 cannot open this repository", reason="unsupported")
            self._opened.repository = found
        return found

    def require_git(self) -> Git:
        """Give the git executable at this place, where there is one."""
        if self._git is None:
            raise ToolFailed("this needs the git executable, and there is none on PATH", reason="git_missing")
        return self._git.git

    def resolve_refs(self, refs: Iterable[str]) -> Mapping[str, str]:
        """Look each of them up."""
        found: dict[str, str] = {}
        with translated():
            for ref in refs:
                commit = self._resolve(ref) if refnames.is_branch_name(ref) else None
                if commit is not None:
                    found[ref] = commit
        return found

    def _resolve(self, ref: str) -> str | None:
        try:
            reference = self.raw.lookup_reference(ref)
            return str(reference.resolve().target)
        except KeyError:
            return None

    def find_commit(self, spec: str) -> str | None:
        """Parse the commit-ish."""
        if not spec or spec.startswith(("-", "^")) or "\0" in spec:
            return None
        if self._git is not None and not is_text(spec):
            return self._git.find_commit(spec)
        with translated():
            try:
                return str(self.raw.revparse_single(spec).peel(pygit2.Commit).id)
            except (KeyError, ValueError, pygit2.GitError):
                return None

    def list_branches(self) -> Sequence[str]:
        """List the references under `refs/heads/`."""
        with translated():
            names = [decode(name) for name in self.raw.raw_listall_references()]
        return sorted(n.removeprefix(refnames.BRANCHES) for n in names if n.startswith(refnames.BRANCHES))

    def find_upstream(self, branch: str) -> str | None:
        """Look the upstream up in the configuration."""
        if not refnames.is_branch_name(branch):
            return None
        if self._git is not None and not is_text(branch):
            return self._git.find_upstream(branch)
        with translated():
            try:
                found = self.raw.lookup_branch(branch)
                upstream = None if found is None else found.upstream
            except KeyError:
                return None
            return None if upstream is None else str(upstream.resolve().target)

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Walk the graph."""
        with translated():
            require_commit_id(older)
            require_commit_id(newer)
            self._require_commits(older, newer)
            return older == newer or self.raw.descendant_of(newer, older)

    def is_reachable(self, commit: str) -> bool:
        """Walk the graph from every branch and tag until one leads there."""
        with translated():
            self._require_commits(require_commit_id(commit))
            names = (decode(name) for name in self.raw.raw_listall_references())
            heads = {head for name in names if name.startswith(SAFE_REFS) and (head := self.find_commit(name))}
            return commit in heads or any(self.raw.descendant_of(head, commit) for head in heads)

    def count_ahead_behind(self, ours: str, theirs: str) -> tuple[int, int]:
        """Walk the graph."""
        with translated():
            self._require_commits(require_commit_id(ours), require_commit_id(theirs))
            ahead, behind = self.raw.ahead_behind(ours, theirs)
            return ahead, behind

    def _require_commits(self, *ids: str) -> None:
        for commit in ids:
            if not isinstance(self.raw.get(commit), pygit2.Commit):
                raise ToolFailed("the repository has no such commit", reason="unknown_commit")

    def read_commit_time(self, commit: str) -> int:
        """Read it off the commit."""
        with translated():
            found = self.raw.get(commit)
            return found.commit_time if isinstance(found, pygit2.Commit) else super().read_commit_time(commit)

    def status(self, *, ignored: bool = False) -> Status:
        """Have git tell it; without git, libgit2 where it cannot be wrong."""
        if self._git is not None:
            return self._git.status(ignored=ignored)
        with translated():
            return load_status(self.raw, self.place, ignored=ignored)

    def add_worktree(self, addition: Addition, cancellation: Cancellation | None = None) -> None:
        """Have git do it; without git, libgit2 where it writes what git would."""
        if self._git is not None:
            self._git.add_worktree(addition, cancellation, self)
            return
        with translated():
            populate(self, self.raw, addition)

    def write_branch(self, name: str, commit: str) -> bool:
        """Have git make it, whose hooks may want to know; without git, make it."""
        if self._git is not None:
            return self._git.write_branch(name, commit)
        with translated():
            self._require_commits(commit)
            try:
                self.raw.create_branch(name, self.raw[commit].peel(pygit2.Commit), False)
            except (pygit2.AlreadyExistsError, ValueError):
                return False
            return True

    def delete_ref(self, name: str, expected: str) -> bool:
        """Delete the reference while it is at `expected`: libgit2 checks under the reference's lock."""
        with translated():
            try:
                reference = self.raw.lookup_reference(refnames.BRANCHES + name)
            except KeyError:
                return False
            if reference.type != ReferenceType.DIRECT or str(reference.target) != expected:
                return False
            reference.delete()
            return True

    def forget_branch_settings(self, name: str) -> None:
        """Delete each of the section's keys."""
        if self._git is not None:
            self._git.forget_branch_settings(name)
            return
        with translated():
            prefix = f"branch.{name}."
            keys = {entry.name for entry in self.raw.config if entry.name.startswith(prefix)}
            for key in keys:
                self.raw.config.delete_multivar(key, ".*")

    def write_holder(self, ref: str, commits: Sequence[str], staged: Sequence[str]) -> None:
        """Point it at the one commit; for more, have git make one over them, and without git do as it would."""
        if len(commits) == 1 and not staged:
            with translated():
                self.raw.references.create(ref, commits[0], force=True)
            return
        if self._git is not None:
            self._git.write_holder(ref, commits, staged)
            return
        with translated():
            tree = self.raw.TreeBuilder()
            for number, path in enumerate(staged):
                if path in self.raw.index:
                    tree.insert(str(number), self.raw.index[path].id, FileMode.BLOB)
            author = pygit2.Signature("exeora", "exeora@localhost")
            parents: list[pygit2.Oid | str] = list(commits)
            commit = self.raw.create_commit(None, author, author, holding.MESSAGE, tree.write(), parents)
            self.raw.references.create(ref, commit, force=True)

    def drop_holder(self, ref: str) -> None:
        """Delete it, wherever it points."""
        with translated(), suppress(KeyError):
            self.raw.references.delete(ref)

    def read_branch_settings(self, name: str) -> Sequence[tuple[str, str]]:
        """Look through the repository's own configuration."""
        prefix = f"branch.{name}."
        with translated():
            entries = [(entry.name, entry.value or "") for entry in self.raw.config if entry.level == _LOCAL_LEVEL]
        return [(key.removeprefix(prefix), value) for key, value in entries if key.startswith(prefix)]

    def write_branch_settings(self, name: str, settings: Sequence[tuple[str, str]]) -> None:
        """Have git do it; without git, set each."""
        if self._git is not None:
            self._git.write_branch_settings(name, settings)
            return
        with translated():
            for key, value in settings:
                self.raw.config.set_multivar(f"branch.{name}.{key}", "^$", value)
