"""The engine that asks the git executable: reads wherever libgit2 cannot, and always populates and tells the status."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.git import gitfiles, holding, refnames
from exeora_ws.git.command import Git, decode, encode
from exeora_ws.git.engine import SAFE_REFS, Engine, require_commit_id
from exeora_ws.git.listing import RawHead
from exeora_ws.git.messages import describe_failure
from exeora_ws.git.populating import populate
from exeora_ws.git.port import Addition, Checkout, Status
from exeora_ws.git.status import load_status

_CONFIG_TRIES = 5
_NOTHING = (0, 1)


class ExecutableRepository(Engine):
    """A repository as the git executable sees it; any format that git reads."""

    def __init__(self, checkout: Checkout) -> None:
        super().__init__(checkout)
        self.git = Git(checkout.top or checkout.git_dir, checkout.git_dir)
        self._plain_heads = gitfiles.read_core(str(checkout.common_dir)).ref_storage == "files"

    def read_head(self, git_dir: str) -> RawHead:
        """Read HEAD from its file; where references are kept in tables, ask git."""
        if self._plain_heads:
            return super().read_head(git_dir)
        git = Git(Path(git_dir), Path(git_dir))
        symbolic = git.read("symbolic-ref", "--quiet", "HEAD", ok=(0, 1, 128))
        if symbolic.code == 0:
            return RawHead(symbolic.text, None)
        commit = git.read("rev-parse", "--verify", "--quiet", "HEAD", ok=(0, 1, 128)).text
        return RawHead(None, commit or None)

    def resolve_refs(self, refs: Iterable[str]) -> Mapping[str, str]:
        """Ask `cat-file` for all of them at once: its answers come in the order of the questions."""
        wanted = [ref for ref in refs if refnames.is_branch_name(ref)]
        if not wanted:
            return {}
        asked = encode("".join(f"{ref}\n" for ref in wanted))
        lines = self.git.read("cat-file", "--batch-check=%(objectname)", stdin=asked).text.split("\n")
        return {ref: line for ref, line in zip(wanted, lines, strict=True) if refnames.is_commit_id(line)}

    def find_commit(self, spec: str) -> str | None:
        """Ask `cat-file`, which is told the name on its standard input: nothing in it can be an option."""
        if not spec or spec.startswith("-") or "\n" in spec:
            return None
        name, kind = self._identify(spec)
        if kind == "tag":
            name, kind = self._identify(name + "^{commit}")
        return name if kind == "commit" else None

    def _identify(self, spec: str) -> tuple[str, str]:
        asked = encode(spec + "\n")
        output = self.git.read("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked, ok=(0, 128))
        if output.code != 0:
            failure = describe_failure(output.code, decode(output.err))
            if failure.reason != "git_failed":
                raise failure
        name, _, kind = output.text.rpartition(" ")
        return name, kind

    def list_branches(self) -> Sequence[str]:
        """Ask `for-each-ref`."""
        lines = decode(self.git.read("for-each-ref", "--format=%(refname)", refnames.BRANCHES).out).split("\n")
        return sorted(ref.removeprefix(refnames.BRANCHES) for ref in lines if ref)

    def find_upstream(self, branch: str) -> str | None:
        """Ask for the upstream's full name, then for its commit."""
        ref = refnames.BRANCHES + branch
        if not refnames.is_branch_name(branch):
            return None
        lines = self.git.read("for-each-ref", "--format=%(refname) %(upstream)", ref).text.splitlines()
        upstream = next((line.partition(" ")[2] for line in lines if line.startswith(ref + " ")), "")
        return self.resolve_refs([upstream]).get(upstream) if upstream else None

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Ask `merge-base`."""
        ids = (require_commit_id(older), require_commit_id(newer))
        return self.git.read("merge-base", "--is-ancestor", *ids, ok=_NOTHING).code == 0

    def is_reachable(self, commit: str) -> bool:
        """Ask `for-each-ref` for one reference that contains it."""
        return (
            self.git.read("for-each-ref", "--count=1", f"--contains={require_commit_id(commit)}", *SAFE_REFS).text != ""
        )

    def count_ahead_behind(self, ours: str, theirs: str) -> tuple[int, int]:
        """Ask `rev-list`."""
        both = f"{require_commit_id(ours)}...{require_commit_id(theirs)}"
        left, _, right = self.git.read("rev-list", "--count", "--left-right", both, "--").text.partition("\t")
        return int(left), int(right)

    def status(self, *, ignored: bool = False) -> Status:
        """Ask `git status`."""
        return load_status(self.git, self.require_top(), ignored=ignored)

    def require_git(self) -> Git:
        """Give the git executable at this place."""
        return self.git

    def require_top(self) -> Path:
        """Give the checkout it was opened at."""
        if self.place.top is None:
            raise ToolFailed("this is a bare Git folder, without files", reason="bare")
        return self.place.top

    def add_worktree(
        self, addition: Addition, cancellation: Cancellation | None = None, reader: Engine | None = None
    ) -> None:
        """Have `git worktree add` do it, run in the source checkout. `reader` is asked what can be read cheaper."""
        populate(reader or self, self._git_at(addition.source), addition, cancellation)

    def _git_at(self, source: Path | None) -> Git:
        if source is None or source == self.place.top:
            return self.git
        found = self.require_source(source)
        return Git(source, found.git_dir)

    def write_branch(self, name: str, commit: str) -> bool:
        """Make it with `update-ref`, only where there is none."""
        ref = refnames.BRANCHES + name
        said = f"branch: Created from {commit[:12]}"
        output = self.git.change("update-ref", "--no-deref", "-m", said, ref, commit, "0" * len(commit), ok=(0, 128))
        if output.code == 0:
            return True
        return self._judge_failed_update(decode(output.err), b"already exists" in output.err)

    def delete_ref(self, name: str, expected: str) -> bool:
        """Delete it with `update-ref -d`."""
        ref = refnames.BRANCHES + name
        output = self.git.change("update-ref", "--no-deref", "-d", ref, require_commit_id(expected), ok=(0, 1, 128))
        if output.code == 0:
            return True
        moved = b"but expected" in output.err or b"unable to resolve" in output.err
        return self._judge_failed_update(decode(output.err), moved)

    def _judge_failed_update(self, stderr: str, expected: bool) -> bool:
        if expected:
            return False
        raise describe_failure(128, stderr)

    def forget_branch_settings(self, name: str) -> None:
        """Remove the section as `git branch -d` does; somebody's lock on the file is waited out briefly."""
        section = f"branch.{name}"
        for _ in range(_CONFIG_TRIES):
            output = self.git.change("config", "--local", "--remove-section", section, ok=(0, 4, 128, 255))
            if b"could not lock" not in output.err:
                return

    def write_holder(self, ref: str, commits: Sequence[str], staged: Sequence[str]) -> None:
        """Make a commit of ours where one of theirs is not enough, and point the reference at it."""
        holding.write(self.git, ref, commits, staged)

    def drop_holder(self, ref: str) -> None:
        """Delete it, wherever it points."""
        self.git.change("update-ref", "--no-deref", "-d", ref, ok=(0, 1, 128))

    def read_branch_settings(self, name: str) -> Sequence[tuple[str, str]]:
        """List the configuration, and pick the section out: no pattern can mistake a name."""
        prefix = f"branch.{name}."
        entries = decode(self.git.read("config", "--local", "--list", "-z", ok=(0, 1)).out).split("\0")
        pairs = [(key, value) for key, _, value in (entry.partition("\n") for entry in entries)]
        return [(key.removeprefix(prefix), value) for key, value in pairs if key.startswith(prefix)]

    def write_branch_settings(self, name: str, settings: Sequence[tuple[str, str]]) -> None:
        """Add one after the other."""
        for key, value in settings:
            self.git.change("config", "--local", "--add", f"branch.{name}.{key}", value)
