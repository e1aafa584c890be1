"""The further ways to create a workspace: from a remote branch, a tag or commit, a pull or merge request."""

import re
from dataclasses import dataclass

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.git.port import RemoteBranch, Repository
from exeora_ws.workspaces.create import Wanted
from exeora_ws.workspaces.registry import Base

REQUESTS = "refs/exeora/requests/"
_SHORT = re.compile(r"(pr|mr):([1-9][0-9]{0,8})\Z")
_ADDRESS = re.compile(
    r"https?://(?:[^/@\s]+@)?(?P<host>[^/\s]+)/(?P<path>[^\s?#]+?)/"
    r"(?:(?P<pull>pull|pulls)|-/merge_requests|merge_requests)/(?P<number>[1-9][0-9]{0,8})(?:[/?#].*)?\Z"
)
_KINDS = {"pr": "refs/pull/{}/head", "mr": "refs/merge-requests/{}/head"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks for: `what` is a branch, `REMOTE/BRANCH`, a request, or with `detach` a tag or commit."""

    what: str | None
    base: str | None = None
    detach: bool = False
    reuse: bool = False
    name: str | None = None
    slug: str | None = None
    remote: str | None = None
    fetch: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ForgeRequest:
    """A pull (`pr`) or merge (`mr`) request; `host` and `path` when it was given by its address."""

    kind: str
    number: int
    host: str | None = None
    path: str | None = None

    @property
    def ref(self) -> str:
        """The reference its remote keeps for it."""
        return _KINDS[self.kind].format(self.number)

    @property
    def branch(self) -> str:
        """The local branch it gets."""
        return f"{self.kind}-{self.number}"


def parse_request(text: str) -> ForgeRequest | None:
    """Read `pr:123`, `mr:45` or the address of one; None for anything else."""
    short = _SHORT.match(text)
    if short:
        return ForgeRequest(short[1], int(short[2]))
    address = _ADDRESS.match(text)
    if address:
        kind = "pr" if address["pull"] else "mr"
        return ForgeRequest(kind, int(address["number"]), address["host"].lower(), address["path"].lower())
    return None


def settle(repository: Repository, asked: Asked) -> Wanted:
    """Make of what is asked what `create_workspace` takes; fetches only when asked to, or for a request.

    Raises:
        InvalidArguments: `conflicting_fields`, `missing_branch`, `missing_name`, `unknown_remote`.
        ToolFailed: `unknown_ref`, `remote_unreachable`, `timeout`, `branch_exists`.
    """
    _refuse_conflicts(asked)
    if asked.detach:
        return _settle_detached(repository, asked)
    if asked.what is None:
        raise InvalidArguments("branch: none is named", reason="missing_branch", hint="exeora create BRANCH")
    request = parse_request(asked.what)
    if request is not None:
        return _settle_request(repository, asked, request)
    if asked.fetch:
        repository.fetch(_choose_fetched(repository, asked))
    remote = repository.find_remote_branch(asked.what)
    if remote is not None and repository.find_branch(asked.what) is None and not asked.reuse:
        return _settle_remote(repository, asked, remote)
    _refuse_unfetched(repository, asked, asked.what)
    return _make(asked, asked.what)


def _refuse_conflicts(asked: Asked) -> None:
    if asked.detach and asked.reuse:
        raise InvalidArguments("detach: cannot be used with reuse", reason="conflicting_fields")
    if asked.detach and asked.what is not None and asked.base is not None:
        raise InvalidArguments("from: with detach, name the commit once", reason="conflicting_fields")


def _make(asked: Asked, branch: str | None, start: Base | None = None, remote: RemoteBranch | None = None) -> Wanted:
    return Wanted(
        branch=branch,
        base=None if start else asked.base,
        reuse=asked.reuse,
        name=asked.name,
        slug=asked.slug,
        start=start,
        upstream=(remote.remote, remote.branch) if remote else None,
        dry_run=asked.dry_run,
    )


def _settle_detached(repository: Repository, asked: Asked) -> Wanted:
    if asked.slug is None and asked.name is None:
        raise InvalidArguments(
            "a workspace on no branch needs a name or a slug", reason="missing_name", hint="pass --slug or --name"
        )
    spec = asked.what or asked.base
    if asked.fetch:
        repository.fetch(_choose_fetched(repository, asked))
    if spec is None:
        return _make(asked, None)
    commit = repository.find_commit(spec)
    if commit is None:
        raise ToolFailed(f"{spec!r} names no commit here", reason="unknown_ref", hint="--fetch, or check the spelling")
    return _make(asked, None, Base(spec, commit))


def _settle_remote(repository: Repository, asked: Asked, remote: RemoteBranch) -> Wanted:
    if asked.base is not None:
        raise InvalidArguments(
            f"from: {remote.short!r} is a remote branch, and is where it starts", reason="conflicting_fields"
        )
    if repository.find_branch(remote.branch) is not None:
        raise ToolFailed(
            f"branch {remote.branch!r} exists here already",
            reason="branch_exists",
            hint=f"exeora create {remote.branch} --reuse",
        )
    return _make(asked, remote.branch, Base(remote.short, remote.commit), remote)


def _refuse_unfetched(repository: Repository, asked: Asked, branch: str) -> None:
    """Refuse `origin/x` where the remote has no x: nobody means a local branch of that name."""
    if asked.reuse or asked.base is not None or not repository.is_branch_name(branch) or "/" not in branch:
        return
    for name, _ in repository.list_remotes():
        if branch.startswith(name + "/"):
            raise ToolFailed(
                f"remote {name!r} had no branch {branch.removeprefix(name + '/')!r} when it was last fetched",
                reason="unknown_ref",
                hint="pass --fetch; or with --from, a local branch of this name is made",
            )


def _settle_request(repository: Repository, asked: Asked, request: ForgeRequest) -> Wanted:
    if asked.base is not None or asked.reuse:
        raise InvalidArguments("a request is where it starts: no from, no reuse", reason="conflicting_fields")
    remote = _choose_remote(repository, asked, request)
    if asked.dry_run:
        commit = repository.find_on_remote(remote, request.ref)
    else:
        kept = f"{REQUESTS}{request.branch}"
        repository.fetch(remote, f"+{request.ref}:{kept}")
        commit = repository.find_commit(kept)
    if commit is None:
        raise ToolFailed(f"remote {remote!r} has no {request.ref}", reason="unknown_ref", hint="check the number")
    return _make(asked, request.branch, Base(request.ref.removeprefix("refs/"), commit))


def _choose_remote(repository: Repository, asked: Asked, request: ForgeRequest) -> str:
    """Choose the remote that keeps the request: the one named, the one at its address, else the usual one."""
    if request.host is None or asked.remote is not None:
        return _require_remote(repository, asked.remote)
    for name, address in repository.list_remotes():
        if _simplify(address) == f"{request.host}/{request.path}":
            return name
    raise InvalidArguments(
        f"no remote of this repository is at {request.host}/{request.path}",
        reason="unknown_remote",
        hint="git remote add it, or pass --remote",
    )


def _require_remote(repository: Repository, wanted: str | None) -> str:
    names = [name for name, _ in repository.list_remotes()]
    if wanted is not None and wanted in names:
        return wanted
    if wanted is None and len(names) == 1:
        return names[0]
    usual = next((name for name in ("upstream", "origin") if name in names), None)
    if wanted is None and usual is not None:
        return usual
    said = f"there is no remote {wanted!r}" if wanted is not None else "which remote is meant is not clear"
    raise InvalidArguments(f"remote: {said}", reason="unknown_remote", hint=f"remotes: {', '.join(names) or 'none'}")


def _choose_fetched(repository: Repository, asked: Asked) -> str:
    if asked.remote is None:
        for text in (asked.base, asked.what):
            for name, _ in repository.list_remotes():
                if text is not None and text.startswith(name + "/"):
                    return name
        tracked = repository.find_tracked(asked.base or repository.head().branch or "")
        if tracked is not None:
            return tracked.remote
    return _require_remote(repository, asked.remote)


def _simplify(address: str) -> str:
    """Bring `https://host/owner/name.git`, `git@host:owner/name` and `ssh://git@host/owner/name` to one form."""
    bare = re.sub(r"^[a-z+]+://", "", address.strip().lower())
    bare = re.sub(r"^[^/@]+@", "", bare)
    host, separator, path = re.sub(r"^([^/:]+):(?:[0-9]+/)?", r"\1/", bare).partition("/")
    return f"{host}{separator}{path}".removesuffix("/").removesuffix(".git")


def count_behind(repository: Repository, base: Base) -> tuple[str, int] | None:
    """Say how far a base is behind its remote branch, as last fetched: (`origin/main`, commits); None without one."""
    tracked = repository.find_tracked(base.ref)
    if tracked is None:
        remote = repository.find_remote_branch(base.ref)
        return (remote.short, repository.count_ahead_behind(base.commit, remote.commit)[1]) if remote else None
    return tracked.short, repository.count_ahead_behind(base.commit, tracked.commit)[1]
